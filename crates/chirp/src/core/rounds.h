/* SPDX-License-Identifier: GPL-2.0 OR MIT OR Apache-2.0 */
/*
 * Rounds: the first estimate, growth, the end, and beginning again.
 *
 * A round ends when its first chirp is acknowledged. If it then has packets left although it never paused,
 * its chirps are back to back, and there is nothing more to gain (paper, section II.B), unless the estimate
 * still falls.
 */
#ifndef WEIR_CHIRP_ROUNDS_H
#define WEIR_CHIRP_ROUNDS_H

/* Packets of the first round whose ACKs are enough for an estimate. */
#define CHIRP_ENOUGH 5u
/* Lateness behind its gap, in nanoseconds, from which a sender has nothing to send. */
#define CHIRP_LATE 1000000u
/* Congestion events with losses that may be the path's own. */
#define CHIRP_LOSSES_MOST 2u

/* Most packets in flight: a window of TCP has fewer bytes (RFC 7323 section 2.3). */
#define CHIRP_FLIGHT_MOST (1u << 30)

/* Age in nanoseconds at which measurements are old: the least of Linux's time-outs. */
#define CHIRP_STALE 200000000u
/* Most brief rounds, and most that pause. */
#define CHIRP_BRIEF_ROUNDS 8u
#define CHIRP_PAUSES 2
/*
 * Usual round trips without a mark: this multiple of those between two marks, and a few whatever the window.
 */
#define CHIRP_UNUSUAL 2u
#define CHIRP_QUIET 4u

/*
 * Begins a connection's start. Its round-trip time is `rtt`, as far as known. The structure is all zeroes
 * before.
 */
CHIRP_FN void chirp_start(struct chirp *c, u64 rtt, u32 rules)
{
	c->rules = c->given = (u16)rules;
	c->srtt = c->rtt_min = chirp_time(rtt);
	c->phase = CHIRP_FIRST;
	c->planned = CHIRP_INITIAL;
	c->gain = 2 * CHIRP_GAIN_ONE;
	c->per_ack = 8;
	c->of = CHIRP_INITIAL;
}

/* Begins chirps; a round had `before` packets until now. */
CHIRP_FN void chirp_rounds(struct chirp *c, u64 gap, u32 before, u32 deviation)
{
	c->phase = CHIRP_ROUNDS;
	c->gap = chirp_clamp_gap(gap);
	c->deviation = deviation;
	c->round_gap = c->gap;
	c->before = chirp_max(before, CHIRP_INITIAL);
	c->gain = chirp_choose_gain(c);
	c->rounds = 1;
	c->takes = ~0u;
	c->planned = chirp_plan(c);
	c->sent = 0;
	c->remembers = 0;
	c->awaits_marker = 1;
	c->window = 0;
	chirp_begin(c);
}

/* Begins again at a gap known to one part in `sure`, where a round trip had `before` packets so far. */
CHIRP_FN void chirp_resume(struct chirp *c, u64 gap, u32 before, u32 sure)
{
	c->head = c->tail;
	c->collecting = 0;
	c->samples = 0;
	c->covered = 0;
	c->queue = 0;
	c->met_queue = 0;
	c->delivers = 0;
	c->round_acked = 0;
	c->round_marked = 0;
	gap = chirp_clamp_gap(gap);
	chirp_rounds(c, gap, before, (u32)gap / sure);
}

/* Ends the chirps; the connection goes on without them. */
CHIRP_FN void chirp_stop(struct chirp *c)
{
	c->phase = CHIRP_DONE;
}

/* Returns whether the sender has paused longer than it was told to. */
CHIRP_FN int chirp_idle(const struct chirp *c, u64 now)
{
	return (u32)now - c->last_sent > 2 * c->last_gap + CHIRP_LATE;
}

/*
 * Returns whether a careful round had more than fills the path while no queue stood, or a round of trains
 * filled it but for an eighth.
 */
CHIRP_FN int chirp_arrived(const struct chirp *c)
{
	if (chirp_thinned(c))
		return c->met_queue && c->sent >= chirp_fills(c) - chirp_fills(c) / 8;
	return c->sent > chirp_fills(c) && chirp_careful(c, c->sent) && !chirp_full(c);
}

