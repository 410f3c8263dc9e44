/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Which frames are the engine's own: those of the packet sockets that it has registered, by their
 * cookies. A mark would collide with policy routing and firewalls. The socket stays with the frame
 * when that is redirected to ingress (`skb_scrub_packet()` keeps it); it is let go by the IP layer.
 */
#ifndef WEIR_OWN_H
#define WEIR_OWN_H

#include "giant.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 128); /* of eight engines, and of those that follow them */
	__type(key, __u64);
	__type(value, __u32);
} senders SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* one for each engine */
	__type(key, __u32);
	__type(value, struct hooks);
} hooks SEC(".maps");

/* The role of the socket that sent the frame; NULL: not ours. */
static __always_inline __u32 *sender_role(struct __sk_buff *skb)
{
	struct bpf_sock *sk = skb->sk;
	__u64 cookie;

	if (!sk || sk->family != AF_PACKET)
		return NULL;
	cookie = bpf_get_socket_cookie(skb);
	return bpf_map_lookup_elem(&senders, &cookie);
}

/*
 * Headers of each of the packets that a giant segment stands for, about: Ethernet, IPv4, TCP with timestamps.
 */
#define GIANT_HEADERS 66

/* Adds a frame as it is on the wire, about. */
static __always_inline void count_frame(struct __sk_buff *skb, __u64 *bytes, __u64 *packets)
{
	__u64 count = packets_of(skb, GIANT_HEADERS);

	*bytes += skb->len + (count - 1) * GIANT_HEADERS;
	*packets += count;
}

/* A probe's addresses are all zero: frames of hosts, which go through the engine too, have others. */
static __always_inline bool is_probe(struct __sk_buff *skb)
{
	__u64 first;

	return skb->protocol == bpf_htons(ETH_P_PROBE) && !bpf_skb_load_bytes(skb, 0, &first, sizeof(first)) && !first;
}

/* A frame of the engine's that has come where it belongs. True if that was all it was for. */
static __always_inline bool has_arrived(struct __sk_buff *skb, struct hooks *engine, __u32 role, const bool ingress)
{
	if (role & ROLE_ENGINE)
		__sync_fetch_and_add(ingress ? &engine->seen_in : &engine->seen_out, 1);
	return is_probe(skb);
}

/* Is it known that what is taken would not come back? */
static __always_inline bool is_gone(struct hooks *engine)
{
	return *(volatile __u32 *)&engine->gone;
}

/* Has the engine found that what it sends does not arrive? */
static __always_inline bool is_shut(struct hooks *engine, const bool ingress)
{
	return *(volatile __u32 *)(ingress ? &engine->shut_in : &engine->shut_out);
}

/* May this one be taken, although its way is shut, to try it? */
static __always_inline bool is_trial(struct hooks *engine, const bool ingress)
{
	__u32 bit = ingress ? TRIAL_IN : TRIAL_OUT;

	return *(volatile __u32 *)&engine->trial & bit && __sync_fetch_and_and(&engine->trial, ~bit) & bit;
}

/* The engine may beat on another CPU just after the time was read: compared signed. */
static __always_inline bool is_fresh(struct hooks *engine, __u64 now, __u64 stale)
{
	return (__s64)(now - *(volatile __u64 *)&engine->beat) <= (__s64)stale;
}

/* Has the engine ended, without a supervisor that gives the next one what is taken? */
static __always_inline bool is_left(struct hooks *engine, __u64 stale, __u64 coarse)
{
	return *(volatile __u32 *)&engine->owner & OWNER_DIED &&
	       (__s64)(coarse - *(volatile __u64 *)&engine->watched) > (__s64)stale;
}

/*
 * Has the engine beaten less than `stale` ago, and is the way to it whole? A clock that stands still between
 * two ticks is read for a fraction of what the exact one costs; that one is asked where the beat may be too
 * old.
 */
static __always_inline bool is_attended_at(struct hooks *engine, __u64 stale, __u64 coarse)
{
	return !is_gone(engine) && !is_left(engine, stale, coarse) &&
	       (is_fresh(engine, coarse, stale / 2) || is_fresh(engine, bpf_ktime_get_ns(), stale));
}

static __always_inline bool is_attended(struct hooks *engine, __u64 stale)
{
	return is_attended_at(engine, stale, bpf_ktime_get_coarse_ns());
}

/* Is an upgrade under way? The next engine takes what waits, and nothing passes its bound. */
static __always_inline bool is_upgraded(struct hooks *engine, __u64 coarse)
{
	return (__s64)(*(volatile __u64 *)&engine->kept_until - coarse) > 0;
}

#endif
