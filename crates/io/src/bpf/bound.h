/* SPDX-License-Identifier: GPL-2.0 OR MIT OR Apache-2.0 */
/*
 * Bounds of classes: the class of a packet by compiled rules (weir_core::gateway::Rules), and the same
 * arithmetic as weir_core::steer::{admits, Bound}. What has no record is classified, never let pass.
 */
#ifndef WEIR_BOUND_H
#define WEIR_BOUND_H

#include "fair.h"
#include "lookup.h"
#include "sight.h"

/* Classes above one with flows, at most. */
#define DEEPEST 8
/* `STAYS`: TCP counts as there for so many units of 2^23 ns after its last segment. */
#define TCP_STAYS 358
/* `SPARED`, in the same units: flows have more under way than their rate where they were not held. */
#define SPARED 60
/* `RECOVERS`, in the same units: what senders were permitted is not known well. */
#define RECOVERS 358
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

/* Of the flow of each slot. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct flow_bound);
} flow_bounds SEC(".maps");

/* Of flows without a slot that have lasted. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, struct flow_key);
	__type(value, struct flow_bound);
} loose SEC(".maps");

/* weir_core::steer::Strangers */
#define STRANGERS 4096
#define YOUNG 8192
#define YOUNG_LASTS 3
#define YOUNG_COUNT 2
#define YOUNG_SECOND 30

/* Of each source of data that goes out, and then of that which comes in. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2 * STRANGERS);
	__type(key, __u32);
	__type(value, struct flow_bound);
} strangers SEC(".maps");

static __u64 young[YOUNG];

/* `HOSTS`, `QUIET` and `QUIET_DEPTH`: of each host of frames that go out, and then of those that come in. */
#define HOSTS 1024
#define QUIET 16
#define QUIET_DEPTH 50000000
static __u64 hosts_due[2 * HOSTS];

/* `FlowQueues`: lines of so many entries. */
#define QUEUE_LINES 16384
#define QUEUE_WAYS 4
#define QUEUE_SPREAD 0x9e3779b97f4a7c15ULL

struct queue_entry {
	__u64 due;
	__u32 tag;
	__u32 told;
};

struct queue_line {
	struct queue_entry entries[QUEUE_WAYS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, QUEUE_LINES);
	__type(key, __u32);
	__type(value, struct queue_line);
} flow_queues SEC(".maps");

/* Of each of these entries, where flows may spill. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct spill);
} spills SEC(".maps");

/* A record of a flow that begins. */
static struct flow_bound unused;

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

/* Headers of a packet that are counted for each of the packets that a giant one stands for. */
static __always_inline __u32 headers(struct packet *p)
{
	__u32 network = p->l4 > p->l3 ? p->l4 - p->l3 : 0;

	return network + (p->other ? sizeof(struct udp) : sizeof(struct tcp) + p->options);
}

/* `PADDING`: bytes behind a packet that may be Ethernet's. Giants have none, whatever their header says. */
#define PADDING 46
/* `BARE`: bytes of the longest segment without data. */
#define BARE_MOST 100

/* `Packet::charged_len` */
static __always_inline __u32 charged_len(struct __sk_buff *skb, struct packet *p)
{
	__u32 end = skb->len > p->end + PADDING || skb->gso_size ? skb->len : p->end;

	return end - p->l3;
}

/* `is_charged` */
static __always_inline bool is_charged(struct __sk_buff *skb, struct packet *p)
{
	return p->seen.payload || charged_len(skb, p) > BARE_MOST;
}

/*
 * Bytes of a packet, and above them the number of packets that it stands for. Verified once: `judged` has no
 * room for more on its stack.
 */