/*
 * Returns whether the next round would be longer than it may be, and either the path's room is known well
 * enough, or there are as many packets as the first ones found room for.
 */
CHIRP_FN int chirp_grown(const struct chirp *c)
{
	if (chirp_full(c) || (u64)c->sent * c->gain / CHIRP_GAIN_ONE <= chirp_most(c, c->gap))
		return 0;
	return chirp_doubt(c) <= CHIRP_ONE / 4 || c->sent > chirp_most(c, chirp_min(c->gap, c->burst)) / 2;
}

/*
 * Returns whether brief rounds should give up. They are few. If they pause, because the host holds them up or
 * the application has no data, or do not come to an end, they cannot find the path's room.
 */
CHIRP_FN int chirp_is_held_up(struct chirp *c, int paused)
{
	if (!chirp_rule(c, CHIRP_BRIEF))
		return 0;
	c->paused += paused;
	return c->paused >= CHIRP_PAUSES || c->rounds >= CHIRP_BRIEF_ROUNDS;
}

/*
 * Lets slow start go on from the window of the round where chirps cannot find the path's room, and where a
 * queue stands without marks. Flows that keep such a queue do not give way, and giving way to them gains no
 * share. Returns whether it does so.
 */
CHIRP_FN int chirp_gives_up(struct chirp *c, u32 in_flight, int paused)
{
	int contends = chirp_full(c) && !chirp_thinned(c);

	if (c->marked || !(chirp_is_held_up(c, paused) || contends))
		return 0;
	c->window = chirp_max(contends ? chirp_max(in_flight, c->sent) : in_flight, CHIRP_INITIAL);
	c->phase = CHIRP_DONE;
	return 1;
}

/*
 * Handles the ACK of a round's first chirp. The round is the last if its chirps are back to back, if the path
 * stays full, if rounds cannot grow any more, or after a number of rounds in which no chirp gave an estimate.
 */
CHIRP_PART chirp_next_round(struct chirp *c, u64 now, u32 in_flight)
{
	int left, falls, busy;

	if (CHIRP_ABSENT(c))
		return 0;
	left = chirp_room(c) > 0;
	falls = c->gap < c->round_gap - c->round_gap / 8;
	busy = !chirp_idle(c, now);
	chirp_count_marks(c);
	if (chirp_gives_up(c, in_flight, left && !busy))
		return 0;
	if ((!falls && ((left && busy && c->tight) || chirp_arrived(c))) || chirp_grown(c) || (c->rounds > 1 && chirp_stalls(c)) || (c->rounds >= CHIRP_ROUNDS_MOST && (!left || busy || chirp_full(c)))) {
		chirp_end(c, in_flight);
		return 0;
	}
	/*
	 * A round that paused, without data or held up by its host, tells no more about the path than the one
	 * before.
	 */
	c->before = chirp_max(chirp_rule(c, CHIRP_SPREAD) ? c->planned : c->sent, left && !busy && !chirp_full(c) ? c->before : CHIRP_INITIAL);
	c->gain = chirp_choose_gain(c);
	c->rounds++;
	c->takes = ~0u;
	c->planned = chirp_plan(c);
	c->sent = 0;
	c->remembers = 0;
	c->round_gap = c->gap;
	c->awaits_marker = 1;
	/* A chirp that has not begun is planned again. */
	if (!c->index)
		chirp_begin(c);
	return 0;
}

/*
 * Returns the deviation of the first estimate: the differences between the gaps of ACKs, at least a quarter.
 * A burst measures the capacity, not the part that others leave (paper, section II.A).
 */
CHIRP_FN u32 chirp_first_deviation(const struct chirp *c, u32 gap)
{
	if (!c->compared || chirp_rule(c, CHIRP_FIXED))
		return gap / 2;
	return chirp_max(gap / 4, c->differ / c->compared);
}

/* Compares the gap of an ACK of the first round with the one before. */
CHIRP_FN void chirp_compare(struct chirp *c, u32 count, u64 now)
{
	u32 gap = ((u32)now - c->ack_at) / count;

	if (c->ack_gap) {
		c->differ += gap > c->ack_gap ? gap - c->ack_gap : c->ack_gap - gap;
		c->compared++;
	}
	c->ack_gap = gap;
}

