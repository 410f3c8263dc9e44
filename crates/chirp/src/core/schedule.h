/* SPDX-License-Identifier: GPL-2.0 OR MIT OR Apache-2.0 */
/*
 * Schedule of departures: chirps with their guards, and the record of the real departures.
 *
 * The gaps within a chirp of n packets fall from γĝ by steps of 2(γ − 1)ĝ/(n − 2) to (2 − γ)ĝ, so that their
 * mean is ĝ. The guard follows its last packet.
 */
#ifndef WEIR_CHIRP_SCHEDULE_H
#define WEIR_CHIRP_SCHEDULE_H

/* Part of the chirp by which a guard exceeds ĝ at least: an eighth. */
#define CHIRP_SLACK (CHIRP_ONE / 8)
/* Least packets of a chirp that gives an estimate. */
#define CHIRP_SHORTEST 5u
/* Packets that a round grows by while the path is full. */
#define CHIRP_PUSH 8u
/* Packets of a round below which no care is needed. */
#define CHIRP_FEW 40u
/*
 * Rounds after which a flow with data has grown as far as the path, or a pushing flow has what others give
 * way by.
 */
#define CHIRP_ROUNDS_MOST 32u
/* Most corrections of the window in the handover, with marks and without. */
#define CHIRP_SETTLES 4u
#define CHIRP_SETTLES_UNMARKED 1u
/* Most delay at the beginning of chirps that may be the path's own; nanoseconds. */
#define CHIRP_STANDS 1000000u

/* Returns a part of the whole in parts of CHIRP_ONE, at most `most`. */
CHIRP_FN u32 chirp_share(u64 part, u32 whole, u32 most)
{
	u64 share = part * CHIRP_ONE / chirp_max(whole, 1);

	return share > most ? most : (u32)share;
}

/*
 * Returns the doubt in the estimates, in parts of CHIRP_ONE. It is their mean deviation plus signs that
 * others fill the queue, in which case estimates are too high: half the share of marked packets, and a 16th
 * for each waiting packet at the beginning of chirps beyond four (a chirp's own queue), up to half.
 */
CHIRP_FN u32 chirp_doubt(const struct chirp *c)
{
	u32 doubt = chirp_share(c->deviation, c->gap, 2 * CHIRP_ONE);
	u32 own = 4 * c->gap;

	if (chirp_rule(c, CHIRP_UNMARKED))
		return doubt;
	if (c->queue > own)
		doubt += chirp_share((c->queue - own) / 16, c->gap, CHIRP_ONE / 2);
	return doubt + c->marked / 2;
}

/*
 * Returns whether the path is full: more than a chirp's own packets wait when chirps begin, or more than an
 * eighth of packets is marked, in this round or on average. Then there is no free room, and a flow gets only
 * what others give way by.
 */
CHIRP_FN int chirp_full(const struct chirp *c)
{
	u32 own = chirp_max(4 * c->gap, chirp_min(c->rtt_min / 32, CHIRP_STANDS));
	u32 share = chirp_share(c->round_marked, c->round_acked, CHIRP_ONE);

	if (chirp_rule(c, CHIRP_UNMARKED))
		return 0;
	return c->queue > own || c->marked > CHIRP_ONE / 8 ||
	       (c->round_acked >= CHIRP_SHORTEST && share > CHIRP_ONE / 8);
}

/* Most packets of a round at this gap; all are remembered. */
CHIRP_FN u32 chirp_most(const struct chirp *c, u32 gap)
{
	if (!chirp_rule(c, CHIRP_BRIEF))
		return ~0u;
	return chirp_min(chirp_max(c->srtt / chirp_max(2 * gap, 1), CHIRP_INITIAL), CHIRP_RECORDS - 2);
}

/* Packets that fill the path by the estimate. */
CHIRP_FN u32 chirp_fills(const struct chirp *c)
{
	return c->rtt_min / chirp_max(c->gap, CHIRP_GAP_LEAST);
}

/*
 * Returns whether a round of this many packets needs care. Flows that begin within a round trip find the same
 * room, and do not see each other until both have taken it. Therefore a round of more than a quarter of the
 * path is spread over the round trip, where chirps of others meet its own, and goes at most half of the
 * remaining way. No care is needed if slow start, which has `slow` packets in the next round, would be
 * sooner.
 */
