/* SPDX-License-Identifier: GPL-2.0 OR MIT OR Apache-2.0 */
/*
 * The window at the end of brief rounds (CHIRP_BRIEF). Few chirps were seen by then, and none follow. The
 * window begins as that of the next round, grows towards the estimate with each ACK, and is reviewed once in
 * a round trip.
 *
 * While the flow has less than most of the path, it pushes as rounds on a full path do (chirp_plan()). A
 * window that gives back its part of a queue and gains a few packets comes to a fair share sooner than by
 * congestion avoidance. Two flows that begin within a round trip may still have found the same room. Packets
 * delivered while the queue stands tell each its share long before a round trip is over.
 */
#ifndef WEIR_CHIRP_BRIEF_H
#define WEIR_CHIRP_BRIEF_H

/* A window pushes by this part of the path, no more than CHIRP_PUSH packets and no fewer than two, ... */
#define CHIRP_PUSHES 64u
/* ... and by this part of the path that it lacks, where the estimate is used up and no queue stands. */
#define CHIRP_SEARCH 32u
/*
 * Packets acknowledged while a queue stands, and part of the window, that suffice to tell the rate of
 * delivery.
 */
#define CHIRP_TELLING 16u
#define CHIRP_TELLS 8u
/* Most that a receiver is expected to open its window by in a round trip, as a factor. */
#define CHIRP_OPENS 4u
/* Divisor of the part that a window keeps at least when it is cut at once. */
#define CHIRP_KEEPS 4u

/* A window is cut once in a round trip: at its end, or at once. */
enum {
	CHIRP_UNCUT,
	CHIRP_CUT,
	CHIRP_CUT_AT_ONCE,
};

/*
 * Packets that fill the path if all of it is free. No path is faster than the first packets, which left
 * together, found it.
 */
CHIRP_FN u32 chirp_path(const struct chirp *c)
{
	return c->rtt_min / chirp_max(c->burst ? c->burst : c->gap, CHIRP_GAP_LEAST);
}

/* Delay that may be the path's own, or that of another flow's burst. */
CHIRP_FN u32 chirp_tolerates(const struct chirp *c)
{
	return chirp_max(4 * c->gap, chirp_min(c->rtt_min / 16, 2 * CHIRP_STANDS));
}

/*
 * Returns the window to begin with; `fills` packets fill the path by the estimate. It is all of them if
 * estimates repeat and slow start would have nearly as many two round trips later. Otherwise it is the window
 * of the next round, at most twice the last one's where rounds have ceased to grow.
 */
CHIRP_FN u32 chirp_first_window(const struct chirp *c, u32 fills)
{
	u32 soon = CHIRP_INITIAL << chirp_min(c->rounds + 3, 16), gain = chirp_choose_gain(c);

	if (chirp_stalls(c))
		return chirp_min(chirp_halfway(c, c->sent, fills), 2 * c->sent);
	if (soon >= fills - fills / 8 && gain >= 4 * CHIRP_GAIN_ONE)
		return fills;
	return chirp_halfway(c, c->sent, chirp_min(fills, (u32)((u64)c->sent * gain / CHIRP_GAIN_ONE)));
}

/*
 * Counts `count` further packets acknowledged at `now`, the last of them after `rtt`. Packets delivered while
 * a queue stands are the window's share of the path, whatever other flows have. The part beyond it only
 * queues. Returns whether the window was cut to the share.
 */
CHIRP_PART chirp_cut_at_once(struct chirp *c, u32 count, u32 rtt, u32 now)
{
	u32 share, passed;

	if (CHIRP_ABSENT(c) || c->cut == CHIRP_CUT_AT_ONCE)
		return 0;
	passed = now - c->stands_at;
	if (chirp_over(c, rtt) <= chirp_tolerates(c)) {
		c->stands = 0;
		return 0;
	}
	if (!c->stands || passed > rtt) {
		c->stands = 1;
		c->stands_at = now;
		c->delivered = 0;
		return 0;
	}
	c->delivered += chirp_min(count, CHIRP_RECORDS);
	if (c->delivered < chirp_max(CHIRP_TELLING, c->window / CHIRP_TELLS))
		return 0;
	c->stands = 0;
	share = chirp_max(c->window / CHIRP_KEEPS, (u32)((u64)c->rtt_min * c->delivered / chirp_max(passed, 1)));
	if (share >= c->window)
		return 0;
	c->window = c->aim = chirp_max(2, share);
	c->gap = chirp_clamp_gap(c->rtt_min / c->window);
	c->cut = CHIRP_CUT_AT_ONCE;
	c->settled++;
	chirp_send_window(c);
	return 1;
}

