/* SPDX-License-Identifier: GPL-2.0 OR MIT OR Apache-2.0 */
/*
 * The end of chirps: the window that they found, sent at its gaps and corrected by what it meets.
 */
#ifndef WEIR_CHIRP_HANDOVER_H
#define WEIR_CHIRP_HANDOVER_H

/* Round trips for which the window is sent at its gaps where ACKs are thinned, each of which would let many packets leave at once. */
#define CHIRP_HOLDS 8u

/*
 * The end: the window is what the estimate fills the path with, no less than what is in flight already. On
 * a full path, of which estimates say too much, it is what is in flight, or was in the round where rounds are brief.
 */
CHIRP_FN void chirp_end(struct chirp *c, u32 in_flight)
{
	int brief = !!chirp_rule(c, CHIRP_BRIEF);
	u32 fills;

	if (brief)
		c->gap = chirp_max(c->gap, c->burst);
	fills = chirp_max(chirp_fills(c) + 2, c->floor);
	if (chirp_full(c))
		fills = brief ? chirp_max(in_flight, c->sent) : in_flight;
	c->aim = fills;
	c->lacks = 0;
	c->floor = 0;
	c->window = chirp_max(brief ? chirp_first_window(c, fills) : fills, chirp_max(in_flight, 2));
	if (brief)
		c->gap = chirp_clamp_gap(c->rtt_min / c->window);
	/* What thinned ACKs say is what was delivered; it takes the packets of one until the next one comes. */
	if (chirp_thinned(c))
		c->window = chirp_max(chirp_fills(c) + c->most_per_ack / 8, CHIRP_INITIAL);
	c->phase = CHIRP_HANDOVER;
	c->settled = 0;
	c->stands = 0;
	c->cut = CHIRP_UNCUT;
	c->closed = 0;
	c->grown = 0;
	c->of = 0;
	c->index = 0;
	chirp_send_window(c);
	/* Hardly anything is in flight behind a brief round. */
	c->awaits_marker = (u8)brief;
}

/*
 * A round of the handover is acknowledged. If a queue stood through all of it, or at its end, the window was too large, as when several
 * flows found the same room: it gives back its part of that queue, and is looked at again. Where nobody marks, others may well keep
 * that queue: once only.
 */
CHIRP_PART chirp_settle(struct chirp *c, u32 in_flight)
{
	u32 stands;

	if (CHIRP_ABSENT(c))
		return 0;
	stands = chirp_over(c, chirp_max(c->least, c->srtt));
	if (chirp_rule(c, CHIRP_UNMARKED)) {
		c->phase = CHIRP_DONE;
		return 0;
	}
	if (chirp_rule(c, CHIRP_BRIEF)) {
		chirp_push(c, in_flight);
		return 0;
	}
	if (stands > chirp_tolerates(c) && c->settled < (c->round_marked ? CHIRP_SETTLES : CHIRP_SETTLES_UNMARKED)) {
		c->window = chirp_max(2, (u32)((u64)c->window * c->rtt_min / ((u64)c->rtt_min + stands)));
		c->settled++;
	} else if (chirp_thinned(c) && c->grown < CHIRP_HOLDS) {
		c->grown++;
		chirp_send_window(c);
		return 0;
	} else {
		c->phase = CHIRP_DONE;
		return 0;
	}
	c->gap = chirp_clamp_gap(c->rtt_min / c->window);
	chirp_send_window(c);
	return 0;
}

#endif