CHIRP_FN int chirp_careful(const struct chirp *c, u32 packets)
{
	u32 fills = chirp_fills(c), slow = CHIRP_INITIAL << chirp_min(c->rounds + 1, 16);

	if (chirp_rule(c, CHIRP_HASTY) || chirp_blind(c) || packets < CHIRP_FEW || packets <= fills / 4)
		return 0;
	return slow > fills || (packets > slow && slow < fills / 2);
}

/*
 * Packets of a round after one of `before` that would have `grown`: half of the way to a full path where care
 * is needed.
 */
CHIRP_FN u32 chirp_halfway(const struct chirp *c, u32 before, u32 grown)
{
	u32 fills = chirp_fills(c);

	if (before < fills && chirp_careful(c, grown))
		return chirp_min(grown, before + (fills - before) / 2);
	if (chirp_thinned(c) && c->met_queue)
		return chirp_min(grown, chirp_max(chirp_max(c->sent, fills), CHIRP_INITIAL));
	return grown;
}

/*
 * Returns whether a brief round did not double, because the path is full or the estimate long. A receiver's
 * window may grow a little more slowly.
 */
CHIRP_FN int chirp_stalls(const struct chirp *c)
{
	return chirp_rule(c, CHIRP_BRIEF) && c->sent < (c->sent == c->takes ? c->before + c->before / 2 : 2 * c->before);
}

/*
 * Returns the packets of a round: those before, multiplied by the gain. On a full path, whatever estimates
 * say, a round gives back twice its part of the standing queue and gains a number of packets. This is
 * additive increase and multiplicative decrease, so that several pushing flows neither fill the queue nor end
 * with different shares.
 */
CHIRP_FN u32 chirp_plan(const struct chirp *c)
{
	u32 grown = (u32)((u64)c->before * c->gain / CHIRP_GAIN_ONE), kept;

	/* Receivers delay the ACK of an odd packet. */
	if (chirp_rule(c, CHIRP_BRIEF))
		grown = chirp_min(chirp_min(grown, chirp_most(c, c->gap)) & ~1u, c->takes);
	grown = chirp_halfway(c, c->before, grown);
	if (!chirp_full(c))
		return grown;
	kept = (u32)((u64)c->before * c->rtt_min / ((u64)c->rtt_min + 2 * (u64)c->queue + 1));
	return chirp_min(grown, kept + CHIRP_PUSH);
}

/*
 * Returns the growth of rounds in eighths: twice, more when estimates repeat, less when they do not (paper,
 * section II.B).
 */
CHIRP_FN u32 chirp_choose_gain(const struct chirp *c)
{
	u32 doubt = chirp_doubt(c);

	if (chirp_rule(c, CHIRP_FIXED) || (chirp_blind(c) && !chirp_full(c)))
		return 2 * CHIRP_GAIN_ONE;
	if (doubt <= CHIRP_ONE / 8)
		return 4 * CHIRP_GAIN_ONE;
	if (doubt <= CHIRP_ONE / 4)
		return 3 * CHIRP_GAIN_ONE;
	return doubt <= CHIRP_ONE / 2 ? 2 * CHIRP_GAIN_ONE : 3 * CHIRP_GAIN_ONE / 2;
}

/* Returns γ in eighths: 2, or 3/2 when estimates repeat, which queues half as much; 1 for trains. */
CHIRP_FN u32 chirp_geometry(const struct chirp *c)
{
	if (chirp_thinned(c))
		return 8;
	if (chirp_rule(c, CHIRP_FIXED) || chirp_doubt(c) > CHIRP_ONE / 4)
		return 16;
	return 12;
}

/* Packets of a chirp: 5, 8, then 16, and more where an ACK covers several. */
CHIRP_FN u32 chirp_length(const struct chirp *c)
{
	u32 n = c->rounds <= 1 ? 5 : c->rounds == 2 ? 8 : 16;

	if (chirp_thinned(c))
		return chirp_train(c);
	if (!chirp_rule(c, CHIRP_UNSTRETCHED) && c->per_ack > 12)
		n = n * c->per_ack / 8;
	return chirp_min(n, CHIRP_LONGEST);
}

/*
 * Sets the guard behind a chirp of n packets, at most a round trip or four of the largest gaps. Chirps are
 * spread over the round, as in the paper, on a full path, where a round needs care, and with thinned ACKs.
 * Brief rounds are too short for that.
 */