/*
 * Grows the window after an ACK of `count` packets, the last of which left under the window `then` and took
 * `rtt`. The window grows by what it lacks in a round trip, until it fills the path, a packet is marked, or a
 * queue stands. In the last two cases the window `then` comes back.
 */
CHIRP_PART chirp_approach(struct chirp *c, u32 then, u32 count, u32 rtt)
{
	u32 more;

	if (CHIRP_ABSENT(c) || c->window >= c->aim || c->cut)
		return 0;
	if (c->round_marked || chirp_over(c, rtt) > chirp_tolerates(c)) {
		c->window = c->aim = chirp_max(2, chirp_min(c->window, then));
	} else {
		c->lacks += chirp_min(count, CHIRP_LONGEST) * (c->aim - c->window);
		more = c->lacks / c->window;
		c->lacks -= more * c->window;
		c->window += more;
	}
	c->gap = chirp_clamp_gap(c->rtt_min / c->window);
	return 0;
}

/* Returns whether the window is most of the path, and as large as it may be or reviewed often enough. */
CHIRP_FN int chirp_pushed(const struct chirp *c, int full, u32 stands)
{
	u32 path = chirp_path(c);

	if (c->window < path / 4 * 3)
		return 0;
	if (full)
		return c->settled >= (c->round_marked ? CHIRP_SETTLES : CHIRP_SETTLES_UNMARKED);
	return c->window >= c->aim && (c->window >= path || stands > 0);
}

/* Packets that a window pushes by. */
CHIRP_FN u32 chirp_pushes(u32 path)
{
	return chirp_max(2, chirp_min(CHIRP_PUSH, path / CHIRP_PUSHES));
}

/* Adapts the window after a round trip that had a queue of `stands` nanoseconds, or met a full path. */
CHIRP_FN void chirp_push_on(struct chirp *c, int full, u32 over, u32 stands)
{
	u32 path = chirp_path(c);

	if (full) {
		c->window = (u32)((u64)c->window * c->rtt_min / ((u64)c->rtt_min + over + 1));
		c->window = chirp_max(2, c->window + (c->window < path / 4 * 3 ? chirp_pushes(path) : 0));
		c->aim = c->window;
		c->settled++;
		c->cut = CHIRP_CUT;
	} else if (c->window >= c->aim && !stands && c->window < path) {
		u32 part = chirp_max((path - c->window) / CHIRP_SEARCH, chirp_pushes(path));

		c->window = chirp_min(path, c->window + chirp_min(c->window, part));
		c->aim = c->window;
	}
}

/* Packets of the window that left in this round trip. */
CHIRP_FN u32 chirp_used(const struct chirp *c, u32 in_flight)
{
	return chirp_max(in_flight, c->round_acked);
}

/* Returns whether the receiver had no room for a good part of the window. */
CHIRP_FN int chirp_unused(const struct chirp *c, u32 in_flight)
{
	return c->closed && chirp_used(c, in_flight) < c->window - c->window / 8;
}

/*
 * Reviews the window after a round trip. Packets that left before a cut tell nothing about the new window.
 * Neither do packets that the receiver has no room for: while its room grows, the window is sent at its gaps,
 * as far as it may grow in a round trip. The review ends where the application has less data.
 */
CHIRP_FN void chirp_push(struct chirp *c, u32 in_flight)
{
	u32 share = chirp_share(c->round_marked, c->round_acked, CHIRP_ONE), over = chirp_over(c, c->least), path = chirp_path(c);
	u32 own = 4 * (c->rtt_min / chirp_max(path, 1)), stands = over < own ? 0 : over;
	int full = share > CHIRP_ONE / 8 || stands > chirp_min(c->rtt_min / 16, 2 * CHIRP_STANDS);
	int unused = chirp_unused(c, in_flight), cut = c->cut;

	c->rounds++;
	c->cut = CHIRP_UNCUT;
	c->closed = 0;
	if (c->rounds >= CHIRP_ROUNDS_MOST || (!unused && (in_flight < c->window / 2 || (!cut && chirp_pushed(c, full, stands))))) {
		c->phase = CHIRP_DONE;
		return;
	}
	if (unused)
		c->window = chirp_min(c->window, chirp_max(CHIRP_OPENS * chirp_used(c, in_flight), CHIRP_INITIAL));
	if (!cut && (full || !unused))
		chirp_push_on(c, full, over, stands);
	c->gap = chirp_clamp_gap(c->rtt_min / c->window);
	chirp_count_marks(c);
	chirp_send_window(c);
}

#endif