__noinline __u64 load_of(struct __sk_buff *skb, struct packet *p)
{
	__u32 packets;

	if (!p)
		return pair(1, 0);
	packets = packets_of(skb, p->l3 + headers(p));
	return pair(packets, charged_len(skb, p) + (packets - 1) * headers(p));
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

/* The first class, before `best`, of so many conditions; `best` if there is none. Verified once. */
__noinline __u32 of_conditions(struct flow_key *key, __u32 first, __u32 count, __u32 best)
{
	if (!key)
		return best;
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

/* The slot of the flow whose data has this key, and its tag. Returns the flow, if there is a slot. */
static __always_inline struct flow *flow_of_data(const struct flow_key *key, __u32 *number, __u32 *tag)
{
	struct flow_key acks = *key; /* On the stack: see slot_of. */
	struct flow *flow;
	struct slot *slot;

	reverse(&acks);
	flow = bpf_map_lookup_elem(&flows, &acks);
	if (!flow)
		return NULL;
	*number = READ(flow->slot);
	*tag = READ(flow->tag);
	slot = bpf_map_lookup_elem(&slots, number);
	return slot && *tag && READ(slot->tag) == *tag ? flow : NULL;
}

/* Have packets with the record's key ports of TCP? */
static __always_inline bool recent_is_tcp(const struct recent *recent)
{
	return bpf_ntohs(recent->key.outer) >> 12 == IPPROTO_TCP >> 4 &&
	       bpf_ntohs(recent->key.inner) >> 12 == (IPPROTO_TCP & 0x0f);
}

/* Has what was found out of a flow become another one since? */
static __always_inline bool holds(struct recent *recent, bool tcp, __u32 unit)
{
	struct slot *slot;
	__u32 number = recent->slot;

	if (!tcp)
		return true;
	if (number == NO_SLOT)
		return recent->tag == unit;
	slot = bpf_map_lookup_elem(&slots, &number);
	return slot && READ(slot->tag) == recent->tag;
}

/* What tells the rules of a direction from those of the other one, and from all before. */
static __always_inline __u32 rules_by(__u32 word, __u32 ingress)
{
	return word << 1 | !!ingress;
}

/* Does the record say what is known of packets with this key? Otherwise it has the key at least. */
static __always_inline bool is_known(struct recent *recent, struct flow_key *key, __u32 by, bool tcp, __u32 unit)
{
	if (is_same(&recent->key, key))
		return recent->rules == by && holds(recent, tcp, unit);
	begin_recent(recent, key);
	return false;
}

/* `ROOM`, and the time of `ROOM_OF_SECOND` */
#define ROOM 64000
#define ROOM_TIME 50000000

/* `Bound::has_room`, in so many quarters of the room. */
static __always_inline bool has_room_in(__u64 due, __u64 per_byte, __u32 quarters, __u64 bytes, __u64 now)
{
	__u64 room = served(ROOM, per_byte) + ROOM_TIME;
	__s64 wait = due - now;

	return wait <= 0 || wait + served(bytes, per_byte) <= room / 4 * quarters;
}

/* As above, in all of the room or in three quarters of it. */
static __always_inline bool has_room(__u64 due, __u64 per_byte, bool part, __u64 bytes, __u64 now)
{
	return has_room_in(due, per_byte, part ? 3 : 4, bytes, now);
}

/* `Bound::is_within` */
static __always_inline bool bound_within(struct bound *b, __u64 cost, bool part, __u64 now)
{
	__u64 per_byte = READ64(b->per_byte);

	return !per_byte || has_room(READ64(b->due), per_byte, part, cost, now);
}

/* `Bound::per_byte_beyond` */
static __always_inline __u64 per_byte_beyond(struct bound *b, __u64 now)
{
	__u64 per_byte = fair_per_byte(&b->fair, now, true);

	return per_byte - per_byte / 5;
}

static __always_inline void bound_spend(struct bound *b, __u64 cost, __u64 now)
{
	__u64 per_byte = READ64(b->per_byte);

	if (per_byte)
		charge(&b->due, served(cost, per_byte), now);
}

/* The place of a part. The verifier sees by the mask, which changes nothing, that it is in the record. */
static __always_inline __u32 *part_of(struct flow_bound *f, __u32 part)
{
	part %= FLOW_PARTS;
	APART(part);
	return (__u32 *)f + (part & (sizeof(*f) / sizeof(part) - 1));
}

/* A part is 2^16 units of 2^20 ns, divided by this. */
#define OF_PART 954
#define PART_MOST (1 << 30)

/* `FlowBound::newest`. Verified once. */
__noinline __u32 flow_newest(struct flow_bound *f, __u64 now)
{
	__u32 part = (now >> 20) * OF_PART >> 16, newest, over;

	if (!f)
		return 0;
	newest = READ(f->newest);
	over = part - newest;
	if (!over || over > 0x7fffffff)
		return newest;
	if (__sync_val_compare_and_swap(&f->newest, newest, part) != newest)
		return part;
	for (__u32 n = 0; n < FLOW_PARTS; n++) {
		if (n >= over)
			break;
		WRITE(*part_of(f, part - n), 0);
	}
	return part;
}

/* `FlowBound::has_room` */
static __always_inline bool flow_has_room(struct flow_bound *f, __u64 most, __u64 bytes, __u64 now)
{
	__u64 passed = 0;

	flow_newest(f, now);
#pragma unroll
	for (int i = 0; i < FLOW_PARTS; i++)
		passed += READ(f->parts[i]);
	return !passed || passed + bytes <= most;
}

/* `FlowBound::charge` */
static __always_inline void flow_charge(struct flow_bound *f, __u64 bytes)
{
	__sync_fetch_and_add(part_of(f, READ(f->newest)), bytes < PART_MOST ? bytes : PART_MOST);
}

/* `Strangers::lasts` */
static __always_inline bool stranger_lasts(__u64 hash, __u64 now)
{
	__u64 *cell = &young[hash >> 32 & (YOUNG - 1)], old = READ64(*cell), count = 1;
	__u64 flow = hash << 32 | (now >> YOUNG_SECOND & 0x3fffffff) << YOUNG_COUNT;

	if (old >> YOUNG_COUNT == flow >> YOUNG_COUNT)
		count = (old & ((1 << YOUNG_COUNT) - 1)) + 1;
	if (count > YOUNG_LASTS)
		count = YOUNG_LASTS;
	*(volatile __u64 *)cell = flow | count;
	return count >= YOUNG_LASTS;
}

/*
 * A router with one interface forwards by that on which a segment came in, where the ingress hook has seen
 * it.
 */
static __always_inline bool is_back(struct __sk_buff *skb, __u32 ingress)
{
	return !ingress && config.shape_in && skb->ingress_ifindex == skb->ifindex;
}

/* Makes of TCP's key one that no segment has. */
#define OF_BACK 0xf000

/* `Strangers::of_source` */
static __always_inline __u32 stranger_place(const struct flow_key *key, bool inward)
{
	__u32 source = hash_of_source(inward ? key->dst : key->src) >> 32 & (STRANGERS - 1);

	return inward ? source + STRANGERS : source;
}

/*
 * The record of the bound of a flow without a slot, of data that comes in if it is `inward`. What goes `back`
 * was charged to its flow's record when it came in.
 */
static __always_inline struct flow_bound *stranger(struct flow_key *key, bool inward, bool back, __u64 now)
{
	struct flow_key sought = *key; /* On the stack: see slot_of. */
	struct flow_bound *own;
	__u32 source;

	if (back)
		sought.inner ^= bpf_htons(OF_BACK);
	own = bpf_map_lookup_elem(&loose, &sought);
	if (own)
		return own;
	if (stranger_lasts(hash_of(key), now)) {
		bpf_map_update_elem(&loose, &sought, &unused, BPF_NOEXIST);
		own = bpf_map_lookup_elem(&loose, &sought);
	}
	if (own)
		return own;
	source = stranger_place(key, inward);
	return bpf_map_lookup_elem(&strangers, &source);
}

/* What is done with the bounds of classes above one. */
enum with_above {
	KEPT,
	KEPT_IN_PART,
	CHARGED,
};

/* The bounds of classes above one: are they kept, or they are charged. Verified once. */
__noinline int above(__u32 next, __u64 cost, __u64 now, __u32 with)
{
	for (int i = 0; i < DEEPEST - 1; i++) {
		struct bound *b;
		__u32 number = next - 1;

		if (!next)
			break;
		b = bpf_map_lookup_elem(&bounds, &number);
		if (!b)
			break;
		if (with == CHARGED)
			bound_spend(b, cost, now);
		else if (!bound_within(b, cost, with == KEPT_IN_PART, now))
			return false;
		next = READ(b->above);
	}
	return true;
}

/* Queue of a packet: none, no room, that of newcomers, or an entry, by its number above that. */
#define QUEUE_NONE 0
#define QUEUE_FULL 1
#define QUEUE_NEW 2
#define QUEUE_OWN 3

/* `NEVER` and `LONGEST` */
#define QUEUE_NEVER (QUEUE_LINES * QUEUE_WAYS - 1)
#define SPILL_LONGEST 1000000000ULL

/* `FairShare::ahead` */
static __always_inline __u64 fair_ahead(struct fair_share *f)
{
	__u16 spills = READ16(f->spills);

	return (spills ? spills : READ16(f->depth)) * FAIR_UNIT;
}

/* `Spill::on_the_way` */
static __always_inline bool is_on_the_way(__u32 number)
{
	struct spill *spill = bpf_map_lookup_elem(&spills, &number);

	return spill && READ(spill->sent) != READ(spill->left);
}

/* `Bound::service` */
static __always_inline __u64 flow_per_byte(struct bound *b)
{
	__u32 most = READ(b->fair.most);

	if (READ(b->counts) & COUNTS_EACH)
		return most == 0xffffffff ? 0 : (FAIR_SECOND << TALLY_FRACTION) / (most ? most : 1);
	return READ64(b->fair.per_byte);
}

/* `FairShare::burst` */
static __always_inline __u64 fair_burst(struct bound *b)
{
	__u64 half = fair_ahead(&b->fair) / 2, burst = served(ENTRY_BURST, flow_per_byte(b));

	return !burst || burst > half ? half : burst;
}

/* `FairShare::enter` */
static __always_inline __u64 fair_enter(struct bound *b, __u64 now)
{
	struct fair_share *f = &b->fair;
	__u64 burst = fair_burst(b);

	if (!(READ(b->counts) & COUNTS_EACH)) {
		if (READ64(f->entry_due) > now + ENTRIES)
			return 0;
		charge(&f->entry_due, (burst >> 16) * READ(f->entry_part), now);
	}
	return now + fair_ahead(f) - burst;
}

/* `FlowQueues::of`. Verified once. */
__noinline __u64 queue_of(__u32 place, __u64 hash, __u64 now)
{
	struct bound *b = bpf_map_lookup_elem(&bounds, &place);
	__u64 due, first = ~0ULL;
	struct queue_line *line;
	__u32 number, tag, at = 0;

	hash ^= place * QUEUE_SPREAD;
	tag = (__u32)hash | 1;
	number = hash >> 32 & (QUEUE_LINES - 1);
	line = bpf_map_lookup_elem(&flow_queues, &number);
	if (!b || !line)
		return QUEUE_NONE;
#pragma unroll
	for (int i = 0; i < QUEUE_WAYS; i++)
		if (READ(line->entries[i].tag) == tag)
			return QUEUE_OWN + (number * QUEUE_WAYS + i);
	if (!stranger_lasts(hash, now))
		return QUEUE_NEW;
#pragma unroll
	for (int i = 0; i < QUEUE_WAYS; i++) {
		due = READ64(line->entries[i].due);
		/* `FlowQueues::due_of` */
		if (READ16(b->fair.spills) && due + SPILL_LONGEST > now && is_on_the_way(number * QUEUE_WAYS + i))
			due = ~0ULL;
		if (due < first) {
			first = due;
			at = i;
		}
	}
	due = first > now ? 0 : fair_enter(b, now);
	if (!due)
		return QUEUE_NEW;
	at &= QUEUE_WAYS - 1;
	WRITE64(line->entries[at].due, due);
	WRITE(line->entries[at].tag, tag);
	WRITE(line->entries[at].told, 0);
	return QUEUE_OWN + (number * QUEUE_WAYS + at);
}

/* An own queue. */
static __always_inline struct queue_entry *queue_entry(__u64 queue)
{
	__u32 at = queue - QUEUE_OWN, number = at / QUEUE_WAYS;
	struct queue_line *line = bpf_map_lookup_elem(&flow_queues, &number);

	return line ? &line->entries[at & (QUEUE_WAYS - 1)] : NULL;
}

/* `FIRST`, `PACKETS` and `READY` */
#define TOLD_FIRST 10000000ULL
#define TOLD_PACKETS 10
#define TOLD_READY 1

/* `Told::tell` */
static __always_inline void tell(struct queue_entry *entry, __u64 now)
{
	__u32 unit = now >> 20;

	WRITE(entry->told, unit > TOLD_READY ? unit : TOLD_READY + 1);
}

/* `Told::first` of a sender that has not been told */
static __always_inline __u64 told_first(struct queue_entry *entry, struct bound *b, __u64 time)
{
	__u64 first = TOLD_PACKETS * time > TOLD_FIRST ? TOLD_PACKETS * time : TOLD_FIRST;

	return READ(entry->told) ? first : first + fair_ahead(&b->fair) - fair_burst(b);
}

/* `Told::lets` */
static __always_inline bool told_lets(struct queue_entry *entry, struct bound *b, __u32 ecn, __u64 time,
				      bool room, __u64 now)
{
	__u64 due = READ64(entry->due);

	if (READ(entry->told) > TOLD_READY)
		return room;
	if (!room || (!ecn && due > now + told_first(entry, b, time))) {
		tell(entry, now);
		return false;
	}
	if (due <= now)
		WRITE(entry->told, TOLD_READY);
	return true;
}

/* `Queue::lets`. Called beside `queue_of`: their stacks together are too much. Verified once. */
__noinline __u64 queue_lets(__u32 place, __u64 queue, __u64 cost, __u64 now, __u32 ecn)
{
	struct bound *b = bpf_map_lookup_elem(&bounds, &place);
	struct queue_entry *entry;
	__u64 per_byte, time;
	bool room;

	if (!b)
		return QUEUE_NONE;
	/* `Bound::service_at` */
	if (!(READ(b->counts) & COUNTS_EACH))
		fair_per_byte(&b->fair, now,
			      READ16(b->fair.spills) || (__u32)(now >> UNIT_SHIFT) - READ(b->tcp) <= TCP_STAYS);
	per_byte = flow_per_byte(b);
	if (queue == QUEUE_NEW)
		return has_room(READ64(b->fair.new_due), READ64(b->fair.new_per_byte), false, cost, now) ?
			       queue :
			       QUEUE_FULL;
	entry = queue < QUEUE_OWN ? NULL : queue_entry(queue);
	if (!entry)
		return QUEUE_NONE;
	time = served(cost, per_byte);
	room = fits_queue(&entry->due, READ16(b->fair.depth) * FAIR_UNIT, time, now);
	return told_lets(entry, b, ecn, time, room, now) ? queue : QUEUE_FULL;
}

/* Bits of the number of packets that come as one */
#define SPILL_ECN 30

/* Decision on packets: these, or the number of the queue to which they spill, above that. */
enum judgement {
	JUDGED_DROPPED,
	JUDGED_PASSES,
	JUDGED_MARKED,
	JUDGED_SPILLS,
};

/* `Told::drops` */
static __always_inline bool told_drops(struct queue_entry *entry, __u32 spilled, __u32 packets, __u64 time,
				       __u64 now)
{
	if (READ(entry->told) > TOLD_READY || spilled < TOLD_PACKETS || spilled * time <= TOLD_FIRST * packets)
		return false;
	tell(entry, now);
	return true;
}

/* `FlowQueues::spill` of so many packets, and above their number their ECN field. Verified once. */
__noinline __u32 queue_spills(__u32 place, __u64 queue, __u64 cost, __u64 now, __u32 packets)
{
	struct bound *b = bpf_map_lookup_elem(&bounds, &place);
	__u32 number = queue - QUEUE_OWN, ecn = packets >> SPILL_ECN, before;
	struct queue_entry *entry;
	struct spill *spill;
	__u64 per_byte, time;

	if (!b)
		return JUDGED_PASSES;
	per_byte = fair_per_byte(&b->fair, now, true);
	if (queue < QUEUE_OWN || number == QUEUE_NEVER)
		return JUDGED_PASSES;
	entry = queue_entry(queue);
	spill = bpf_map_lookup_elem(&spills, &number);
	if (!entry || !spill)
		return JUDGED_PASSES;
	packets &= (1 << SPILL_ECN) - 1;
	time = served(cost, per_byte);
	before = READ(spill->sent) - READ(spill->left);
	if (!before && fits_queue(&entry->due, fair_ahead(&b->fair), time, now))
		return JUDGED_PASSES;
	if (!ecn && told_drops(entry, before, packets, time, now))
		return JUDGED_DROPPED;
	__sync_fetch_and_add(&spill->sent, packets);
	return JUDGED_SPILLS + number;
}

/* `RAMP`, `OVER` and `BITS` */
#define MARK_RAMP 2000000ULL
#define MARK_OVER 10000000ULL
#define MARK_BITS 16
/* `INTERVAL` */
#define MARK_INTERVAL 95

/* `Queue::marks`. Verified once. */
__noinline int queue_marks(__u32 place, __u64 queue, __u64 cost, __u64 now, __u32 ecn)
{
	struct bound *b = bpf_map_lookup_elem(&bounds, &place);
	struct queue_entry *entry;
	__u64 due, wait, time, from, first;
	__u32 told;

	if (!b || queue < QUEUE_OWN)
		return false;
	entry = queue_entry(queue);
	if (!entry)
		return false;
	due = READ64(entry->due);
	wait = due > now ? due - now : 0;
	time = served(cost, flow_per_byte(b));
	if (ecn == ECT_1) {
		from = time > MARK_RAMP ? time : MARK_RAMP;
		if (time < MARK_OVER)
			time = MARK_OVER;
		return wait > from && (wait - from) << MARK_BITS > time * (due * QUEUE_SPREAD >> (64 - MARK_BITS));
	}
	from = READ16(b->fair.depth) * FAIR_UNIT / 4 * 3;
	told = READ(entry->told);
	if (told <= TOLD_READY) {
		first = told_first(entry, b, time);
		if (first < from)
			from = first;
	}
	if (from < 2 * time)
		from = 2 * time;
	if (ecn != ECT_0 || wait <= from || (told > TOLD_READY && (__u32)(now >> 20) - told < MARK_INTERVAL))
		return false;
	tell(entry, now);
	return true;
}

/* `Queue::charge`. Verified once. */
__noinline int queue_charge(__u32 place, __u64 queue, __u64 cost, __u64 now)
{
	struct bound *b = bpf_map_lookup_elem(&bounds, &place);
	struct queue_entry *entry;

	if (!b)
		return 0;
	if (queue == QUEUE_NEW) {
		charge(&b->fair.new_due, served(cost, READ64(b->fair.new_per_byte)), now);
		__sync_fetch_and_add(&b->fair.new_passed, cost);
		return 0;
	}
	entry = queue_entry(queue);
	if (entry)
		charge(&entry->due, served(cost, flow_per_byte(b)), now);
	return 0;
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

/*
 * A packet at its bound. No pointers: functions that are verified once change it, and the verifier knows
 * nothing of it afterwards.
 */
struct judged {
	struct load load;
	__u64 cost;
	__u64 flow_most; /* bytes that any second of its flow may have */
	__u64 coarse;	 /* now, by the coarse clock */
	union {
		__u64 in_queue; /* time that it takes in that one's virtual queue */
		__u64 hash;	/* of a flow without an account, where that may have a virtual queue */
	};
	__u32 place;
	__u8 ecn; /* its ECN field, where that may matter */
	bool beside_tcp;
	bool beyond; /* it is more than its sender was permitted */
	bool loud;   /* it has no readable addresses, and its host has sent much */
	bool own;    /* there is room in what its class has for itself */
	bool queued; /* its flow may have a virtual queue */
	bool each;   /* that is served at the rate which each flow has */
	bool spills; /* its flow may spill */
};

/* Is there room in its class, and all above it? */
static __always_inline bool class_within(struct bound *b, struct judged *j)
{
	bool part = j->beyond || j->loud || (j->load.kind != KIND_HELD && j->beside_tcp);
	__u32 next = READ(b->above);

	return bound_within(b, j->cost, part, j->coarse) &&
	       (j->own || !next || above(next, j->cost, j->coarse, part ? KEPT_IN_PART : KEPT));
}

/* `hash_of_host`, and the host's part of `Bound::admits_alone`. Verified once. */
__noinline int host_is_loud(struct __sk_buff *skb, __u32 number, __u64 bytes, __u64 now, __u32 ingress)
{
	struct bound *b = bpf_map_lookup_elem(&bounds, &number);
	__u8 address[16] = {};
	__u64 place = 0;

	if (!b)
		return false;
	if (config.ethernet && !bpf_skb_load_bytes(skb, ingress ? 0 : 6, address, 6))
		place = hash_of_source(address) >> 32 & (HOSTS - 1);
	if (ingress)
		place += HOSTS;
	/* Always so. */
	APART(place);
	if (place >= 2 * HOSTS)
		return false;
	if ((__s64)(READ64(hosts_due[place]) - now) > QUIET_DEPTH)
		return true;
	charge(&hosts_due[place], served(bytes, READ64(b->per_byte) * QUIET), now);
	return false;
}

/* `Bound::is_beyond`. Returns whether there is room in the flow's virtual queue for what is. */
static __always_inline bool sender_keeps(struct bound *b, struct judged *j, struct flow_bound *sender)
{
	if (!sender || is_permitted(&sender->queue))
		return true;
	j->beyond = true;
	j->in_queue = served(j->cost, per_byte_beyond(b, j->coarse));
	__sync_fetch_and_add(&sender->queue.beyond, j->load.payload);
	return fits_queue(&sender->queue.due, QUEUE_DEPTH, j->in_queue, j->coarse);
}

/* Charges the account of the flow's sender. */
static __always_inline void charge_sender(struct bound *b, struct judged *j, struct virtual_queue *q)
{
	__u64 due = READ64(q->due);

	if (j->beyond) {
		charge(&q->due, j->in_queue, j->coarse);
		__sync_fetch_and_add(&b->fair.beyond, j->cost);
		return;
	}
	/* `VirtualQueue::pass` */
	__sync_fetch_and_add(&q->passed, j->load.payload);
	if (due > j->coarse && due - j->coarse < QUEUE_DEPTH)
		__sync_fetch_and_add(&q->due, served(j->cost, per_byte_beyond(b, j->coarse)));
}

/* `admits` of traffic that its class's tally counts or bounds, as far as the tally goes. */
static __always_inline bool tally_lets(struct judged *j, bool fits, bool queued)
{
	struct tally *tally = bpf_map_lookup_elem(&tallies, &j->place);
	__u64 packets = j->load.packets, bytes = j->load.bytes, now;

	if (!tally)
		return true;
	/* Without a bucket nobody asks for the time. */
	now = READ64(tally->per_byte) ? bpf_ktime_get_ns() : 0;
	if (j->load.kind == KIND_FREE)
		return fits && queued && tally_admits(tally, packets, bytes, now, j->beside_tcp);
	if (!queued) {
		__sync_fetch_and_add(&tally->dropped, packets);
		__sync_fetch_and_add(&tally->dropped_bytes, bytes);
		return false;
	}
	return !fits || tally_passes(tally, packets, bytes, now, j->beside_tcp, true);
}

/* `Bound::count_held` */
static __always_inline void count_held(struct bound *b, struct judged *j)
{
	__u32 unit = j->coarse >> UNIT_SHIFT;

	if (READ(b->tcp) != unit)
		WRITE(b->tcp, unit);
	__sync_fetch_and_add(&b->held, j->cost);
}

/* The first part of `admits`: is there room for it? `sender` and `flow` are NULL without such a record. */
__noinline int fits(struct judged *j, struct flow_bound *sender, struct flow_bound *flow)
{
	struct bound *b;
	__u32 place;

	if (!j)
		return false;
	place = j->place;
	b = bpf_map_lookup_elem(&bounds, &place);
	if (!b)
		return false;
	j->own = READ(b->counts) & COUNTS_OWN &&
		 has_room(READ64(b->own_due), READ64(b->own_per_byte), false, j->cost, j->coarse);
	j->beside_tcp = (__u32)(j->coarse >> UNIT_SHIFT) - READ(b->tcp) <= TCP_STAYS;
	return sender_keeps(b, j, sender) && (!flow || flow_has_room(flow, j->flow_most, j->cost, j->coarse)) &&
	       class_within(b, j);
}

/* The last part: what it is charged to. `queue` is that of its flow. */
__noinline int spend(struct judged *j, struct flow_bound *sender, struct flow_bound *flow, __u64 queue)
{
	enum kind kind;
	struct bound *b;
	__u32 place, next;

	if (!j)
		return 0;
	place = j->place;
	kind = j->load.kind;
	b = bpf_map_lookup_elem(&bounds, &place);
	if (!b)
		return 0;
	bound_spend(b, j->cost, j->coarse);
	next = READ(b->above);
	if (next)
		above(next, j->cost, j->coarse, CHARGED);
	if (j->own)
		charge(&b->own_due, served(j->cost, READ64(b->own_per_byte)), j->coarse);
	if (flow)
		flow_charge(flow, j->cost);
	if (queue != QUEUE_NONE)
		queue_charge(place, queue, j->cost, j->coarse);
	if (sender)
		charge_sender(b, j, &sender->queue);
	if (j->beyond || kind != KIND_HELD)
		__sync_fetch_and_add(&b->fair.passed, j->cost);
	if (kind == KIND_COUNTED)
		return 0;
	if (kind == KIND_FREE)
		__sync_fetch_and_add(&b->free, j->load.bytes);
	else
		count_held(b, j);
	__sync_fetch_and_add(&b->packets, j->load.packets);
	return 0;
}

/* `judge` */
static __always_inline __u32 judge(struct bound *b, struct judged *j, struct flow_bound *sender,
				   struct flow_bound *flow)
{
	enum kind kind = j->load.kind;
	__u64 queue = QUEUE_NONE;
	bool has_room, passes, marked = false;
	__u32 spilled;

	if (j->spills) {
		queue = queue_of(j->place, j->hash, j->coarse);
		spilled = queue_spills(j->place, queue, j->cost, j->coarse, j->load.packets | (__u32)j->ecn << SPILL_ECN);
		if (spilled == JUDGED_DROPPED)
			tally_lets(j, true, false);
		if (spilled != JUDGED_PASSES)
			return spilled;
	}
	if (j->each) {
		queue = queue_of(j->place, j->hash, j->coarse);
		/* Until a flow has a queue, it is one of its source's. */
		if (queue == QUEUE_NEW)
			queue = QUEUE_NONE;
		else
			flow = NULL;
	}
	has_room = passes = fits(j, sender, flow);
	if (has_room && j->queued) {
		if (!j->spills && !j->each)
			queue = queue_of(j->place, j->hash, j->coarse);
		queue = queue_lets(j->place, queue, j->cost, j->coarse, j->ecn);
	}
	if (kind != KIND_HELD)
		passes = tally_lets(j, has_room, queue != QUEUE_FULL);
	if (!has_room || (!passes && kind == KIND_FREE)) {
		__sync_fetch_and_add(&b->dropped, j->load.packets);
		__sync_fetch_and_add(&b->dropped_bytes, j->load.bytes);
		return JUDGED_DROPPED;
	}
	if (!passes)
		return JUDGED_DROPPED;
	if (j->ecn)
		marked = queue_marks(j->place, queue, j->cost, j->coarse, j->ecn);
	spend(j, sender, flow, queue);
	if (!marked)
		return JUDGED_PASSES;
	__sync_fetch_and_add(&b->fair.marked, j->load.packets);
	return JUDGED_MARKED;
}

/*
 * A packet with data as `find_class` tells of it: the slot of its flow, and above that its kind, and the
 * place of its class.
 */
#define FOUND_KIND 32
#define FOUND_PLACE 34
#define FOUND_NONE ~0ULL
/* Of no kind: it has to be found out first, at the place in the lower half. */
#define FOUND_NOTHING (3ULL << FOUND_KIND)

/*
 * Finds out what is to be known of packets with the key of the record at this place. The class of a flow with
 * a slot is kept with the flow as well: more flows may send than there are records. Returns what find_class
 * does, or that it is to be called again.
 */
__noinline __u64 find_out(__u32 place, __u32 word, __u32 number, __u32 ingress, __u32 unit)
{
	struct recent *recent = bpf_map_lookup_elem(&recents, &place);
	__u32 by = rules_by(word, ingress), slot = NO_SLOT, tag = unit;
	struct flow *flow = NULL;
	__u64 class;

	if (!recent)
		return FOUND_NONE;
	if (recent_is_tcp(recent))
		flow = flow_of_data(&recent->key, &slot, &tag);
	class = flow ? READ64(flow->class) : 0;
	if (class >> 32 != by)
		class = pair(by, classify(&recent->key, word, number, ingress));
	if (flow && READ64(flow->class) != class)
		*(volatile __u64 *)&flow->class = class;
	recent->rules = by;
	recent->place = class;
	/* Otherwise they may be those of a flow that is gone. */
	if (!flow) {
		slot = NO_SLOT;
		tag = unit;
	}
	recent->slot = slot;
	recent->tag = tag;
	if (!flow)
		return FOUND_NOTHING | place;
	return recent->place == NO_CLASS ? FOUND_NONE : slot | (__u64)recent->place << FOUND_PLACE;
}

/* Notes what tells flows apart of a packet that is none of TCP, where some class asks for it. */
static __always_inline void see_flow(struct packet *p, __u32 fields, __u32 ingress)
{
	__u64 hash;

	/* A header of TCP that is none may have left others. */
	p->seen.flags = 0;
	if (fields & (FIELDS_FAIR | FIELDS_EACH)) {
		hash = hash_of(&p->key);
		p->seen.seq = hash;
		p->seen.ack = hash >> 32;
		p->seen.flags = SEEN_HASH;
	}
	if (fields & FIELDS_EACH) {
		p->seen.ts = stranger_place(&p->key, ingress);
		p->seen.flags |= SEEN_SOURCE;
	}
}

/*
 * Finds the class and the kind of a packet with data, and the slot of its flow. This function and the next
 * are verified once, and not for each state in which they are called; together their variables would not fit
 * the stack.
 */
__noinline __u64 find_class(struct packet *p, __u32 number, __u32 ingress, bool found_out)
{
	struct hooks *engine = bpf_map_lookup_elem(&hooks, &number);
	enum kind kind = KIND_FREE;
	struct recent *recent;
	struct flow_key key; /* On the stack: see slot_of. */
	__u32 fields, by, place;

	if (!p || !engine)
		return FOUND_NONE;
	if (p->unread) {
		if (p->control)
			return FOUND_NONE;
		return NO_SLOT | (__u64)KIND_FREE << FOUND_KIND | (__u64)(config.unread + !!ingress) << FOUND_PLACE;
	}
	fields = READ(*(ingress ? &engine->count_in : &engine->count_out));
	if (p->other && !(fields & FIELDS_COUNTED))
		return FOUND_NONE;
	by = rules_by(READ(engine->rules[!!ingress]), ingress);
	/* A port that no rule looks at, chosen again for each packet, costs no look-up. */
	if (p->other) {
		if (!found_out)
			see_flow(p, fields, ingress);
		keep_fields(&p->key, fields);
	}
	place = place_of(&p->key);
	recent = bpf_map_lookup_elem(&recents, &place);
	if (!recent)
		return FOUND_NONE;
	if (!found_out && !is_known(recent, &p->key, by, !p->other, p->coarse >> UNIT_SHIFT))
		return FOUND_NOTHING | place;
	if (recent->place == NO_CLASS)
		return FOUND_NONE;
	if (p->other)
		kind = KIND_COUNTED;
	else if (recent->slot != NO_SLOT)
		kind = KIND_HELD;
	else if (fields & FIELDS_UNTOUCHED) {
		key = p->key;
		if (learnt(engine, &key))
			kind = KIND_COUNTED;
	}
	return recent->slot | (__u64)kind << FOUND_KIND | (__u64)recent->place << FOUND_PLACE;
}

/* Is nothing bounded now? Where ACKs are not held, neither is what they would have held back. */
static __always_inline bool is_unbounded(struct hooks *engine, __u64 coarse)
{
	if (is_shut(engine, false) || is_shut(engine, true))
		return true;
	return !is_attended_at(engine, config.stale, coarse) && !is_upgraded(engine, coarse);
}

#define SECOND 1000000000

/* `FlowLimit::most`, or a part of it in the first second after programs that had records of their own. */
static __always_inline __u64 flow_most(struct hooks *engine, struct bound *b, __u64 coarse)
{
	__u64 most = READ64(b->flow_most);
	__s64 since = coarse - READ64(engine->begun);

	if (since >= SECOND)
		return most;
	return since > 0 ? (most >> 10) * ((__u64)since >> 20) : 0;
}

/* What becomes of a packet of which this was found, by the bound of its flow and class. It is counted. */
__noinline __u32 judged(struct __sk_buff *skb, struct packet *p, __u32 number, __u32 ingress, __u64 found)
{
	struct hooks *engine = bpf_map_lookup_elem(&hooks, &number);
	struct flow_bound *sender = NULL, *flow = NULL;
	__u32 slot = found, unit;
	struct judged j;
	__u64 load;
	struct bound *b;

	if (!p || !engine)
		return JUDGED_PASSES;
	/* Gaps, too. */
	__builtin_memset(&j, 0, sizeof(j));
	j.place = found >> FOUND_PLACE;
	j.coarse = p->coarse;
	unit = j.coarse >> UNIT_SHIFT;
	j.load.kind = found >> FOUND_KIND & 3;
	load = load_of(skb, p);
	j.load.packets = load >> 32;
	j.load.bytes = (__u32)load;
	j.load.payload = p->seen.payload;
	if (is_unbounded(engine, j.coarse)) {
		struct tally *tally = bpf_map_lookup_elem(&tallies, &j.place);

		if (tally && j.load.kind == KIND_COUNTED)
			tally_passes(tally, j.load.packets, j.load.bytes, 0, false, false);
		if (READ(engine->unheld) != unit)
			WRITE(engine->unheld, unit);
		return JUDGED_PASSES;
	}
	/* Without an engine it is not known well what senders are permitted. They are not spared later. */
	if (is_upgraded(engine, j.coarse) && !is_attended_at(engine, config.stale, j.coarse))
		WRITE(engine->unheld, unit - SPARED - 1);
	b = bpf_map_lookup_elem(&bounds, &j.place);
	if (!b)
		return JUDGED_PASSES;
	j.cost = cost_of(READ(b->counts), &j.load);
	/* While a class changes, hash and source may be unknown. */
	j.each = READ(b->counts) & COUNTS_EACH && p->other && p->seen.flags & SEEN_SOURCE;
	j.queued = j.each || ((READ(b->counts) & (COUNTS_FAIR | COUNTS_EACH)) == COUNTS_FAIR &&
			      j.load.kind != KIND_HELD && (!p->other || p->seen.flags & SEEN_HASH));
	if (j.queued)
		j.hash = p->other ? pair(p->seen.ack, p->seen.seq) : hash_of(&p->key);
	if (READ(b->counts) & COUNTS_FAIR && p->other)
		j.ecn = p->ecn;
	j.spills = j.queued && config.spills && !config.observe && p->other && j.load.kind == KIND_COUNTED &&
		   READ16(b->fair.spills);
	if (p->unread)
		j.loud = host_is_loud(skb, j.place, j.cost, j.coarse, ingress);
	bool back = is_back(skb, ingress);

	if (READ(b->counts) & COUNTS_PERMITS && j.load.kind == KIND_HELD && !back) {
		sender = bpf_map_lookup_elem(&flow_bounds, &slot);
		/* `VirtualQueue::see` */
		if (sender && READ(sender->queue.seen) != unit)
			WRITE(sender->queue.seen, unit);
	}
	if (j.load.kind == KIND_HELD && unit - READ(engine->unheld) <= SPARED) {
		count_held(b, &j);
		__sync_fetch_and_add(&b->packets, j.load.packets);
		return JUDGED_PASSES;
	}
	if (unit - READ(engine->unheld) <= RECOVERS)
		sender = NULL;
	if (READ(b->counts) & COUNTS_FLOWS && (!p->other || j.each)) {
		j.flow_most = flow_most(engine, b, j.coarse);
		if (p->other) {
			__u32 source = p->seen.ts; /* On the stack: see slot_of. */

			flow = bpf_map_lookup_elem(&strangers, &source);
		} else {
			flow = slot == NO_SLOT || back ? stranger(&p->key, ingress, back, j.coarse) :
							 bpf_map_lookup_elem(&flow_bounds, &slot);
		}
	}
	return judge(b, &j, sender, flow);
}

/* `PART`, `UNKNOWN`, `ACK` and `ACKS` */
#define BARE_PART 8
#define BARE_UNKNOWN (400ULL << TALLY_FRACTION)
#define BARE_ACK 72
#define BARE_ACKS 1000

/* `OF_ALL`, `OF_QUIET` and `OF_HELD` */
#define BARE_OF_ALL 2
#define BARE_OF_QUIET 3
#define BARE_OF_HELD 4

/* `Strangers::of_bare`, `QUIET` and `QUIET_ROOM`: of segments that go out, and then of those that come in. */
#define BARE_BITS 10
#define BARE_HOSTS (1 << BARE_BITS)
#define BARE_QUIET 16
#define BARE_QUIET_ROOM 4000
static __u64 bare_due[2 * BARE_HOSTS];

/* `per_byte_of`. Verified once. */
__noinline __u64 per_byte_of(__u32 place)
{
	for (int i = 0; i < DEEPEST; i++) {
		struct bound *b = bpf_map_lookup_elem(&bounds, &place);
		__u64 per_byte;

		if (!b)
			break;
		per_byte = READ64(b->per_byte);
		if (per_byte)
			return per_byte;
		place = READ(b->above) - 1;
	}
	return 0;
}

/* `per_bare_byte` */
static __always_inline __u64 per_bare_byte(__u32 place, __u32 by)
{
	__u64 per_byte = per_byte_of(by);

	if (by != place)
		return per_byte * BARE_PART;
	return per_byte < BARE_UNKNOWN ? per_byte : BARE_UNKNOWN;
}

/* `by_data_of`: the class of the data that a segment acknowledges, by its reversed key. Verified once. */
__noinline __u32 bare_by(struct packet *p, __u32 number, __u32 ingress, __u32 place)
{
	struct hooks *engine = bpf_map_lookup_elem(&hooks, &number);
	struct flow_key key; /* On the stack: see slot_of. */
	__u32 word, back;

	if (!p || !engine)
		return place;
	word = READ(engine->rules[!ingress]);
	if (!(word & RULES_BOUND))
		return place;
	key = p->key;
	reverse(&key);
	back = classify(&key, word, number, !ingress);
	return back == NO_CLASS || !per_byte_of(back) ? place : back;
}

/* `per_bare_byte_above` */
static __always_inline __u64 per_bare_byte_above(struct bound *b)
{
	__u64 least = READ64(b->per_byte), faster;
	__u32 by = READ(b->bare_by);

	if (least > BARE_UNKNOWN)
		least = BARE_UNKNOWN;
	if (!by)
		return least;
	faster = per_byte_of(by - 1) * BARE_PART;
	return faster < least ? faster : least;
}

/* `learn_above`. Verified once. */
__noinline int learn_above(__u32 next, __u32 by)
{
	for (int i = 0; i < DEEPEST - 1; i++) {
		struct bound *b, *data;
		__u32 number = next - 1;

		if (!next)
			break;
		b = bpf_map_lookup_elem(&bounds, &number);
		data = bpf_map_lookup_elem(&bounds, &by);
		if (!b || !data)
			break;
		if (READ(data->above))
			by = READ(data->above) - 1;
		if (per_byte_of(by) * BARE_PART < per_bare_byte_above(b))
			WRITE(b->bare_by, by + 1);
		next = READ(b->above);
	}
	return 0;
}

/* As `above`, of segments without data, in so many quarters of the room; 0: charges them. Verified once. */
__noinline int bare_above(__u32 next, __u64 bytes, __u64 now, __u32 quarters)
{
	for (int i = 0; i < DEEPEST - 1; i++) {
		struct bound *b;
		__u32 number = next - 1;
		__u64 per_byte;

		if (!next)
			break;
		b = bpf_map_lookup_elem(&bounds, &number);
		if (!b)
			break;
		per_byte = per_bare_byte_above(b);
		if (!quarters)
			charge(&b->bare_due, served(bytes, per_byte), now);
		else if (!has_room_in(READ64(b->bare_due), per_byte, quarters, bytes, now))
			return false;
		next = READ(b->above);
	}
	return true;
}

/* `Room` */
enum bare_room {
	BARE_NONE,
	BARE_SHARED,
	BARE_OWN,
};

static __always_inline enum bare_room bare_room(struct bound *b, __u64 per_byte, __u32 quarters, __u64 bytes,
						__u64 now)
{
	__u32 next = READ(b->above);

	if (!has_room_in(READ64(b->bare_due), per_byte, quarters, bytes, now))
		return BARE_NONE;
	if (!next || bare_above(next, bytes, now, quarters))
		return BARE_SHARED;
	if (READ(b->counts) & COUNTS_OWN && has_room(READ64(b->own_due), READ64(b->own_per_byte), false, bytes, now))
		return BARE_OWN;
	return BARE_NONE;
}

/* `make_room`. Verified once. */
__noinline int bare_make_room(__u32 place, __u32 by, __u64 per_byte, __u64 now)
{
	struct bound *own = bpf_map_lookup_elem(&bounds, &place);
	struct bound *data = bpf_map_lookup_elem(&bounds, &by);
	__u64 packets, acked, room;
	__s64 wait;

	if (!own || !data)
		return 0;
	packets = READ64(data->packets);
	acked = READ64(data->acked);
	/* The second may have been read later. */
	if (packets <= acked || __sync_val_compare_and_swap(&data->acked, acked, packets) != acked)
		return 0;
	packets -= acked;
	room = served((packets < BARE_ACKS ? packets : BARE_ACKS) * BARE_ACK, per_byte);
	wait = READ64(own->bare_due) - now;
	if (wait > 0)
		__sync_fetch_and_sub(&own->bare_due, room < wait ? room : wait);
	return 0;
}

/* `is_quiet`, of the host with this record. Verified once. */
__noinline int bare_is_quiet(__u32 host, __u64 bytes, __u64 per_byte, __u64 now)
{
	__u64 at = host;

	/* Always so. */
	APART(at);
	if (at >= 2 * BARE_HOSTS)
		return false;
	per_byte *= BARE_QUIET;
	if ((__s64)(READ64(bare_due[at]) - now) > (__s64)served(BARE_QUIET_ROOM, per_byte))
		return false;
	charge(&bare_due[at], served(bytes, per_byte), now);
	return true;
}

/* Is it one of a flow whose ACKs are controlled? Verified once. */
__noinline int is_of_held(struct packet *p)
{
	struct flow_key key; /* On the stack: see slot_of. */
	struct flow *flow;
	struct slot *slot;
	__u32 number, tag;

	if (!p)
		return false;
	key = p->key;
	flow = bpf_map_lookup_elem(&flows, &key);
	if (!flow)
		return false;
	number = READ(flow->slot);
	tag = READ(flow->tag);
	slot = bpf_map_lookup_elem(&slots, &number);
	return slot && tag && READ(slot->tag) == tag;
}

/* The class of the data that a segment acknowledges was not looked for. */
#define NOT_SOUGHT 0xffffffff

enum bare {
	BARE_PASSES,
	BARE_EXCEEDS,
	BARE_SEEKS, /* the class of the data is to be looked for */
};

/*
 * `admits_bare`: does a segment without data, of which this was found, exceed the bound of its class? The
 * lower half of it is the record of its host. `back`: what `bare_by` has found, which is called from without:
 * their stacks together are too much for Linux 6.1.
 */
__noinline int exceeds_bare(struct packet *p, __u32 bytes, __u32 number, __u32 back, __u64 found)
{
	struct hooks *engine = bpf_map_lookup_elem(&hooks, &number);
	__u32 place = found >> FOUND_PLACE, by, unit;
	enum bare_room room = BARE_NONE;
	__u64 per_byte = ~0ULL, faster;
	struct bound *b;

	b = bpf_map_lookup_elem(&bounds, &place);
	if (!p || !engine || !b || !per_byte_of(place))
		return BARE_PASSES;
	unit = p->coarse >> UNIT_SHIFT;
	if (is_unbounded(engine, p->coarse) || unit - READ(engine->unheld) <= SPARED)
		return BARE_PASSES;
	by = READ(b->bare_by);
	if (by) {
		per_byte = per_bare_byte(place, by - 1);
		room = bare_room(b, per_byte, BARE_OF_ALL, bytes, p->coarse);
	}
	if (room == BARE_NONE) {
		if (back == NOT_SOUGHT)
			return BARE_SEEKS;
		faster = per_bare_byte(place, back);
		if (faster < per_byte) {
			WRITE(b->bare_by, back + 1);
			per_byte = faster;
		}
		if (back != place) {
			learn_above(READ(b->above), back);
			bare_make_room(place, back, per_byte, p->coarse);
		}
		for (__u32 quarters = BARE_OF_ALL; quarters <= BARE_OF_HELD && room == BARE_NONE; quarters++) {
			if (quarters == BARE_OF_QUIET && !bare_is_quiet(found, bytes, per_byte, p->coarse))
				continue;
			if (quarters == BARE_OF_HELD && !is_of_held(p))
				continue;
			room = bare_room(b, per_byte, quarters, bytes, p->coarse);
		}
	}
	if (room != BARE_NONE) {
		charge(&b->bare_due, served(bytes, per_byte), p->coarse);
		bare_above(READ(b->above), bytes, p->coarse, 0);
		if (room == BARE_OWN)
			charge(&b->own_due, served(bytes, READ64(b->own_per_byte)), p->coarse);
		return BARE_PASSES;
	}
	__sync_fetch_and_add(&b->dropped, 1);
	__sync_fetch_and_add(&b->dropped_bytes, bytes);
	return BARE_EXCEEDS;
}

/* Addresses of the LAN with traffic that no class takes. Those that were idle longest make room. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, __u8[16]);
	__type(value, struct unlisted);
} unlisted SEC(".maps");

/* Counts a packet that no class takes. */
__noinline int count_unlisted(struct __sk_buff *skb, struct packet *p, __u32 ingress)
{
	struct unlisted *count, none = {};
	struct acks_counters *all;
	__u32 zero = 0, way = !!ingress;
	__u8 address[16]; /* On the stack: see slot_of. */
	__u64 load;

	all = bpf_map_lookup_elem(&counters, &zero);
	if (!p || !all || p->unread)
		return 0;
	load = load_of(skb, p);
	all->unlisted_bytes[way] += (__u32)load;
	all->unlisted_packets[way] += load >> 32;
	__builtin_memcpy(address, ingress ? p->key.dst : p->key.src, sizeof(address));
	count = bpf_map_lookup_elem(&unlisted, address);
	if (!count) {
		bpf_map_update_elem(&unlisted, address, &none, BPF_NOEXIST);
		count = bpf_map_lookup_elem(&unlisted, address);
	}
	if (!count)
		return 0;
	__sync_fetch_and_add(&count->bytes[way], (__u32)load);
	__sync_fetch_and_add(&count->packets[way], load >> 32);
	return 0;
}

/* What the data of a flow with a slot tells of it. */
static __always_inline void see_data(struct hook *h, struct packet *p, __u64 found)
{
	__u32 place = found >> FOUND_PLACE;
	struct bound *b;
	__u64 repeat;

	if ((found >> FOUND_KIND & 3) != KIND_HELD || (__u32)found == NO_SLOT || !p->seen.payload)
		return;
	repeat = sight_data(h->skb, p, found);
	if (!repeat)
		return;
	b = bpf_map_lookup_elem(&bounds, &place);
	if (b)
		__sync_fetch_and_add((__u32)repeat == REPEAT_AGAIN ? &b->repeated : &b->reordered, repeat >> 32);
}

/* `is_quic`: UDP's header, the first byte, and the version */
#define QUIC_LONG 0x80
#define QUIC_FIXED 0x40

/* A record of DTLS, or a message of WireGuard. */
static __always_inline bool is_tunnel(const __u8 *head)
{
	return (head[0] >= 20 && head[0] <= 26 && head[1] == 254) ||
	       (head[0] >= 1 && head[0] <= 4 && !head[1] && !head[2] && !head[3]);
}

static __always_inline bool is_head_of_quic(const struct packet *p, const __u8 *head)
{
	__u32 version = (__u32)head[1] << 24 | head[2] << 16 | head[3] << 8 | head[4];
	__be16 port = bpf_htons(443);

	if (p->key.sport == port || p->key.dport == port)
		return !is_tunnel(head);
	return (head[0] & (QUIC_LONG | QUIC_FIXED)) == (QUIC_LONG | QUIC_FIXED) &&
	       (version == 1 || version == 0x6b3343cf);
}

/* Verified once. */
__noinline int is_quic(struct __sk_buff *skb, struct packet *p)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	__u8 head[8];
	__u16 protocol;
	__u32 at;

	if (!p)
		return false;
	protocol = (bpf_ntohs(p->key.outer) >> 12) << 4 | bpf_ntohs(p->key.inner) >> 12;
	/* Fragments have no ports. */
	if (protocol != 17 || (!p->key.sport && !p->key.dport))
		return false;
	at = p->l4 + 8;
	if (at > 2 * HEADERS)
		return false;
	if (data + at + 5 <= end)
		return is_head_of_quic(p, data + at);
	return !bpf_skb_load_bytes(skb, at, head, 5) && is_head_of_quic(p, head);
}

/* A packet has passed of QUIC, or of TCP that the tally of this place counts. Verified once. */
__noinline int count_part(struct __sk_buff *skb, struct packet *p, __u32 place)
{
	struct bound *b = bpf_map_lookup_elem(&bounds, &place);

	if (p && b)
		__sync_fetch_and_add(p->other ? &b->quic : &b->untouched, (__u32)load_of(skb, p));
	return 0;
}

/* `Strangers::of_bare` */
static __always_inline __u32 bare_host(struct hook *h, struct packet *p, __u32 place)
{
	__u64 hash = hash_of_source(h->ingress ? p->key.dst : p->key.src) ^ place * QUEUE_SPREAD;

	return (hash >> (64 - BARE_BITS)) + (h->ingress ? BARE_HOSTS : 0);
}

/* Judges a packet, in a direction with bounds. `charged`: it has data, or is no segment of TCP. */
static __always_inline __u32 judge_packet(struct hook *h, struct packet *p, bool charged)
{
	/* Before the key is cut down to what rules look at. */
	bool quic = p->other && is_quic(h->skb, p);
	__u64 found = find_class(p, engine_number(h), h->ingress, false);
	__u32 judgement;

	/* From here, and not from within: all of their stacks together are too much for Linux 6.1. */
	if (found >> FOUND_KIND == FOUND_NOTHING >> FOUND_KIND) {
		found = find_out(found, READ(h->engine->rules[!!h->ingress]), engine_number(h), h->ingress,
				 p->coarse >> UNIT_SHIFT);
		if (found >> FOUND_KIND == FOUND_NOTHING >> FOUND_KIND)
			found = find_class(p, engine_number(h), h->ingress, true);
	}
	if (found == FOUND_NONE) {
		if (charged)
			count_unlisted(h->skb, p, h->ingress);
		return JUDGED_PASSES;
	}
	if (!charged) {
		__u32 bytes = charged_len(h->skb, p), number = engine_number(h), back;
		int bare;

		found = found >> FOUND_KIND << FOUND_KIND | bare_host(h, p, found >> FOUND_PLACE);
		bare = exceeds_bare(p, bytes, number, NOT_SOUGHT, found);

		if (bare == BARE_SEEKS) {
			back = bare_by(p, number, h->ingress, found >> FOUND_PLACE);
			bare = exceeds_bare(p, bytes, number, back, found);
		}
		if (bare != BARE_EXCEEDS)
			return JUDGED_PASSES;
		h->count->policed++;
		return JUDGED_DROPPED;
	}
	see_data(h, p, found);
	judgement = judged(h->skb, p, engine_number(h), h->ingress, found);
	if (judgement == JUDGED_DROPPED)
		h->count->policed++;
	else if (quic || (!p->other && (found >> FOUND_KIND & 3) == KIND_COUNTED))
		count_part(h->skb, p, found >> FOUND_PLACE);
	return judgement;
}

#endif
