/* SPDX-License-Identifier: GPL-2.0 OR MIT OR Apache-2.0 */
/* The core as functions for other languages; src/lib.rs declares them, too. */
#include "chirp.h"

struct chirp_report {
	u32 phase;
	u32 gap;
	u32 deviation;
	u32 srtt;
	u32 rtt_min;
	u32 gain;
	u32 marked;
	u32 window;
	u32 chirps;
	u32 unusable;
	u32 rounds;
	u32 losses;
};

u32 weir_chirp_size(void)
{
	return sizeof(struct chirp);
}

void weir_chirp_start(struct chirp *c, u64 rtt, u32 rules)
{
	chirp_start(c, rtt, rules);
}

u64 weir_chirp_gap(const struct chirp *c)
{
	return chirp_gap(c);
}

u32 weir_chirp_room(const struct chirp *c)
{
	return chirp_room(c);
}

void weir_chirp_sent(struct chirp *c, u32 end, u64 now)
{
	chirp_sent(c, end, now);
}

void weir_chirp_closed(struct chirp *c)
{
	chirp_closed(c);
}

void weir_chirp_acked(struct chirp *c, u32 una, u64 now, u32 in_flight, u32 flags)
{
	chirp_acked(c, una, now, in_flight, flags);
}

u32 weir_chirp_lost(struct chirp *c, u32 in_flight)
{
	return chirp_lost(c, in_flight) != 0;
}

void weir_chirp_stop(struct chirp *c)
{
	chirp_stop(c);
}

u32 weir_chirp_restart(struct chirp *c, u64 idle)
{
	return chirp_restart(c, idle) != 0;
}

u32 weir_chirp_watch(struct chirp *c, u32 una, u32 nxt, u32 window, u32 share, u32 marked, u64 rtt)
{
	return chirp_watch(c, una, nxt, window, share, marked, rtt) != 0;
}

struct chirp_report weir_chirp_report(const struct chirp *c)
{
	return (struct chirp_report){
		.phase = c->phase,
		.gap = c->gap,
		.deviation = c->deviation,
		.srtt = c->srtt,
		.rtt_min = c->rtt_min,
		.gain = c->gain,
		.marked = c->marked,
		.window = c->window,
		.chirps = c->chirps,
		.unusable = c->unusable,
		.rounds = c->rounds,
		.losses = c->losses,
	};
}
