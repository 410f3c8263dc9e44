/* Calls the core in any order with any numbers, for sanitizers to watch: see sanitized.rs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../src/core/chirp.h"

static u64 state;

static u32 draw(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (u32)(state >> 16);
}

static void check(int holds, const char *what, u64 seed)
{
	if (holds)
		return;
	fprintf(stderr, "seed %llu: %s\n", (unsigned long long)seed, what);
	exit(1);
}

static void life(u64 seed)
{
	struct chirp *c = calloc(1, sizeof(*c));
	u64 now = draw();
	u32 una = draw(), nxt = una, i;

	chirp_start(c, (u64)draw() << (draw() % 3), draw() & 2047);
	for (i = 0; i < 4000; i++) {
		u32 wild = draw() % 64;
		u64 gap = chirp_gap(c);
		u32 in_flight = draw() % 16 ? draw() % 1000 : draw();

		check(gap <= 4ull * CHIRP_GAP_MOST || c->phase == CHIRP_FIRST, "gap", seed);
		now += wild == 0 ? (u64)draw() * 8 : draw() % 2000000;
		if (draw() % 2) {
			nxt += 1 + draw() % 1460;
			chirp_sent(c, nxt, now + gap);
		} else if (nxt != una) {
			una = wild == 1 ? draw() : una + 1 + draw() % (nxt - una);
			chirp_acked(c, una, now, in_flight, draw() & 3);
			if ((s32)(nxt - una) < 0)
				nxt = una;
		}
		if (wild == 2)
			chirp_lost(c, in_flight);
		if (wild == 3)
			chirp_restart(c, draw());
		if (wild == 4 && draw() % 8 == 0)
			chirp_stop(c);
		if (c->phase == CHIRP_DONE)
			chirp_watch(c, una, nxt, draw() % 100000, draw() % 1025, draw() % 16 == 0, draw());
		chirp_straggles(c, now);
		if (draw() % 64 == 0)
			chirp_closed(c);
		check(c->phase <= CHIRP_DONE, "phase", seed);
		/* What comes out of a 16th more still fits. */
		check(c->srtt <= 4000000000u && c->rtt_min <= 4000000000u, "round-trip time", seed);
		/* A brief round may end with what it has sent. */
		check(c->phase == CHIRP_FIRST || c->phase > CHIRP_ROUNDS || c->planned >= (c->given & CHIRP_BRIEF ? 1 : CHIRP_PUSH), "plan", seed);
		check(c->phase != CHIRP_HANDOVER || c->window >= 2, "window", seed);
		check(c->samples <= CHIRP_LONGEST && c->of <= CHIRP_LONGEST, "length", seed);
		check(c->tail - c->head <= CHIRP_RECORDS, "records", seed);
		check(c->phase == CHIRP_FIRST || (c->gap >= CHIRP_GAP_LEAST && c->gap <= CHIRP_GAP_MOST) || !c->gap,
		      "estimate", seed);
	}
	free(c);
}

int main(void)
{
	u64 seed;

	for (seed = 1; seed <= 2000; seed++) {
		state = seed * 0x9e3779b97f4a7c15ull;
		life(seed);
	}
	return 0;
}