/* Begins the first round again: its packets are acknowledged or old, and told nothing. */
CHIRP_FN void chirp_first_again(struct chirp *c)
{
	c->sent = 0;
	c->first_acked = 0;
	c->all_acked = 0;
	c->ack_gap = 0;
	c->differ = 0;
	c->compared = 0;
}

/*
 * Returns whether the first round's packets left together; the last acknowledged one was sent at `sent`.
 * Otherwise the gaps of their ACKs are those of an application or of a receiver's window.
 */
CHIRP_FN int chirp_together(const struct chirp *c, u32 sent, u64 now)
{
	return chirp_rule(c, CHIRP_BURSTS) || sent - c->first_sent <= ((u32)now - c->first_at) / 2;
}

/*
 * Handles an ACK of the first round: `count` more packets, the last of them sent at `sent`, are acknowledged
 * at `now`, up to `una`.
 */
CHIRP_FN void chirp_first(struct chirp *c, u32 count, u32 sent, u32 una, u64 now)
{
	u32 spread, gap;

	c->all_acked = (u16)(c->all_acked + count);
	if (!c->first_acked) {
		c->first_acked = (u8)chirp_min(c->all_acked, CHIRP_INITIAL);
		c->first_at = (u32)now;
	} else {
		chirp_compare(c, count, now);
	}
	c->ack_at = (u32)now;
	spread = c->all_acked - c->first_acked;
	/*
	 * Before brief rounds all packets have to be acknowledged, except an odd one that a receiver may wait
	 * with.
	 */
	if (chirp_rule(c, CHIRP_BRIEF) && c->all_acked < (c->sent & ~1u))
		return;
	if (c->all_acked < CHIRP_INITIAL && (c->all_acked < CHIRP_ENOUGH || spread < 3)) {
		if (chirp_covered(c->last_end, una))
			chirp_first_again(c);
		return;
	}
	if (!chirp_together(c, sent, now))
		c->compared = spread = 0;
	/*
	 * A single ACK of everything tells nothing: slow start's rate then. The application may have paused
	 * meanwhile, too.
	 */
	gap = spread ? ((u32)now - c->first_at) / spread : c->srtt / (2 * CHIRP_INITIAL);
	gap = chirp_clamp_gap(chirp_min(gap, c->srtt / 2));
	chirp_count_marks(c);
	c->marked *= 2;
	c->burst = spread ? gap : 0;
	chirp_rounds(c, gap, c->all_acked, chirp_first_deviation(c, gap));
}

/* Handles the advance of SND.UNA to `una`, with `in_flight` packets in flight. */
CHIRP_PART chirp_acked(struct chirp *c, u32 una, u64 now, u32 in_flight, u32 flags)
{
	struct chirp_record r;
	u32 until, count;

	if (CHIRP_ABSENT(c))
		return 0;
	if (c->phase == CHIRP_DONE)
		return 0;
	in_flight = chirp_min(in_flight, CHIRP_FLIGHT_MOST);
	until = chirp_find(c, una);
	count = until - c->head;
	c->echoes = (u8)(2 * c->echoes + (flags & CHIRP_MARKED ? 1 : 0));
	if (!count) {
		chirp_heard(c, now, now - c->heard);
		return 0;
	}
	r = c->record[(until - 1) & (CHIRP_RECORDS - 1)];
	c->head = until;
	/* The rest of the initial window belongs to no round of chirps. */
	if (c->phase != CHIRP_ROUNDS || c->rounds > 1 || r.chirp) {
		c->round_acked += count;
		if (flags & CHIRP_MARKED)
			c->round_marked += count;
	}
	if (flags & CHIRP_DISORDER) {
		c->collecting = 0;
		c->samples = 0;
		c->covered = 0;
		/* The round-trip time of a packet sent twice is too long, but better than none. */
		if (!c->srtt)
			chirp_time_sample(c, chirp_time((u32)now - r.sent), 0);
		chirp_heard(c, now, now - c->heard);
	} else if (!chirp_left_behind(c, &r)) {
		chirp_sample(c, until, count, now, flags);
	}
	if (c->phase == CHIRP_HANDOVER) {
		if (!c->awaits_marker && chirp_covered(c->marker, una))
			chirp_settle(c, in_flight);
		return 0;
	}
	if (c->phase == CHIRP_FIRST)
		chirp_first(c, count, r.sent, una, now);
	else if (!c->awaits_marker && chirp_covered(c->marker, una))
		chirp_next_round(c, now, in_flight);
	return 0;
}

