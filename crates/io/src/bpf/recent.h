/* SPDX-License-Identifier: GPL-2.0 OR MIT OR Apache-2.0 */
/*
 * What a processor has found out of packets lately, by a hash of their keys. One look-up here takes the place
 * of several. Programs of one processor do not interrupt each other.
 */
#ifndef WEIR_RECENT_H
#define WEIR_RECENT_H

#include "hook.h"
#include "slot.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct recent);
} recents SEC(".maps");

static __always_inline bool is_same(const struct flow_key *a, const struct flow_key *b)
{
	const __u64 *x = (const __u64 *)a, *y = (const __u64 *)b;

	return !((x[0] ^ y[0]) | (x[1] ^ y[1]) | (x[2] ^ y[2]) | (x[3] ^ y[3]) | (x[4] ^ y[4]));
}

/* A word at a time: compilers load all of them first, for which the stack has no room. */
static __always_inline void copy_key(struct flow_key *to, const struct flow_key *from)
{
	const __u64 *x = (const __u64 *)from;
	__u64 *y = (__u64 *)to;

#pragma unroll
	for (int i = 0; i < 5; i++) {
		y[i] = x[i];
		asm volatile("" ::: "memory");
	}
}

/*
 * A hash of a flow. A sender that chooses two flows makes theirs equal by chance alone: NH of UMAC (Black et
 * al. 1999), whose keys outsiders do not know.
 */
static __always_inline __u64 hash_of(const struct flow_key *key)
{
	const __u64 *words = (const __u64 *)key;
	__u64 hash = 0;

#pragma unroll
	for (int i = 0; i < 5; i++) {
		__u32 low = words[i] + config.keys[i], high = (words[i] >> 32) + (config.keys[i] >> 32);

		hash += (__u64)low * high;
	}
	return (hash ^ hash >> 32) * config.seed;
}

/*
 * Records of flows for whose sake alone a record is looked up: so few that they stay in the cache where flows
 * are too many for any.
 */
#define HOTTEST 256

/* Place of the record of packets with this key. */
static __always_inline __u32 place_of(const struct flow_key *key)
{
	return (hash_of(key) >> 40) & (config.recent - 1);
}

/* The record is one of packets with this key from now on, of which nothing is known. */
static __always_inline void begin_recent(struct recent *recent, const struct flow_key *key)
{
	copy_key(&recent->key, key);
	recent->rules = 0;
	recent->acks_tag = 0;
}

#endif
