/* SPDX-License-Identifier: GPL-2.0 OR MIT OR Apache-2.0 */
/*
 * Virtual queues and fair shares: the same as weir_core::steer::{VirtualQueue, FairShare, FlowQueues}.
 */
#ifndef WEIR_FAIR_H
#define WEIR_FAIR_H

#include "count.h"

/* `DEPTH` and `PACKETS` */
#define QUEUE_DEPTH 50000000ULL
#define QUEUE_PACKETS 4

/* `UNIT` */
#define FAIR_UNIT 100000ULL
/* `LOOK`, `LONGEST`, `PASSED`, `SHARE` and `SECOND` */
#define FAIR_LOOK 10000000ULL
#define FAIR_LONGEST 1000000000ULL
#define FAIR_PASSED 40000000ULL
#define FAIR_SHARE 50000000ULL
#define FAIR_SECOND 1000000000ULL
/* `LEAST` */
#define FAIR_LEAST 4096
/* `NEW_PART` and `ENTRIES` */
#define NEW_PART 32
#define ENTRIES 1000000000ULL
/* `BURST` */
#define ENTRY_BURST 32768

/* `VirtualQueue::is_permitted` */
static __always_inline bool is_permitted(struct virtual_queue *q)
{
	return (__s32)(READ(q->permitted) - READ(q->passed)) > 0;
}

/* `fits` */
static __always_inline bool fits_queue(__u64 *when, __u64 depth, __u64 time, __u64 now)
{
	__u64 due = READ64(*when), wait = due > now ? due - now : 0, most = QUEUE_PACKETS * time;

	return wait + time <= (most > depth ? most : depth);
}

/* `follow` */
static __always_inline __u64 follow(__u64 value, __u64 to, __u64 time, __u64 elapsed)
{
	__u64 all = (elapsed + time) / 1000;

	elapsed /= 1000;
	return to > value ? value + (to - value) * elapsed / all : value - (value - to) * elapsed / all;
}

/* `FairShare::look_at_new` */
static __always_inline __u64 fair_look_at_new(struct fair_share *f, __u64 elapsed)
{
	__u64 passed = READ64(f->new_passed), bytes = passed - READ64(f->new_before), average;

	if (bytes > 1ULL << 33)
		bytes = 1ULL << 33;
	WRITE64(f->new_before, passed);
	average = follow(READ64(f->new_average), bytes * FAIR_SECOND / elapsed, FAIR_PASSED, elapsed);
	WRITE64(f->new_average, average);
	return average;
}

/* `FairShare::serve_new` */
static __always_inline void fair_serve_new(struct fair_share *f, __u64 share, __u64 rate, __u64 others)
{
	__u64 left = others < 1 << 16 ? share * ((1 << 16) - others) >> 16 : 0, part;

	if (left < rate / NEW_PART)
		left = rate / NEW_PART;
	if (!left)
		left = 1;
	left = (FAIR_SECOND << TALLY_FRACTION) / left;
	WRITE64(f->new_per_byte, left ? left : 1);
	part = NEW_PART * (share << 16) / (rate ? rate : 1);
	WRITE(f->entry_part, part < 1 << 16 ? part : 1 << 16);
}

/* `FairShare::look` */
static __always_inline __u64 fair_look(struct fair_share *f, bool has_tcp, __u64 elapsed)
{
	__u64 passed = READ64(f->passed), bytes = passed - READ64(f->before), rate = READ64(f->rate);
	__u64 old = READ64(f->per_byte), average, share = rate, target, worth;
	__u64 flows = 0, most = READ(f->most), new, others;

	if (bytes > 1ULL << 33)
		bytes = 1ULL << 33;
	WRITE64(f->before, passed);
	average = follow(READ64(f->average), bytes * FAIR_SECOND / elapsed, FAIR_PASSED, elapsed);
	WRITE64(f->average, average);
	if (old)
		share = (FAIR_SECOND << TALLY_FRACTION) / old;
	if (share > rate)
		share = rate;
	if (!share)
		share = 1;
	if (has_tcp)
		flows = READ(f->flows);
	new = fair_look_at_new(f, elapsed);
	others = flows + ((average > new ? average - new : 0) << 16) / share;
	worth = (average << 16) / share;
	if (worth < 1 << 16)
		worth = 1 << 16;
	target = (rate << 16) / (worth + flows);
	if (most && most != 0xffffffff && target > most)
		target = most;
	if (target < rate / FAIR_LEAST)
		target = rate / FAIR_LEAST;
	if (old)
		target = follow(share, target, FAIR_SHARE, elapsed);
	if (!target)
		target = 1;
	average = (FAIR_SECOND << TALLY_FRACTION) / target;
	if (!average)
		average = 1;
	WRITE64(f->per_byte, average);
	fair_serve_new(f, target, rate, others);
	return average;
}

/* `FairShare::per_byte`. Verified once. */
__noinline __u64 fair_per_byte(struct fair_share *f, __u64 now, bool has_tcp)
{
	__u64 looked, elapsed;

	if (!f)
		return 0;
	looked = READ64(f->looked);
	elapsed = now > looked ? now - looked : 0;
	if (elapsed < FAIR_LOOK || __sync_val_compare_and_swap(&f->looked, looked, now) != looked)
		return READ64(f->per_byte);
	return fair_look(f, has_tcp, elapsed < FAIR_LONGEST ? elapsed : FAIR_LONGEST);
}

#endif
