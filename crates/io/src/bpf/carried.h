/* SPDX-License-Identifier: GPL-2.0 OR MIT OR Apache-2.0 */
/*
 * Metadata of the ACKs that are taken, for those that are made in their place. Hooks alone read and write it.
 */
#ifndef WEIR_CARRIED_H
#define WEIR_CARRIED_H

#include "lookup.h"
#include "metadata.h"

/* Metadata of the ACK that was taken last of a slot's flow. */
struct carried {
	__u32 tag; /* the slot's, or the entry is of a flow that is gone */
	__u32 mark;
	__u32 priority;
	__u32 queue;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 65536);
	__type(key, __u32);
	__type(value, struct carried);
} carried SEC(".maps");

/* Not 0: ACKs with metadata have come. Until then nothing is looked up. */
static __u32 carrying;

/* `tc_index` of a made ACK between egress and ingress. */
#define BY_SLOT (LEAVING + 1)

/* An ACK of the slot's flow is taken. */
static __always_inline void carry(struct __sk_buff *skb, struct packet *p, struct slot *slot)
{
	struct carried *entry;
	__u32 number = p->slot; /* On the stack: see slot_of. */

	if (!(skb->mark | skb->priority | skb->queue_mapping) && !READ(carrying))
		return;
	entry = bpf_map_lookup_elem(&carried, &number);
	if (!entry)
		return;
	if (!READ(carrying))
		WRITE(carrying, 1);
	WRITE(entry->mark, skb->mark);
	WRITE(entry->priority, skb->priority);
	WRITE(entry->queue, skb->queue_mapping);
	WRITE(entry->tag, READ(slot->tag));
}

/* Gives an ACK that was made for the slot's flow the metadata of the one that was taken last. */
static __always_inline void give_carried(struct __sk_buff *skb, struct packet *p, struct slot *slot)
{
	struct carried *entry;
	__u32 number = p->slot;

	if (!READ(carrying))
		return;
	entry = bpf_map_lookup_elem(&carried, &number);
	if (!entry || READ(entry->tag) != READ(slot->tag))
		return;
	skb->mark = READ(entry->mark);
	skb->priority = READ(entry->priority);
	skb->queue_mapping = READ(entry->queue);
}

#endif