/*
 * Handles a loss. It ends the chirps if it can be congestion. The first losses are not, without marks and
 * with hardly any delay at the beginning of chirps. Returns whether chirps go on.
 */
CHIRP_FN int chirp_lost(struct chirp *c, u32 in_flight)
{
	u32 fills;

	if (c->phase > CHIRP_ROUNDS)
		return 0;
	in_flight = chirp_min(in_flight, CHIRP_FLIGHT_MOST);
	c->losses++;
	c->collecting = 0;
	c->samples = 0;
	c->covered = 0;
	if (!chirp_rule(c, CHIRP_FRAGILE) && c->losses <= CHIRP_LOSSES_MOST && !c->marked && !c->round_marked &&
	    c->queue < c->rtt_min / 8) {
		c->deviation += c->gap / 2;
		return 1;
	}
	fills = c->gap ? c->rtt_min / c->gap : in_flight;
	c->window = chirp_max(2, chirp_min(in_flight, chirp_max(fills, in_flight / 2)));
	c->phase = CHIRP_DONE;
	return 0;
}

/* Handles the end of an idle time, after which the measurements may be old. Returns whether chirps begin. */
CHIRP_FN int chirp_restart(struct chirp *c, u64 idle)
{
	if (chirp_rule(c, CHIRP_NO_RESTART) || c->phase == CHIRP_FIRST || idle < CHIRP_STALE + (u64)c->srtt)
		return 0;
	/* The chirps ended without an estimate. */
	if (!c->gap) {
		c->head = c->tail;
		c->phase = CHIRP_FIRST;
		c->window = 0;
		chirp_first_again(c);
		return 1;
	}
	c->rules = c->given;
	c->paused = 0;
	chirp_resume(c, c->gap, CHIRP_INITIAL, 2);
	return 1;
}

/*
 * Handles an ACK of congestion avoidance with marks. SND.UNA is `una`, SND.NXT `nxt`, the window `window`
 * packets, of which `share` of 1024 are usually marked; `rtt` is the smoothed round-trip time. Such a flow
 * has marks once in W share / 2 round trips (Alizadeh et al. 2010, section 3.3). A much longer time without
 * marks and without a queue means more capacity than before (paper, section V). A small window has doubled by
 * then. Returns whether chirps begin.
 */
CHIRP_FN int chirp_watch(struct chirp *c, u32 una, u32 nxt, u32 window, u32 share, u32 marked, u64 rtt)
{
	u32 usual, most;

	if (marked) {
		c->quiet = 0;
		c->quiet_end = nxt;
		return 0;
	}
	if (!chirp_covered(c->quiet_end, una))
		return 0;
	c->quiet_end = nxt;
	c->quiet++;
	usual = (u32)((u64)window * share / 2048);
	if (chirp_rule(c, CHIRP_ONCE) || c->phase != CHIRP_DONE || window < CHIRP_PUSH ||
	    c->quiet <= CHIRP_UNUSUAL * usual + CHIRP_QUIET)
		return 0;
	rtt = chirp_time(rtt);
	most = chirp_max((u32)rtt / window * 2, chirp_min(c->rtt_min / 64, CHIRP_STANDS));
	if (chirp_over(c, (u32)rtt) > most)
		return 0;
	c->quiet = 0;
	c->srtt = (u32)rtt;
	/* The packets in flight fill a round trip, so there is always one to acknowledge. */
	c->rules &= ~CHIRP_BRIEF;
	/* A little faster than now, because guards take part of the time. */
	chirp_resume(c, c->srtt / (window + window / 8), window, 8);
	c->floor = window;
	return 1;
}

#endif
