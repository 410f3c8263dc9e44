/* SPDX-License-Identifier: GPL-2.0 OR MIT OR Apache-2.0 */
/*
 * Samples of an ACK: the packets that it covers, and their round-trip times.
 */
#ifndef WEIR_CHIRP_SAMPLES_H
#define WEIR_CHIRP_SAMPLES_H

/* Returns the end of the records that `una` covers. */
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

/* Adds a round-trip time, without the time that its ACK may have waited. Returns the rest. */
CHIRP_FN u32 chirp_time_sample(struct chirp *c, u32 rtt, u32 waited)
{
	c->rtt_min = c->rtt_min ? chirp_min(c->rtt_min, rtt) : rtt;
	rtt = chirp_max(c->rtt_min, rtt - chirp_min(rtt, waited));
	c->srtt = c->srtt ? (u32)((7ull * c->srtt + rtt) / 8) : rtt;
	return rtt;
}

/* Records that an ACK came at `now` and may have waited for `waited`. */
CHIRP_FN void chirp_heard(struct chirp *c, u64 now, u64 waited)
{
	c->heard = (u32)now;
	c->waited = (u32)waited;
}

/*
 * Returns whether a brief round left a packet behind. It may have waited at its receiver for the next one, so
 * its round-trip time says nothing.
 */
CHIRP_FN int chirp_left_behind(const struct chirp *c, const struct chirp_record *r)
{
	return chirp_rule(c, CHIRP_BRIEF) && c->phase == CHIRP_HANDOVER && r->of;
}

/* Takes the times of an ACK of `count` packets; the records from `until` on are not acknowledged. */
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
