/* SPDX-License-Identifier: GPL-2.0 OR MIT OR Apache-2.0 */
/*
 * What an ACK says: of which packets, and how long they took.
 */
#ifndef WEIR_CHIRP_SAMPLES_H
#define WEIR_CHIRP_SAMPLES_H

/* Where the records end that `una` covers. */
CHIRP_FN u32 chirp_find(const struct chirp *c, u32 una)
{
	u32 low = c->head, span = CHIRP_RECORDS, i;

	/* Halving: 512, 256, … 1. */
	for (i = 0; i < 10; i++) {
		u32 next = low + span;

		if (next - c->head <= c->tail - c->head &&
		    chirp_covered(c->record[(next - 1) & (CHIRP_RECORDS - 1)].end, una))
			low = next;
		span /= 2;
	}
	return low;
}

/* Takes a round-trip time into account, without what its ACK may have waited; returns what is left of it. */
CHIRP_FN u32 chirp_time_sample(struct chirp *c, u32 rtt, u32 waited)
{
	c->rtt_min = c->rtt_min ? chirp_min(c->rtt_min, rtt) : rtt;
	rtt = chirp_max(c->rtt_min, rtt - chirp_min(rtt, waited));
	c->srtt = c->srtt ? (u32)((7ull * c->srtt + rtt) / 8) : rtt;
	return rtt;
}

/* An ACK came at `now`, and may have waited for so long. */
CHIRP_FN void chirp_heard(struct chirp *c, u64 now, u64 waited)
{
	c->heard = (u32)now;
	c->waited = (u32)waited;
}

/* A packet that a brief round left behind may have waited for the next one at its receiver: how long it took says nothing. */
CHIRP_FN int chirp_left_behind(const struct chirp *c, const struct chirp_record *r)
{
	return chirp_rule(c, CHIRP_BRIEF) && c->phase == CHIRP_HANDOVER && r->of;
}

/* What an ACK of `count` packets says of times; the records from `until` on are not acknowledged. */
CHIRP_FN void chirp_sample(struct chirp *c, u32 until, u32 count, u64 now, u32 flags)
{
	struct chirp_record r = c->record[(until - 1) & (CHIRP_RECORDS - 1)];
	u32 rtt, waited;

	chirp_count_packets(c, count, (u32)now);
	waited = chirp_waited(c, until, r.sent, (u32)now);
	rtt = chirp_time_sample(c, chirp_time((u32)now - r.sent), waited);
	chirp_delivered(c, count, (u32)now, waited);
	if (c->phase == CHIRP_ROUNDS && r.chirp)
		chirp_look(c, rtt, (u32)now, waited, flags & CHIRP_MARKED);
	if (c->phase == CHIRP_HANDOVER)
		c->least = c->least ? chirp_min(c->least, rtt) : rtt;
	if (c->phase == CHIRP_HANDOVER && chirp_rule(c, CHIRP_BRIEF) && !chirp_cut_at_once(c, count, rtt, (u32)now))
		chirp_approach(c, r.chirp, count, rtt);
	if (c->phase != CHIRP_HANDOVER)
		chirp_collect(c, &r, rtt);
	chirp_heard(c, now, waited);
}

#endif
