/* SPDX-License-Identifier: GPL-2.0 OR MIT OR Apache-2.0 */
/*
 * Bounds of classes: the class of a packet by compiled rules (weir_core::gateway::Rules), and the same arithmetic as
 * weir_core::steer::{admits, Bound}. What has no record is classified, never let pass.
 */
#ifndef WEIR_BOUND_H
#define WEIR_BOUND_H

#include "count.h"
#include "lookup.h"

/* Classes above one with flows, at most. */
#define DEEPEST 8
/* `STAYS`: TCP counts as there for so many units of 2^23 ns after its last segment. */
#define TCP_STAYS 358
/* A flow that is not controlled may have been looked up in so many of these units. */
#define UNIT_SHIFT 23

/* Prefixes of all engines and directions, of both halves. */
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, struct rule_key);
	__type(value, struct group);
} rules SEC(".maps");

/* Of each engine two halves. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct condition);
} conditions SEC(".maps");

/* Place of each class of the configuration: of each engine two halves. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} places SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct bound);
} bounds SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct recent);
} recents SEC(".maps");

/* The key that is looked up: the stack has no room for it. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct rule_key);
} sought SEC(".maps");

static __always_inline __u32 rules_of(struct hook *h)
{
	return h->ingress ? READ(h->engine->rules[1]) : READ(h->engine->rules[0]);
}

static __always_inline __u32 engine_number(struct hook *h)
{
#if SEVERAL
	return h->number;
#else
	return 0;
#endif
}

/* Headers of a packet that are counted for each of the packets that a giant one stands for. */
static __always_inline __u32 headers(struct packet *p)
{
	return p->l4 - p->l3 + (p->other ? sizeof(struct udp) : sizeof(struct tcp) + p->options);
}

static __always_inline __u64 packets_of(struct hook *h)
{
	__u32 packets = h->skb->gso_size ? h->skb->gso_segs : 1;

	return packets ? packets : 1;
}

static __always_inline __u64 bytes_of(struct hook *h, struct packet *p, __u64 packets)
{
	return p->end - p->l3 + (packets - 1) * headers(p);
}

/* `Condition::takes`, without branches: the verifier follows each of them for each condition. */
static __always_inline bool condition_takes(const struct condition *c, const struct flow_key *key)
{
	const __u64 *src = (const __u64 *)key->src, *dst = (const __u64 *)key->dst;
	__u64 outer = bpf_ntohs(key->outer), inner = bpf_ntohs(key->inner);
	__s64 sport = bpf_ntohs(key->sport), dport = bpf_ntohs(key->dport);
	__u64 flags = c->flags, differ, outside, other;

	differ = ((src[0] ^ c->src[0]) & c->src_mask[0]) | ((src[1] ^ c->src[1]) & c->src_mask[1]) |
		 ((dst[0] ^ c->dst[0]) & c->dst_mask[0]) | ((dst[1] ^ c->dst[1]) & c->dst_mask[1]);
	/* Negative: a port is out of its range. */
	outside = (sport - c->sports[0]) | (c->sports[1] - sport) | (dport - c->dports[0]) | (c->dports[1] - dport);
	/* A mask of all ones where a flag is set. */
	other = ((outer & 0xfff) ^ c->vlan) & -(flags & 1);
	other |= ((outer >> 12 << 4 | inner >> 12) ^ c->protocol) & -(flags >> 1 & 1);
	differ |= other | (outside >> 63);
	/* Not of IPv4: the first 12 bytes are others than those of a mapped address. */
	other = src[0] | ((__u32)src[1] ^ bpf_htonl(0xffff));
	differ |= (flags >> 2 & 1) & ~((other | -other) >> 63);
	other = dst[0] | ((__u32)dst[1] ^ bpf_htonl(0xffff));
	differ |= (flags >> 3 & 1) & ~((other | -other) >> 63);
	return !differ;
}

