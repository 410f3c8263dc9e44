/* SPDX-License-Identifier: GPL-2.0 OR MIT OR Apache-2.0 */
/* Frames that the engine, the rescuer or the next engine sends. */
#ifndef WEIR_STAMP_H
#define WEIR_STAMP_H

#include "carried.h"
#include "rewrite.h"

/*
 * Brings an ACK that the engine sends up to date. False: something newer has left. `bare`: it has no metadata
 * yet.
 */
static __always_inline bool restamp(struct hook *h, bool bare, bool inward)
{
	struct packet p = {};
	struct stamped stamped;
	struct numbers to;
	struct slot *slot;

	if (parse(h->skb, &p) != PARSED_TCP || p.seen.flags & (TCP_SYN | TCP_RST | TCP_FIN))
		return true;
	slot = slot_of(&p);
	if (!slot)
		return true;
	read_options(h->skb, &p);
	if (!slot_stamp(slot, p.seen.ack, p.seen.window, &stamped)) {
		h->count->discarded++;
		return false;
	}
	to = p.numbers;
	to.seq = bpf_htonl(stamped.seq);
	to.window = bpf_htons(stamped.window);
	if (rewrite(h->skb, &p, &to, bpf_htonl(stamped.ts)))
		h->count->failed++;
	else
		h->count->stamped++;
	if (bare && READ(carrying)) {
		give_carried(h->skb, &p, slot);
		h->skb->tc_index = inward ? BY_SLOT : 0;
	}
	return true;
}

/* A frame that has been redirected from egress. */
static __always_inline void back(struct hook *h)
{
	struct packet p = {};
	struct slot *slot;

	if (h->skb->tc_index != BY_SLOT) {
		restore_metadata(h->skb, true, false);
		return;
	}
	h->skb->tc_index = 0;
	slot = parse(h->skb, &p) == PARSED_TCP ? slot_of(&p) : NULL;
	if (slot)
		give_carried(h->skb, &p, slot);
}

/* A frame that the engine, the rescuer or the next engine sends. */
static __always_inline int own(struct hook *h, __u32 role)
{
	bool inward = role & ROLE_TO_INGRESS, bare;

	if (h->ingress) {
		back(h);
		return TC_ACT_UNSPEC;
	}
	bare = !restore_metadata(h->skb, false, inward);
	if (!(role & ROLE_RESTAMP))
		h->count->own++;
	else if (!restamp(h, bare, inward))
		return consume();
	return inward ? bpf_redirect(h->skb->ifindex, BPF_F_INGRESS) : TC_ACT_UNSPEC;
}

#endif
