/* SPDX-License-Identifier: GPL-2.0 OR MIT OR Apache-2.0 */
/*
 * State of one run of a hook, the programs' knobs and counters, and the budgets for unknown traffic.
 */
#ifndef WEIR_HOOK_H
#define WEIR_HOOK_H

#include "abi.h"
#include "packet.h"
#include "own.h"

const volatile struct acks_config config = { .stale = 50000000, .absent = 2000000000, .ethernet = 1 };

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct acks_counters);
} counters SEC(".maps");

/* Groups of addresses on the LAN's side. */
#define SOURCES 1024
/*
 * What each group may have whatever the others take: a 1024th of the rate, and a 256th of what may come at
 * once.
 */
#define OWN_RATE_SHIFT 10
#define OWN_BURST_SHIFT 2

/*
 * When the next one is due of a stream at its budget's pace: the generic cell rate algorithm. All addresses
 * together have a third more than the budget, one of them no more than it, and each has a little that no
 * other can use up.
 */
struct stream {
	__u64 due;
	__u64 own;
};
static struct stream streams[BUDGETS * SOURCES];
static __u64 due[BUDGETS];

/* What a hook knows of a segment. */
struct hook {
	struct __sk_buff *skb;
	struct acks_counters *count;
	struct hooks *engine;
	__u64 now; /* 0: not read yet */
#if SEVERAL
	__u32 number; /* the engine's */
#endif
	bool ingress;
	bool ethernet; /* the device has Ethernet headers */
};

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

static __always_inline __u32 engine_number(struct hook *h)
{
#if SEVERAL
	return h->number;
#else
	return 0;
#endif
}

/* The time, read once for a segment, if anything asks for it. */
static __always_inline __u64 now(struct hook *h)
{
	if (!h->now)
		h->now = bpf_ktime_get_ns();
	return h->now;
}

/* Is there one left of a stream? */
static __always_inline bool paced(__u64 *place, __u64 interval, __u64 burst, __u64 at)
{
	__u64 old = *(volatile __u64 *)place, next = old;

	if ((__s64)(at - next) > (__s64)burst)
		next = at - burst;
	next += interval;
	/* Who loses the race leaves the room to the winner. */
	return (__s64)(next - at) <= 0 && __sync_val_compare_and_swap(place, old, next) == old;
}

/*
 * `hash_of_source`: of an address on the LAN's side. Of IPv4 all of it counts, of IPv6 the first 64 bits, of
 * which one customer has the rest.
 */
static __always_inline __u64 hash_of_source(const __u8 *address)
{
	__u32 parts[4];
	__u64 hash;

	__builtin_memcpy(parts, address, sizeof(parts));
	hash = (__u64)parts[0] << 32 | parts[1];
	if (!hash)
		hash = parts[3];
	/* Multiplicative hashing, twice: a secret odd number, and the high half folded in between. */
	hash *= config.seed;
	hash ^= hash >> 32;
	return hash * config.seed;
}

/* The group of the address on the LAN's side. */
static __always_inline __u32 source_of(struct hook *h, const struct packet *p)
{
	return hash_of_source(h->ingress ? p->key.dst : p->key.src) >> 54;
}

/* Is there room in a budget for one more of these addresses? Verified once. */
__noinline int within_budget(__u32 which, __u32 source)
{
	__u64 interval, burst, at = bpf_ktime_get_ns(), place;
	struct acks_counters *count;
	struct stream *stream;
	__u32 zero = 0;

	if (which >= BUDGETS)
		return false;
	interval = config.budgets[which].interval;
	burst = config.budgets[which].burst;
	place = which * SOURCES + (source & (SOURCES - 1));
	/* Always so. The verifier of 6.1 sees it by this. */
	APART(place);
	if (place >= BUDGETS * SOURCES)
		return false;
	stream = &streams[place];
	if (paced(&stream->own, interval << OWN_RATE_SHIFT, burst << OWN_BURST_SHIFT, at))
		return true;
	if (paced(&stream->due, interval, burst, at) && paced(&due[which], interval - interval / 4, burst, at))
		return true;
	count = bpf_map_lookup_elem(&counters, &zero);
	if (count)
		count->over_budget++;
	return false;
}

static __always_inline bool within(enum budgets which, __u32 source)
{
	return within_budget(which, source);
}

/* Never TC_ACT_SHOT: at egress the local stack takes it for congestion, and a socket gets ENOBUFS. */
static __always_inline int consume(void)
{
	return bpf_redirect(0, 0);
}

/* Reads a packet. */
static __always_inline enum parsed parse_frame(struct __sk_buff *skb, struct packet *p, bool ethernet)
{
	__u32 want = skb->len < HEADERS ? skb->len : HEADERS;
	enum parsed parsed = read_packet(skb, p, ethernet);

	/* Headers in fragments of the buffer: pull them in, once. */
	if (parsed == PARSED_SHORT && !bpf_skb_pull_data(skb, want)) {
		__builtin_memset(p, 0, sizeof(*p));
		parsed = read_packet(skb, p, ethernet);
	}
	return parsed;
}

static __always_inline enum parsed parse(struct hook *h, struct packet *p)
{
	enum parsed parsed;

	if (read_usual(h->skb, h->ethernet, p, &parsed))
		return parsed;
	return parse_frame(h->skb, p, h->ethernet);
}

#endif
