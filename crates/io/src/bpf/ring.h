/* SPDX-License-Identifier: GPL-2.0 OR MIT OR Apache-2.0 */
/* Records of segments for the engine: heads of frames, written to its ring. */
#ifndef WEIR_RING_H
#define WEIR_RING_H

#include "hook.h"
#include "slot.h"

#if SEVERAL
/* Of each engine, by its number. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__array(values, struct {
		__uint(type, BPF_MAP_TYPE_RINGBUF);
		__uint(max_entries, 1 << 16);
	});
} rings SEC(".maps");
#else
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 22);
} ring SEC(".maps");
#endif

/* Made up where there is none: the core sees Ethernet always. */
static __always_inline void put_ethernet(struct segment *record, __be16 proto)
{
	__builtin_memset(record->head, 0, 12);
	*(__be16 *)(record->head + 12) = proto;
}

/* Copies bytes from `from` on to `at` of the record's head, as many as fit. */
static __always_inline bool copy_bytes(struct hook *h, struct segment *record, __u32 from, const __u32 at)
{
	__u32 len = h->skb->len;

	if (len <= from)
		return false;
	len -= from;
	if (len > SEGMENT_HEAD - at)
		len = SEGMENT_HEAD - at;
	APART(len);
	if (len < 2)
		return false;
	APART(len);
	if (len > SEGMENT_HEAD - at)
		return false;
	if (bpf_skb_load_bytes(h->skb, from, record->head + at, len))
		return false;
	record->head_len = at + len;
	return true;
}

/* The frame's head as it was on the wire: with the tag that the device took out. */
static __always_inline bool copy_head(struct hook *h, struct segment *record)
{
	struct __sk_buff *skb = h->skb;

	record->len = skb->len;
	if (!config.ethernet) {
		record->len += ETH_HLEN;
		put_ethernet(record, skb->protocol);
		return copy_bytes(h, record, 0, ETH_HLEN);
	}
	if (!skb->vlan_present)
		return copy_bytes(h, record, 0, 0);
	record->len += 4;
	if (bpf_skb_load_bytes(skb, 0, record->head, 12))
		return false;
	*(__be16 *)(record->head + 12) = skb->vlan_proto;
	*(__be16 *)(record->head + 14) = bpf_htons(skb->vlan_tci);
	return copy_bytes(h, record, 12, 16);
}

/* Room in the engine's ring; NULL: there is none. */
static __always_inline struct segment *reserve(struct hook *h)
{
#if SEVERAL
	__u32 number = h->number;
	void *ring = bpf_map_lookup_elem(&rings, &number);

	return ring ? bpf_ringbuf_reserve(ring, sizeof(struct segment), 0) : NULL;
#else
	return bpf_ringbuf_reserve(&ring, sizeof(struct segment), 0);
#endif
}

/* Puts everything into a record. False: the frame cannot be read. */
static __always_inline bool fill(struct hook *h, struct segment *record, enum fate fate)
{
	record->time = now(h);
	record->port = h->ingress;
	record->fate = fate;
	record->gso_size = h->skb->gso_size;
	record->queue = h->skb->queue_mapping;
	record->mark = h->skb->mark;
	record->priority = h->skb->priority;
	return copy_head(h, record);
}

/* A record with everything in it, still to be submitted; NULL: no room in the ring. */
static __always_inline struct segment *record_of(struct hook *h, enum fate fate)
{
	struct segment *record = reserve(h);

	if (!record) {
		h->count->ring_full++;
		return NULL;
	}
	if (!fill(h, record, fate)) {
		bpf_ringbuf_discard(record, BPF_RB_NO_WAKEUP);
		return NULL;
	}
	return record;
}

/*
 * An engine that is about to sleep sets `wake` and then looks at the ring's producer position. Here the
 * position has been moved (bpf_ringbuf_reserve) and `wake` is read: one of the two sees the other, if
 * neither read overtakes the write before it. The atomic addition that returns a value is a full
 * barrier on every architecture.
 */
static __always_inline void submit(struct hook *h, struct segment *record, __u64 *counter)
{
	__u64 flags = BPF_RB_NO_WAKEUP;

	__sync_fetch_and_add(counter, 1);
	if (READ(h->engine->wake))
		flags = BPF_RB_FORCE_WAKEUP;
	bpf_ringbuf_submit(record, flags);
}

/* Shows a segment that passes as it came. Verified once. */
__noinline int show_frame(struct __sk_buff *skb, __u32 number, __u32 ingress)
{
	struct hook h = { .skb = skb, .ingress = ingress };
	struct segment *record = begin(&h, number) ? record_of(&h, FATE_PASSED) : NULL;

	if (record)
		submit(&h, record, &h.count->copied);
	return TC_ACT_UNSPEC;
}

static __always_inline int show(struct hook *h)
{
	return show_frame(h->skb, engine_number(h), h->ingress);
}

static __always_inline int show_within(struct hook *h, enum budgets which, __u32 source)
{
	return within(which, source) ? show(h) : TC_ACT_UNSPEC;
}

/*
 * Takes a segment for the engine, of the flow of `slot` if there is one. False: it cannot be taken whole.
 * Verified once.
 */
__noinline int take_frame(struct __sk_buff *skb, struct slot *slot, __u32 number, __u32 ingress)
{
	struct hook h = { .skb = skb, .ingress = ingress };
	struct segment *record = NULL;

	if (begin(&h, number))
		record = record_of(&h, slot ? FATE_COUNTED : FATE_TAKEN);
	if (!record)
		return false;
	if (record->head_len != record->len) {
		bpf_ringbuf_discard(record, BPF_RB_NO_WAKEUP);
		return false;
	}
	if (slot)
		slot_take(slot);
	submit(&h, record, &h.count->taken);
	return true;
}

static __always_inline bool take(struct hook *h, struct slot *slot)
{
	return take_frame(h->skb, slot, engine_number(h), h->ingress);
}

#endif
