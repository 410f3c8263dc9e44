/* SPDX-License-Identifier: GPL-2.0 OR MIT OR Apache-2.0 */
/* Frames that the engine, the rescuer or the next engine sends. */
#ifndef WEIR_STAMP_H
#define WEIR_STAMP_H

#include "lookup.h"
#include "rewrite.h"

/* Brings an ACK that the engine sends up to date. False: something newer has left. */
static __always_inline bool restamp(struct hook *h)
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
	return true;
}

/* A frame that the engine, the rescuer or the next engine sends. */
static __always_inline int own(struct hook *h, __u32 role)
{
	/* It has been redirected from egress. */
	if (h->ingress)
		return TC_ACT_UNSPEC;
	if (!(role & ROLE_RESTAMP))
		h->count->own++;
	else if (!restamp(h))
		return consume();
	return role & ROLE_TO_INGRESS ? bpf_redirect(h->skb->ifindex, BPF_F_INGRESS) : TC_ACT_UNSPEC;
}

#endif