CHIRP_PART chirp_choose_guard(struct chirp *c, u32 n)
{
	u64 share, guard, length;
	u32 most;

	if (CHIRP_ABSENT(c))
		return 0;
	length = (u64)(n - 1) * c->gap;
	c->tight = 1;
	if (!chirp_rule(c, CHIRP_BRIEF) &&
	    (chirp_rule(c, CHIRP_SPREAD) || chirp_thinned(c) || chirp_full(c) || chirp_careful(c, c->planned))) {
		share = (u64)c->srtt * n / chirp_max(c->planned, 1);
		c->tight = share <= length + c->gap;
		guard = c->tight ? c->gap : share - length;
	} else {
		guard = c->gap + (u64)c->gap * n * (CHIRP_SLACK + chirp_doubt(c)) / CHIRP_ONE;
	}
	most = chirp_min(chirp_max(c->srtt, CHIRP_GAP_LEAST), 4 * CHIRP_GAP_MOST);
	c->guard = guard > most ? most : (u32)guard;
	return 0;
}

/*
 * Returns whether a brief round ends before `n` more packets, so that it is no longer than half a round trip.
 */
CHIRP_FN int chirp_ends(const struct chirp *c, u32 n)
{
	return chirp_rule(c, CHIRP_BRIEF) && c->sent && c->last_sent - c->begun + (u64)n * c->gap > c->srtt / 2;
}

/* Plans the rest of the round again from the current estimate. */
CHIRP_PART chirp_replan(struct chirp *c)
{
	if (CHIRP_ABSENT(c))
		return 0;
	c->gain = chirp_choose_gain(c);
	if (!chirp_rule(c, CHIRP_FIXED))
		c->planned = chirp_plan(c);
	chirp_choose_train(c);
	return 0;
}

/* Plans the next chirp from the current estimate. */
CHIRP_PART chirp_begin(struct chirp *c)
{
	u32 n, geometry, left;
	u64 first;

	if (CHIRP_ABSENT(c))
		return 0;
	chirp_replan(c);
	n = chirp_length(c);
	geometry = chirp_geometry(c);
	if (chirp_ends(c, n))
		c->planned = chirp_min(c->planned, c->sent);
	left = c->planned > c->sent ? c->planned - c->sent : 0;
	if (left)
		n = chirp_min(n, left);
	c->index = 0;
	c->of = (u8)n;
	/* A chirp short of packets or of records measures nothing: even gaps. */
	if (n < CHIRP_SHORTEST || c->tail - c->head + n > CHIRP_RECORDS || (chirp_thinned(c) && c->sent < c->remembers)) {
		c->measures_next = 0;
		c->next_gap = c->gap;
		c->step = 0;
		chirp_choose_guard(c, n);
		return 0;
	}
	c->serial = c->serial == 0xffff ? 1 : c->serial + 1;
	c->measures_next = 1;
	c->remembers = c->sent + c->planned / CHIRP_TRAINS;
	first = (u64)c->gap * geometry / 8;
	c->next_gap = (u32)first;
	c->step = (u32)(2 * (u64)(geometry - 8) * c->gap / 8 / (n - 2));
	chirp_choose_guard(c, n);
	return 0;
}

/* Age of the n-th oldest packet in flight in nanoseconds; 0 without one. */
CHIRP_FN u32 chirp_age(const struct chirp *c, u32 n, u64 now)
{
	return c->tail - c->head <= n ? 0 : (u32)now - c->record[(c->head + n) & (CHIRP_RECORDS - 1)].sent;
}

/*
 * Returns whether a single packet is overdue without an obstacle: its receiver then waits for the next one
 * (RFC 5681 section 4.2).
 */
CHIRP_FN int chirp_straggles(const struct chirp *c, u64 now)
{
	return chirp_age(c, 0, now) > c->srtt + c->srtt / 16 && chirp_age(c, 2, now) < c->srtt / 2 && !chirp_full(c) &&
	       chirp_over(c, c->srtt) < c->rtt_min / 8;
}

/*
 * Records that the receiver has no more room than for the packets that have left. This ends a brief round,
 * and an unused window need not be too large.
 */
