/* SPDX-License-Identifier: GPL-2.0 OR MIT OR Apache-2.0 */
/*
 * Steering of everything, giant segments whole. On one interface, each hook redirects frames to one end of
 * an internal pair of devices, and packet sockets read the other end; for a bump in the wire, packet
 * sockets read both interfaces themselves and a program drops what they have read.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>
#include "abi.h"
#include "own.h"
#include "metadata.h"

const volatile struct all_config config = { .stale = 50000000, .ethernet = 1 };

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct all_counters);
} counters SEC(".maps");

/* Written by the hooks, read by the engine. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, ARRIVING);
	__type(key, __u32);
	__type(value, struct metadata);
} arriving SEC(".maps");

/* Number of the record written last. */
static __u32 arrived;

/* Departure times farther ahead are none of CLOCK_MONOTONIC; fq has the same horizon. */
#define HORIZON 10000000000LL

/* A frame's departure time; 0: it may leave at once. */
static __always_inline __u64 departure_of(struct __sk_buff *skb)
{
	__u64 time = skb->tstamp;

	/* The exact clock is read only where the coarse one, which may be late, leaves a doubt. */
	if ((__s64)(time - bpf_ktime_get_coarse_ns()) <= 0 || (__s64)(time - bpf_ktime_get_ns()) <= 0)
		return 0;
	return (__s64)(time - bpf_ktime_get_coarse_ns()) <= HORIZON ? time : 0;
}

/* Leaves a frame's metadata to the engine. */
static __always_inline void keep_metadata(struct __sk_buff *skb, const bool ingress, __u16 spilled)
{
	/* A frame that came in has a time of arrival there. */
	__u64 departure = !ingress && skb->tstamp ? departure_of(skb) : 0;
	__u32 number, place;
	struct metadata *record;

	if (!(skb->mark | skb->priority | skb->queue_mapping | spilled) && !departure)
		return;
	number = __sync_fetch_and_add(&arrived, 1) + 1;
	place = number % ARRIVING;
	record = bpf_map_lookup_elem(&arriving, &place);
	if (!record)
		return;
	record->departure = departure;
	record->mark = skb->mark;
	record->priority = skb->priority;
	record->queue = skb->queue_mapping;
	record->spilled = spilled;
	record->number = number;
	skb->mark = number;
}

/* The internal devices want an Ethernet header (`__bpf_redirect_common()`): makes one up. */
static __always_inline bool put_ethernet(struct __sk_buff *skb)
{
	__be16 proto = skb->protocol;
	__u8 header[ETH_HLEN] = {};

	__builtin_memcpy(header + 12, &proto, 2);
	if (bpf_skb_change_head(skb, ETH_HLEN, 0))
		return false;
	return !bpf_skb_store_bytes(skb, 0, header, sizeof(header), 0);
}

static __always_inline void count_out(struct all_counters *count, struct __sk_buff *skb)
{
	count_frame(skb, &count->bytes_out, &count->packets_out);
}

/* A frame of the engine's, seen by a hook of the interface. */
static __always_inline int own(struct __sk_buff *skb, struct hooks *engine, struct all_counters *count, __u32 role,
			       const bool ingress)
{
	bool to_ingress = role & ROLE_TO_INGRESS;

	/* Seen at ingress: it has been redirected from egress. */
	restore_metadata(skb, ingress, !ingress && to_ingress);
	if (!ingress && to_ingress)
		return bpf_redirect(skb->ifindex, BPF_F_INGRESS);
	count->own++;
	/* Those in front have counted it. */
	if (!config.behind && has_arrived(skb, engine, role, to_ingress))
		return bpf_redirect(0, 0);
	if (!ingress)
		count_out(count, skb);
	return TC_ACT_UNSPEC;
}

/* Is there an engine, or the next one about to be? Less is lost until then than would pass. */
static __always_inline bool is_taken(struct hooks *engine)
{
	return is_attended(engine, config.stale) ||
	       (!is_gone(engine) && is_upgraded(engine, bpf_ktime_get_coarse_ns()));
}

static __always_inline int run(struct __sk_buff *skb, const bool ingress)
{
	__u32 zero = 0, *role, to, spilled = 0;
	struct all_counters *count = bpf_map_lookup_elem(&counters, &zero);
	struct hooks *engine = bpf_map_lookup_elem(&hooks, &zero);

	if (!count || !engine)
		return TC_ACT_UNSPEC;
	role = sender_role(skb);
	if (role)
		return own(skb, engine, count, *role, ingress);
	to = *(volatile __u32 *)(ingress ? &engine->in_to : &engine->out_to);
	if (ingress ? config.spilled_in : config.spilled_out) {
		spilled = skb->cb[0];
		if (spilled >> 16 != SPILLED >> 16)
			to = 0;
	}
	/* What is taken is counted when it leaves. */
	if (ingress) {
		count_frame(skb, &count->bytes_in, &count->packets_in);
	} else if (!to) {
		count_out(count, skb);
	}
	if (!to)
		return TC_ACT_UNSPEC;
	if (!is_taken(engine) || (is_shut(engine, ingress) && !is_trial(engine, ingress))) {
		count->passed_stale++;
		if (!ingress)
			count_out(count, skb);
		return TC_ACT_UNSPEC;
	}
	if (!config.ethernet && !put_ethernet(skb)) {
		count->failed++;
		if (!ingress)
			count_out(count, skb);
		return TC_ACT_UNSPEC;
	}
	keep_metadata(skb, ingress, spilled);
	count->taken++;
	__sync_fetch_and_add(ingress ? &engine->taken_in : &engine->taken_out, 1);
	return bpf_redirect(to, 0);
}

SEC("tc")
int all_ingress(struct __sk_buff *skb)
{
	return run(skb, true);
}

SEC("tc")
int all_egress(struct __sk_buff *skb)
{
	return run(skb, false);
}

/* At the egress of another device, by which frames are sent that are to come in on the interface. */
SEC("tc")
int all_return(struct __sk_buff *skb)
{
	__u32 zero = 0, *role = sender_role(skb), home;
	struct hooks *engine = bpf_map_lookup_elem(&hooks, &zero);

	if (!role || !engine)
		return TC_ACT_UNSPEC;
	home = *(volatile __u32 *)&engine->home;
	restore_metadata(skb, false, true);
	return home && *role & ROLE_TO_INGRESS ? bpf_redirect(home, BPF_F_INGRESS) : bpf_redirect(0, 0);
}

/* Behind the sockets of a bump in the wire, which have seen the frame (`__netif_receive_skb_core()`). */
SEC("tc")
int all_drop(struct __sk_buff *skb)
{
	__u32 zero = 0;
	struct all_counters *count = bpf_map_lookup_elem(&counters, &zero);
	struct hooks *engine = bpf_map_lookup_elem(&hooks, &zero);

	if (!count || !engine)
		return TC_ACT_UNSPEC;
	if (!is_attended(engine, config.stale)) {
		count->passed_stale++;
		return TC_ACT_UNSPEC;
	}
	count->dropped++;
	return TC_ACT_SHOT;
}

/* Behind the sockets on the internal devices: nothing there is for the host, ever. */
SEC("tc")
int all_sink(struct __sk_buff *skb)
{
	__u32 zero = 0;
	struct all_counters *count = bpf_map_lookup_elem(&counters, &zero);

	if (count)
		count->dropped++;
	return TC_ACT_SHOT;
}

char LICENSE[] SEC("license") = "GPL";
