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

/* When the next one is due of a stream at its budget's pace: the generic cell rate algorithm. */
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
};

/* The time, read once for a segment, if anything asks for it. */
static __always_inline __u64 now(struct hook *h)
{
	if (!h->now)
		h->now = bpf_ktime_get_ns();
	return h->now;
}

static __always_inline bool within(struct hook *h, enum budgets which)
{
	__u64 interval = config.budgets[which].interval, burst = config.budgets[which].burst;
	__u64 old = *(volatile __u64 *)&due[which], next = old, at = now(h);

	if ((__s64)(at - next) > (__s64)burst)
		next = at - burst;
	next += interval;
	/* Who loses the race leaves the room to the winner. */
	if ((__s64)(next - at) > 0 || __sync_val_compare_and_swap(&due[which], old, next) != old) {
		h->count->over_budget++;
		return false;
	}
	return true;
}

/* Never TC_ACT_SHOT: at egress the local stack takes it for congestion, and a socket gets ENOBUFS. */
static __always_inline int consume(void)
{
	return bpf_redirect(0, 0);
}

static __always_inline enum parsed parse(struct __sk_buff *skb, struct packet *p)
{
	__u32 want = skb->len < HEADERS ? skb->len : HEADERS;
	enum parsed parsed = read_packet(skb, config.ethernet, p);

	if (parsed != PARSED_SHORT)
		return parsed;
	/* Headers in fragments of the buffer: pull them in, once. */
	if (bpf_skb_pull_data(skb, want))
		return PARSED_OTHER;
	__builtin_memset(p, 0, sizeof(*p));
	return read_packet(skb, config.ethernet, p);
}

#endif
