/* SPDX-License-Identifier: GPL-2.0 OR MIT OR Apache-2.0 */
/*
 * ACKs that are thinned on their way. A slow way back lets one ACK go at a time, and its filter leaves the
 * newest of those that wait. Few ACKs come, at the pace of the way back, and each covers all packets
 * delivered meanwhile. The time of the way back is in every round-trip time, as delay that chirps would take
 * for a queue. Therefore the time that the ACK may have waited is subtracted. The rest is a queue for sure.
 *
 * Few samples are left of each chirp. Rounds double as slow start's do while there is no such queue and no
 * mark (chirp_blind()). They are sent in trains of even gaps, faster than the next round will be on average,
 * so a train that is too fast for the path meets a queue of its own before a round does. The estimate is then
 * the gap at which the path delivered: the time since the ACK before, divided by the packets of an ACK.
 */
#ifndef WEIR_CHIRP_THINNED_H
#define WEIR_CHIRP_THINNED_H

/* Packets of an ACK, in eighths, up to which a receiver may acknowledge every second or third packet. */
#define CHIRP_THIN 24u
/* Least packets of an ACK that tells the rate of their delivery. */
#define CHIRP_DELIVERED 4u
/* Packets of a train: those of this many ACKs, and its limits. */
#define CHIRP_TRAIN_ACKS 3u
#define CHIRP_TRAIN_SHORTEST 16u
#define CHIRP_TRAIN_LONGEST 32u
/* Trains of a round that are remembered. */
#define CHIRP_TRAINS 12u
/*
 * Gaps of a train in eighths of the round's mean: 3/8, so that a round that doubles stays below what trains
 * tried before.
 */
#define CHIRP_TRAIN_GAP 3u

/* Returns whether most ACKs cover far more packets than those that cannot have waited: half as many again. */
CHIRP_FN int chirp_thinned(const struct chirp *c)
{
	return !chirp_rule(c, CHIRP_UNSTRETCHED | CHIRP_BRIEF) && c->most_per_ack > CHIRP_THIN &&
	       2 * c->most_per_ack > 3 * c->own_per_ack;
}

/* Returns whether nothing is known of the path except that it had room so far. */
CHIRP_FN int chirp_blind(const struct chirp *c)
{
	return chirp_thinned(c) && !c->met_queue;
}

/* Tracks a peak: it rises at once, and falls by one part in `part`. */
CHIRP_FN u16 chirp_peak(u16 peak, u32 now, u32 part)
{
	return (u16)chirp_max(now, ((part - 1) * peak + now) / part);
}

/*
 * Counts the packets that ACKs cover: `count` for this one, at `now`. An ACK after a pause cannot have waited
 * for the one before it.
 */
CHIRP_FN void chirp_count_packets(struct chirp *c, u32 count, u32 now)
{
	u32 since = now - c->heard, packets = 8 * chirp_min(count, 255);

	c->per_ack = (u16)((7 * c->per_ack + 8 * chirp_min(count, CHIRP_LONGEST) + 4) / 8);
	c->most_per_ack = chirp_peak(c->most_per_ack, packets, 8);
	if (!c->heard || (c->tick && since > 2 * c->tick))
		c->own_per_ack = chirp_peak(c->own_per_ack, packets, 32);
	if (c->heard && (!c->tick || since < c->tick))
		c->tick = since;
}

/*
 * Returns the longest time that an ACK may have waited on its way. It is no longer than since the ACK before,
 * nor than until the receiver had two more packets, whose ACK would have replaced it. Where echoes of marks
 * change, ACKs replace no others. The records from `until` on are not acknowledged.
 */
CHIRP_FN u32 chirp_waited(const struct chirp *c, u32 until, u32 sent, u32 now)
{
	u32 echoes = c->echoes & 7;

	if (!chirp_thinned(c))
		return 0;
	if (c->tail - until < 2 || (echoes != 0 && echoes != 7))
		return now - sent;
	return chirp_min(now - c->heard, c->record[(until + 1) & (CHIRP_RECORDS - 1)].sent - sent);
}

/*
 * Measures the delivery: `count` packets were delivered between the times at which the last ACK and this one
 * began to wait. Each is taken to have waited for half of its longest time, unless that is most of the time
 * between them.
 */
CHIRP_FN void chirp_delivered(struct chirp *c, u32 count, u32 now, u32 waited)
{
	u32 since = now - c->heard, gap;

	if (!chirp_thinned(c) || !c->heard || count < CHIRP_DELIVERED || (u64)waited + c->waited >= since / 2)
		return;
	gap = (u32)(((u64)since + c->waited / 2 - waited / 2) / count);
	c->delivers = c->delivers ? chirp_min(c->delivers, gap) : gap;
}

/*
 * Handles the first queue or mark: the path has the room at which it delivered. No round is longer than fills
 * it, or than the initial window.
 */
CHIRP_FN void chirp_meet_queue(struct chirp *c)
{
	c->met_queue = 1;
	c->gap = chirp_clamp_gap(c->delivers);
	c->deviation = c->gap / 4;
	c->round_gap = c->gap;
	c->planned = chirp_max(c->sent, chirp_min(c->planned, chirp_max(c->rtt_min / c->gap, CHIRP_INITIAL)));
}

/*
 * Looks for a queue. The newest packet of an ACK is one of a train; its round trip took `rtt` without the
 * time that the ACK may have waited.
 */
CHIRP_FN void chirp_look(struct chirp *c, u32 rtt, u32 now, u32 waited, u32 marked)
{
	int queue = waited < (now - c->heard) / 2 && rtt - c->rtt_min > c->delivers;

	if (chirp_blind(c) && c->delivers && (queue || (marked && !chirp_rule(c, CHIRP_UNMARKED))))
		chirp_meet_queue(c);
}

/* Sets the gap of trains while the path is not known: the gap that the round's packets need. */
CHIRP_FN void chirp_choose_train(struct chirp *c)
{
	u32 gap = chirp_clamp_gap((u64)c->srtt * CHIRP_TRAIN_GAP / 8 / chirp_max(c->planned, 1));

	if (!chirp_blind(c) || c->round_marked || gap >= c->gap)
		return;
	c->deviation = (u32)((u64)c->deviation * gap / c->gap);
	c->gap = gap;
	c->round_gap = gap;
}

/* Packets of a train: not all of a round, whose first train marks its end. */
CHIRP_FN u32 chirp_train(const struct chirp *c)
{
	u32 n = chirp_max(CHIRP_TRAIN_ACKS * c->most_per_ack / 8, CHIRP_TRAIN_SHORTEST);

	return chirp_min(chirp_min(n, CHIRP_TRAIN_LONGEST), chirp_max(c->planned / 2, CHIRP_INITIAL));
}

#endif
