/* SPDX-License-Identifier: GPL-2.0 OR MIT OR Apache-2.0 */
/*
 * The window that brief rounds end with (CHIRP_BRIEF). Few chirps were seen by then, and none are sent behind them: it begins as what is
 * no more than slow start would have, or twice what the last round had, grows towards the estimate with each ACK, and is looked at once in a
 * round trip. As long as the flow has not most of the path it pushes as rounds on a full path do (chirp_plan()): what gives back its
 * part of a queue and has a few packets more comes to a fair share in less time than congestion avoidance takes.
 */
#ifndef WEIR_CHIRP_BRIEF_H
#define WEIR_CHIRP_BRIEF_H

/* Half of what the window lacks is a round trip's growth. */
#define CHIRP_APPROACH 2u
/* By this part of the path a window pushes, no more than CHIRP_PUSH packets and no fewer than two, */
#define CHIRP_PUSHES 64u
/* and by this part of what it lacks of the path where the estimate is used up and no queue stands. */
#define CHIRP_SEARCH 32u

/* Packets that fill the path if all of it is free: no path is faster than the first packets found it, which left together. */
CHIRP_FN u32 chirp_path(const struct chirp *c)
{
	return c->rtt_min / chirp_max(c->burst ? c->burst : c->gap, CHIRP_GAP_LEAST);
}

/*
 * The window to begin with, where `fills` packets fill the path by the estimate. All of them, if slow start would have nearly as many two round
 * trips later, and rounds grew up to here; otherwise half of the way where one is to be careful, and twice the last round's at most.
 */
CHIRP_FN u32 chirp_first_window(const struct chirp *c, u32 fills)
{
	u32 soon = CHIRP_INITIAL << chirp_min(c->rounds + 3, 16);

	if (soon >= fills - fills / 8 && !chirp_stalls(c))
		return fills;
	return chirp_min(chirp_halfway(c, c->sent, fills), 2 * c->sent);
}

/*
 * `count` packets more are acknowledged, the last of them, which left when the window was `then`, after `rtt`. The window grows until it is
 * what fills the path, a packet is marked, or a queue stands: the window of then comes back.
 */
CHIRP_PART chirp_approach(struct chirp *c, u32 then, u32 count, u32 rtt)
{
	u32 step, most;

	if (CHIRP_ABSENT(c) || c->window >= c->aim)
		return 0;
	step = CHIRP_APPROACH * c->window;
	most = chirp_max(4 * c->gap, chirp_min(c->rtt_min / 16, 2 * CHIRP_STANDS));
	if (c->round_marked || chirp_over(c, rtt) > most) {
		c->window = c->aim = chirp_max(2, chirp_min(c->window, then));
	} else {
		c->lacks += chirp_min(count, CHIRP_LONGEST) * (c->aim - c->window);
		c->window += c->lacks / step;
		c->lacks %= step;
	}
	c->gap = chirp_clamp_gap(c->rtt_min / c->window);
	return 0;
}

/* Has it come to an end: is the window not used, has it been looked at often, or is it most of the path, and as large as may be? */
CHIRP_FN int chirp_pushed(const struct chirp *c, u32 in_flight, int full, u32 stands)
{
	u32 path = chirp_path(c);

	if (in_flight < c->window / 2 || c->rounds >= CHIRP_ROUNDS_MOST)
		return 1;
	if (c->window < path / 4 * 3)
		return 0;
	if (full)
		return c->settled >= (c->round_marked ? CHIRP_SETTLES : CHIRP_SETTLES_UNMARKED);
	return c->window >= c->aim && (c->window >= path || stands > 0);
}

/* By so many packets a window pushes. */
CHIRP_FN u32 chirp_pushes(u32 path)
{
	return chirp_max(2, chirp_min(CHIRP_PUSH, path / CHIRP_PUSHES));
}

/* A round trip of the window is acknowledged. */
CHIRP_FN void chirp_push(struct chirp *c, u32 in_flight)
{
	u32 share = chirp_share(c->round_marked, c->round_acked, CHIRP_ONE), over = chirp_over(c, c->least), path = chirp_path(c);
	u32 most = chirp_min(c->rtt_min / 16, 2 * CHIRP_STANDS), own = 4 * (c->rtt_min / chirp_max(path, 1));
	u32 stands = over < own ? 0 : over;
	int full = share > CHIRP_ONE / 8 || stands > most;

	c->rounds++;
	if (chirp_pushed(c, in_flight, full, stands)) {
		c->phase = CHIRP_DONE;
		return;
	}
	if (full) {
		c->window = (u32)((u64)c->window * c->rtt_min / ((u64)c->rtt_min + 2 * (u64)over + 1));
		c->window = chirp_max(2, c->window + (c->window < path / 4 * 3 ? chirp_pushes(path) : 0));
		c->aim = c->window;
		c->settled++;
	} else if (c->window >= c->aim && !stands && c->window < path) {
		u32 part = chirp_max((path - c->window) / CHIRP_SEARCH, chirp_pushes(path));

		c->window = chirp_min(path, c->window + chirp_min(c->window, part));
		c->aim = c->window;
	}
	c->gap = chirp_clamp_gap(c->rtt_min / c->window);
	chirp_count_marks(c);
	chirp_send_window(c);
}

#endif