CHIRP_FN void chirp_closed(struct chirp *c)
{
	if (!chirp_rule(c, CHIRP_BRIEF))
		return;
	if (c->phase == CHIRP_HANDOVER)
		c->closed = 1;
	if (c->phase != CHIRP_ROUNDS || !c->sent)
		return;
	c->takes = c->planned = c->sent;
	c->of = c->index;
}

/* Gap behind the packet that leaves next, in nanoseconds. */
CHIRP_FN u64 chirp_gap(const struct chirp *c)
{
	switch (c->phase) {
	case CHIRP_FIRST:
		return chirp_rule(c, CHIRP_BURSTS) && c->sent == 4 ? c->srtt / 2 : 0;
	case CHIRP_ROUNDS:
		return c->index + 1 >= c->of ? c->guard : c->next_gap;
	case CHIRP_HANDOVER:
		return c->gap;
	default:
		return 0;
	}
}

/*
 * Packets that the round has left to send, at least those of a chirp that has begun. Has no meaning once the
 * window is known.
 */
CHIRP_FN u32 chirp_room(const struct chirp *c)
{
	u32 left = c->planned > c->sent ? c->planned - c->sent : 0;

	return c->index ? chirp_max(left, c->of - c->index) : left;
}

CHIRP_FN void chirp_note(struct chirp *c, u32 end, u64 now, u32 chirp)
{
	struct chirp_record *r = &c->record[c->tail & (CHIRP_RECORDS - 1)];

	if (c->tail - c->head >= CHIRP_RECORDS)
		return;
	r->end = end;
	r->sent = (u32)now;
	r->chirp = (u16)chirp;
	r->index = c->index;
	r->of = c->of;
	c->tail++;
}

/* Records a packet of the first round that has left; see chirp_sent(). */
CHIRP_FN void chirp_sent_first(struct chirp *c, u32 end, u64 now)
{
	c->last_gap = (u32)chirp_gap(c);
	c->last_sent = (u32)now;
	c->last_end = end;
	if (!c->sent)
		c->first_sent = (u32)now;
	c->sent++;
	chirp_note(c, end, now, 0);
}

/* Records that a packet of new data has left, whose last byte is in front of `end`. */
CHIRP_PART chirp_sent(struct chirp *c, u32 end, u64 now)
{
	if (CHIRP_ABSENT(c))
		return 0;
	if (c->phase == CHIRP_FIRST)
		chirp_sent_first(c, end, now);
	if (c->phase == CHIRP_HANDOVER) {
		c->last_end = end;
		if (c->awaits_marker)
			c->marker = end;
		c->awaits_marker = 0;
		chirp_note(c, end, now, chirp_min(c->window, 0xffff));
	}
	if (c->phase != CHIRP_ROUNDS)
		return 0;
	c->last_gap = (u32)chirp_gap(c);
	c->last_sent = (u32)now;
	if (!c->sent)
		c->begun = (u32)now;
	c->sent++;
	/*
	 * Brief rounds begin when all of the one before is acknowledged, except an odd packet that the
	 * receiver may wait with.
	 */
	if (chirp_rule(c, CHIRP_BRIEF) && c->sent > 1) {
		c->marker = c->last_end;
		c->awaits_marker = 0;
	}
	/* Receivers may wait with an odd packet at the end of a train. */
	if (chirp_thinned(c) && c->awaits_marker && c->index + 2 >= c->of) {
		c->marker = end;
		c->awaits_marker = 0;
	}
	c->last_end = end;
	if (c->measures_next || !chirp_thinned(c))
		chirp_note(c, end, now, c->measures_next ? c->serial : 0);
	c->next_gap = c->next_gap > c->step ? c->next_gap - c->step : 0;
	c->index++;
	if (c->index < c->of)
		return 0;
	if (c->awaits_marker) {
		c->marker = end;
		c->awaits_marker = 0;
	}
	chirp_begin(c);
	return 0;
}

/* Counts the marks of a finished round. */
CHIRP_FN void chirp_count_marks(struct chirp *c)
{
	u32 share = c->round_marked * CHIRP_ONE / chirp_max(c->round_acked, 1);

	c->marked = (c->marked + share) / 2;
	c->round_acked = 0;
	c->round_marked = 0;
}

/* Begins a round of the handover. */
CHIRP_FN void chirp_send_window(struct chirp *c)
{
	c->marker = c->last_end;
	c->awaits_marker = 0;
	c->least = 0;
	c->round_acked = 0;
	c->round_marked = 0;
}

#endif
