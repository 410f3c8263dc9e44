/* SPDX-License-Identifier: GPL-2.0 OR MIT OR Apache-2.0 */
/* Look-up of a segment's slot, its verdict and its engine. */
#ifndef WEIR_LOOKUP_H
#define WEIR_LOOKUP_H

#include "recent.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, struct flow_key);
	__type(value, struct flow);
} flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct flow_key);
	__type(value, __u32);
} passing SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 65536);
	__type(key, __u32);
	__type(value, struct slot);
} slots SEC(".maps");

#if SEVERAL
/* The number of the engine that has the flows of an address of the LAN, where that is not the first. */
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, struct home_key);
	__type(value, __u32);
} homes SEC(".maps");
#endif

/*
 * Is the slot still in use under this tag? The hooks' line of memory is asked for at the same time as the
 * gateway's: among very many flows neither is in the cache.
 */
static __always_inline bool is_in_use(struct slot *slot, __u32 tag)
{
	__u32 last = READ(slot->last);

	asm volatile("" : : "r"(last));
	return READ(slot->tag) == tag;
}

/*
 * The slot of the flow that the gateway named; NULL: none, or its entry is of a flow that is gone. The key is
 * on the stack: Linux 6.1 looks up none that a function was given.
 */
static __always_inline struct slot *slot_of(struct flow_key *key, struct packet *p)
{
	struct flow *flow = bpf_map_lookup_elem(&flows, key);
	struct slot *slot;
	__u32 number, tag;

	if (!flow)
		return NULL;
	number = READ(flow->slot);
	tag = READ(flow->tag);
	p->use = tag;
	p->slot = number;
	slot = bpf_map_lookup_elem(&slots, &number);
	return slot && tag && is_in_use(slot, tag) ? slot : NULL;
}

/* As above, for a flow that is likely to have come lately. */
static __always_inline struct slot *recent_slot(struct flow_key *key, struct packet *p)
{
	__u32 place = place_of(key) & (HOTTEST - 1), number;
	struct recent *recent = bpf_map_lookup_elem(&recents, &place);
	struct slot *slot;
	bool same;

	if (!recent)
		return NULL;
	same = is_same(&recent->key, key);
	if (same && recent->acks_tag) {
		number = recent->acks;
		slot = bpf_map_lookup_elem(&slots, &number);
		if (slot && is_in_use(slot, recent->acks_tag)) {
			p->use = recent->acks_tag;
			p->slot = number;
			return slot;
		}
	}
	slot = slot_of(key, p);
	if (!slot)
		return NULL;
	if (!same)
		begin_recent(recent, key);
	recent->acks = p->slot;
	recent->acks_tag = p->use;
	return slot;
}

/* Exchanges the ends of a flow, in place: the stack has no room for another key. */
static __always_inline void reverse(struct flow_key *key)
{
	__u64 *src = (__u64 *)key->src, *dst = (__u64 *)key->dst, first = src[0], second = src[1];
	__be16 port = key->sport;

	src[0] = dst[0];
	src[1] = dst[1];
	dst[0] = first;
	dst[1] = second;
	key->sport = key->dport;
	key->dport = port;
}

/* A segment of data passes, the headers of which the engine asked for (Slot::answers). Verified once. */
__noinline int asked_for(struct packet *p)
{
	__u32 number, asked, answered;
	struct flow_key key;
	struct slot *slot;
	struct flow *flow;

	if (!p)
		return false;
	key = p->key;
	reverse(&key);
	flow = bpf_map_lookup_elem(&flows, &key);
	if (!flow)
		return false;
	number = READ(flow->slot);
	slot = bpf_map_lookup_elem(&slots, &number);
	if (!slot || !READ(flow->tag) || READ(slot->tag) != READ(flow->tag))
		return false;
	asked = READ(slot->asked);
	answered = READ(slot->answered);
	return asked != answered && __sync_val_compare_and_swap(&slot->answered, answered, asked) == answered;
}

#if SEVERAL
/*
 * The number of the engine that has the flows of a packet's address on the LAN's side, of both directions.
 * Verified once.
 */
__noinline __u32 home_of(struct packet *p, __u32 ingress)
{
	struct home_key key = { .bits = 128 };
	__u32 *home;

	if (!p)
		return 0;
	__builtin_memcpy(key.address, ingress ? p->key.dst : p->key.src, sizeof(key.address));
	home = bpf_map_lookup_elem(&homes, &key);
	return home ? READ(*home) : 0;
}

/*
 * Finds the engine of a packet, which has been the first one so far, and the slot of its flow if it has one.
 */
static __always_inline struct slot *find_engine(struct hook *h, struct packet *p, bool may_have_slot)
{
	struct slot *slot = may_have_slot ? recent_slot(&p->key, p) : NULL;
	__u32 number = slot ? p->slot / config.slots : home_of(p, h->ingress);
	struct hooks *engine;

	engine = bpf_map_lookup_elem(&hooks, &number);
	if (engine) {
		h->engine = engine;
		h->number = number;
	}
	return slot;
}
#endif

static __always_inline bool passes(struct hook *h, struct packet *p)
{
	__u32 *generation = bpf_map_lookup_elem(&passing, &p->key);

	return generation && READ(*generation) == READ(h->engine->generation);
}

#endif