/* The first class, before `best`, of so many conditions; `best` if there is none. */
static __always_inline __u32 of_conditions(struct flow_key *key, __u32 first, __u32 count, __u32 best)
{
	for (__u32 i = 0; i < MOST_CONDITIONS; i++) {
		struct condition *condition;
		__u32 number = first + i;

		if (i >= count)
			break;
		condition = bpf_map_lookup_elem(&conditions, &number);
		if (!condition)
			break;
		if (condition_takes(condition, key))
			return condition->class < best ? condition->class : best;
	}
	return best;
}

/* The place of a packet's class by the rules that hold; NO_CLASS: it has none. */
__noinline __u32 classify(struct flow_key *key, __u32 word, __u32 engine, __u32 ingress)
{
	__u32 half = word & RULES_HALF, from, best = NO_CLASS, *place, number;
	struct rule_key *at;

	number = 0;
	at = bpf_map_lookup_elem(&sought, &number);
	if (!key || !at)
		return NO_CLASS;
	from = (engine * 2 + half) * config.conditions;
	at->engine = engine;
	for (__u32 part = PART_SRC; part <= PART_ANY; part++) {
		struct group *group;
		__be16 id = bpf_htons(bpf_ntohs(key->outer) & 0xfff);

		if (!(word & RULES_PARTS << part))
			continue;
		at->table = half | (ingress ? 2 : 0) | part << 2;
		at->bits = 32;
		__builtin_memset(at->prefix, 0, sizeof(at->prefix));
		if (part == PART_SRC || part == PART_DST) {
			at->bits = 144;
			__builtin_memcpy(at->prefix, part == PART_SRC ? key->src : key->dst, sizeof(at->prefix));
		} else if (part == PART_VLAN) {
			__builtin_memcpy(at->prefix, &id, sizeof(id));
		} else if (part == PART_SPORT) {
			__builtin_memcpy(at->prefix, &key->sport, sizeof(id));
		} else if (part == PART_DPORT) {
			__builtin_memcpy(at->prefix, &key->dport, sizeof(id));
		} else {
			at->bits = 16;
		}
		group = bpf_map_lookup_elem(&rules, at);
		if (!group)
			continue;
		if (group->count)
			best = of_conditions(key, from + group->first, group->count, best);
		if (group->class < best)
			best = group->class;
	}
	if (best >= config.classes)
		return NO_CLASS;
	number = (engine * 2 + half) * config.classes + best;
	place = bpf_map_lookup_elem(&places, &number);
	return place ? *place : NO_CLASS;
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

/* The number of the slot of the flow whose data this is, and its tag. */
static __always_inline __u32 slot_of_data(struct flow_key *key, __u32 *tag)
{
	struct flow *flow;
	struct slot *slot;
	__u32 number;

	reverse(key);
	flow = bpf_map_lookup_elem(&flows, key);
	reverse(key);
	if (!flow)
		return NO_SLOT;
	number = READ(flow->slot);
	*tag = READ(flow->tag);
	slot = bpf_map_lookup_elem(&slots, &number);
	return slot && *tag && READ(slot->tag) == *tag ? number : NO_SLOT;
}

static __always_inline bool is_same(const struct flow_key *a, const struct flow_key *b)
{
	const __u64 *x = (const __u64 *)a, *y = (const __u64 *)b;

	return !((x[0] ^ y[0]) | (x[1] ^ y[1]) | (x[2] ^ y[2]) | (x[3] ^ y[3]) | (x[4] ^ y[4]));
}

/* Has what was found out of a flow become another one since? */
static __always_inline bool holds(struct recent *recent, bool tcp, __u32 unit)
{
	struct slot *slot;
	__u32 number = recent->slot;

	if (!tcp)
		return true;
	if (number == NO_SLOT)
		return recent->until == unit;
	slot = bpf_map_lookup_elem(&slots, &number);
	return slot && READ(slot->tag) == recent->tag;
}

/* What is known of packets with this key: from lately, or found out. */
static __always_inline struct recent *known(struct hook *h, struct flow_key *key, bool tcp, __u32 unit)
{
	const __u64 *words = (const __u64 *)key;
	__u32 word = rules_of(h), number;
	struct recent *recent;
	__u64 hash;

	hash = (words[0] ^ words[2] * 3) + (words[1] ^ words[3] * 5) * config.seed + words[4];
	hash = (hash ^ hash >> 32) * config.seed;
	number = (hash >> 40) & (config.recent - 1);
	recent = bpf_map_lookup_elem(&recents, &number);
	if (!recent)
		return NULL;
	if (recent->rules == word && is_same(&recent->key, key) && holds(recent, tcp, unit))
		return recent;
	recent->key = *key;
	recent->rules = word;
	recent->place = classify(&recent->key, word, engine_number(h), h->ingress);
	recent->slot = tcp ? slot_of_data(&recent->key, &recent->tag) : NO_SLOT;
	recent->until = unit;
	return recent;
}

/* `Bound::has_room` */
static __always_inline bool has_room(__u64 due, __u32 room, __u64 time, __u64 now)
{
	__s64 wait = due - now;

	return wait <= 0 || wait + time <= (__u64)room * 1000;
}

/* `Bound::is_within` */
static __always_inline bool bound_within(struct bound *b, __u64 cost, __u64 now)
{
	__u64 per_byte = READ64(b->per_byte);

	return !per_byte || has_room(READ64(b->due), READ(b->room), served(cost, per_byte), now);
}

static __always_inline void bound_spend(struct bound *b, __u64 cost, __u64 now)
{
	__u64 per_byte = READ64(b->per_byte);

	if (per_byte)
		charge(&b->due, served(cost, per_byte), now);
}

/* The bounds of classes above one: are they kept, or, with `spends`, charged. */
static __always_inline bool above(__u32 next, __u64 cost, __u64 now, bool spends)
{
	for (int i = 0; i < DEEPEST - 1; i++) {
		struct bound *b;
		__u32 number = next - 1;

		if (!next)
			break;
		b = bpf_map_lookup_elem(&bounds, &number);
		if (!b)
			break;
		if (spends)
			bound_spend(b, cost, now);
		else if (!bound_within(b, cost, now))
			return false;
		next = READ(b->above);
	}
	return true;
}

enum kind {
	KIND_HELD,
	KIND_FREE,
	KIND_COUNTED,
};

/* Packets with data that come as one. */
struct load {
	__u64 packets;
	__u64 bytes;
	__u64 payload;
	enum kind kind;
};

/* `Bound::cost` */
static __always_inline __u64 cost_of(__u32 counts, const struct load *load)
{
	__u64 most = load->bytes / 4 * 3;

	if (!(counts & COUNTS_PAYLOAD) || load->kind != KIND_HELD)
		return load->bytes + load->packets * (counts & 0xffff);
	return load->payload > most ? load->payload : most;
}

/* `admits` */
static __always_inline bool admits(struct hook *h, __u32 place, const struct load *load, __u64 coarse)
{
	struct bound *b = bpf_map_lookup_elem(&bounds, &place);
	struct tally *tally = NULL;
	__u32 counts, unit = coarse >> UNIT_SHIFT, next;
	bool own, fits, beside_tcp;
	__u64 cost;

	if (!b)
		return true;
	counts = READ(b->counts);
	next = READ(b->above);
	cost = cost_of(counts, load);
	own = counts & COUNTS_OWN &&
	      has_room(READ64(b->own_due), READ(b->own_room), served(cost, READ64(b->own_per_byte)), coarse);
	fits = bound_within(b, cost, coarse) && (own || !next || above(next, cost, coarse, false));
	beside_tcp = unit - READ(b->tcp) <= TCP_STAYS;
	if (load->kind != KIND_HELD) {
		tally = bpf_map_lookup_elem(&tallies, &place);
		if (!tally)
			return true;
	}
	if (!fits || (tally && load->kind == KIND_FREE &&
		      !tally_admits(tally, load->packets, load->bytes, now(h), beside_tcp))) {
		__sync_fetch_and_add(&b->dropped, load->packets);
		__sync_fetch_and_add(&b->dropped_bytes, load->bytes);
		return false;
	}
	if (tally && load->kind == KIND_COUNTED &&
	    !tally_passes(tally, load->packets, load->bytes, now(h), beside_tcp, true))
		return false;
	bound_spend(b, cost, coarse);
	if (next)
		above(next, cost, coarse, true);
	if (own)
		charge(&b->own_due, served(cost, READ64(b->own_per_byte)), coarse);
	if (load->kind == KIND_HELD) {
		if (READ(b->tcp) != unit)
			WRITE(b->tcp, unit);
		__sync_fetch_and_add(&b->held, cost);
	} else if (load->kind == KIND_FREE) {
		__sync_fetch_and_add(&b->free, load->bytes);
	}
	return true;
}

/* Packets with data in a direction with bounds, as `find_class` tells of them: the place of their class, and their kind above it. */
#define KIND_SHIFT 32

/* Words of the engine with this number, and the counters. False: there are none. */
static __always_inline bool begin(struct hook *h, __u32 number)
{
	__u32 zero = 0;

	h->count = bpf_map_lookup_elem(&counters, &zero);
	h->engine = bpf_map_lookup_elem(&hooks, &number);
#if SEVERAL
	h->number = number;
#endif
	return h->count && h->engine;
}

/*
 * Finds the class and the kind of a packet with data. This function and the next are verified once, and not for each state
 * in which they are called; together their variables would not fit the stack.
 */
__noinline __u64 find_class(struct __sk_buff *skb, struct packet *p, __u32 number, __u32 ingress)
{
	struct hook h = { .skb = skb, .ingress = ingress };
	enum kind kind = KIND_COUNTED;
	struct recent *recent;
	__u32 fields;

	if (!p || !begin(&h, number))
		return NO_CLASS;
	fields = READ(*(ingress ? &h.engine->count_in : &h.engine->count_out));
	if (p->other) {
		/* A port that no rule looks at, chosen anew for each packet, costs no look-up. */
		keep_fields(&p->key, fields);
		recent = known(&h, &p->key, false, 0);
	} else {
		recent = known(&h, &p->key, true, bpf_ktime_get_coarse_ns() >> UNIT_SHIFT);
	}
	if (!recent)
		return NO_CLASS;
	if (recent->slot != NO_SLOT)
		kind = KIND_HELD;
	else if (!p->other && !(fields & FIELDS_UNTOUCHED && learnt(h.engine, &recent->key)))
		kind = KIND_FREE;
	return recent->place | (__u64)kind << KIND_SHIFT;
}

/* Does a packet of this class and kind exceed its bound? It is counted. */
__noinline int exceeds(struct __sk_buff *skb, struct packet *p, __u32 number, __u32 ingress, __u64 found)
{
	struct hook h = { .skb = skb, .ingress = ingress };
	struct load load = { .kind = found >> KIND_SHIFT };
	__u32 place = found;

	if (!p || !begin(&h, number))
		return 0;
	load.packets = packets_of(&h);
	load.bytes = bytes_of(&h, p, load.packets);
	load.payload = p->seen.payload;
	/* Where ACKs are not held, neither is what they would have held back. */
	if (!is_attended(h.engine, config.stale) || is_shut(h.engine, false) || is_shut(h.engine, true)) {
		struct tally *tally = bpf_map_lookup_elem(&tallies, &place);

		if (tally && load.kind == KIND_COUNTED)
			tally_passes(tally, load.packets, load.bytes, 0, false, false);
		return 0;
	}
	if (admits(&h, place, &load, bpf_ktime_get_coarse_ns()))
		return 0;
	h.count->policed++;
	return 1;
}

/* A packet with data, in a direction with bounds. */
static __always_inline bool is_beyond_bound(struct hook *h, struct packet *p)
{
	__u64 found = find_class(h->skb, p, engine_number(h), h->ingress);

	return (__u32)found != NO_CLASS && exceeds(h->skb, p, engine_number(h), h->ingress, found);
}

#endif
