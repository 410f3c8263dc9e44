/* SPDX-License-Identifier: GPL-2.0 OR MIT OR Apache-2.0 */
/*
 * The end of chirps: the window that they found is sent at its gaps and corrected by the queue that it meets.
 */
#ifndef WEIR_CHIRP_HANDOVER_H
#define WEIR_CHIRP_HANDOVER_H

/*
 * Round trips for which the window is sent at its gaps with thinned ACKs, each of which would release many
 * packets at once.
 */
#define CHIRP_HOLDS 8u

/*
 * Ends the chirps. The window is what fills the path by the estimate, and at least the packets in flight. On
 * a full path, where estimates are too high, it is the packets in flight, or those of the round where rounds
 * are brief.
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
	/*
	 * Thinned ACKs tell the rate of delivery. It takes the packets of one ACK until the next one comes.
	 */
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
	/* Hardly any packets are in flight after a brief round. */
	c->awaits_marker = (u8)brief;
}

/*
 * Handles the end of a round of the handover. A queue that stood through all of it, or at its end, means that
 * the window was too large, as when several flows found the same room. The window then gives back its part of
 * that queue and is reviewed again, only once on a path without marks, where others may well keep the queue.
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
