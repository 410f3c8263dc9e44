/* SPDX-License-Identifier: GPL-2.0 OR MIT OR Apache-2.0 */
/*
 * The end of chirps: the window that they found, sent at its gaps and corrected by what it meets.
 */
#ifndef WEIR_CHIRP_HANDOVER_H
#define WEIR_CHIRP_HANDOVER_H

/* How often the window is corrected in the handover, with marks and without. */
#define CHIRP_SETTLES 4u
#define CHIRP_SETTLES_UNMARKED 1u
/* How often it grows, by one part in how many, and by how much at most: nanoseconds. */
#define CHIRP_GROWS 8u
#define CHIRP_GROWTH 8u
#define CHIRP_GROWTH_MOST 1500000u
/* Round trips for which the window is sent at its gaps where ACKs are thinned, each of which would let many packets leave at once. */
#define CHIRP_HOLDS 8u

/* A round of the handover begins. */
CHIRP_FN void chirp_send_window(struct chirp *c)
{
	c->marker = c->last_end;
	c->least = 0;
	c->round_acked = 0;
	c->round_marked = 0;
}

/*
 * The end: the window is what the estimate fills the path with, no less than what is in flight already. On
 * a full path, of which estimates say too much, it is what is in flight. Where rounds are brief, few chirps have been seen: no path is faster than the first
 * packets found it, which left together.
 */
CHIRP_FN void chirp_end(struct chirp *c, u32 in_flight)
{
	u32 fills;

	if (c->rules & CHIRP_BRIEF)
		c->gap = chirp_max(c->gap, c->burst);
	fills = chirp_fills(c) + 2;
	fills = chirp_full(c) ? in_flight : chirp_max(fills, c->floor);
	c->floor = 0;
	c->window = chirp_max(fills, chirp_max(in_flight, 2));
	/* What thinned ACKs say is what was delivered; it takes the packets of one until the next one comes. */
	if (chirp_thinned(c))
		c->window = chirp_max(chirp_fills(c) + c->most_per_ack / 8, CHIRP_INITIAL);
	c->phase = CHIRP_HANDOVER;
	c->settled = 0;
	c->grown = 0;
	chirp_send_window(c);
}

/*
 * Does the path have more than the window that was sent through a round? What disturbs the few chirps of brief rounds makes estimates
 * longer: where the window was used, nothing is marked and no queue stood, it has.
 */
CHIRP_FN int chirp_has_more(const struct chirp *c, u32 in_flight)
{
	return (c->rules & CHIRP_BRIEF) && !c->settled && c->grown < CHIRP_GROWS && !c->round_marked && in_flight >= c->window / 2 &&
	       chirp_over(c, c->least) < 4 * c->gap;
}

/* By a part, of 1.5 ms at most, or by a quarter of what the estimate may be wrong by. */
CHIRP_FN void chirp_grow(struct chirp *c)
{
	u32 part = chirp_max(1, chirp_min(c->window / CHIRP_GROWTH, CHIRP_GROWTH_MOST / chirp_max(c->gap, CHIRP_GAP_LEAST)));
	u32 before = c->window;

	c->window += chirp_max(part, (u32)((u64)c->window * chirp_doubt(c) / (4 * CHIRP_ONE)));
	c->deviation = (u32)((u64)c->deviation * before / c->window);
	c->grown++;
}

/*
 * A round of the handover is acknowledged. If a queue stood through all of it, or at its end, the window was too large, as when several
 * flows found the same room: it gives back its part of that queue, and is looked at again. Where nobody marks, others may well keep
 * that queue: once only. If none stood it grows, and is looked at again.
 */
CHIRP_FN void chirp_settle(struct chirp *c, u32 in_flight)
{
	u32 stands = chirp_over(c, chirp_max(c->least, c->srtt));
	u32 most = chirp_max(4 * c->gap, chirp_min(c->rtt_min / 16, 2 * CHIRP_STANDS));

	if (c->rules & CHIRP_UNMARKED) {
		c->phase = CHIRP_DONE;
		return;
	}
	if (chirp_has_more(c, in_flight)) {
		chirp_grow(c);
	} else if (stands > most && c->settled < (c->round_marked ? CHIRP_SETTLES : CHIRP_SETTLES_UNMARKED)) {
		c->window = chirp_max(2, (u32)((u64)c->window * c->rtt_min / ((u64)c->rtt_min + stands)));
		c->settled++;
	} else if (chirp_thinned(c) && c->grown < CHIRP_HOLDS) {
		c->grown++;
		chirp_send_window(c);
		return;
	} else {
		c->phase = CHIRP_DONE;
		return;
	}
	c->gap = chirp_clamp_gap(c->rtt_min / c->window);
	chirp_send_window(c);
}

#endif
