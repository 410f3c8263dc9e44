/* SPDX-License-Identifier: GPL-2.0 OR MIT OR Apache-2.0 */
/* Frames that the engine, the rescuer or the next engine sends. */
#ifndef WEIR_STAMP_H
#define WEIR_STAMP_H

#include "carried.h"
#include "rewrite.h"

/* Brings an ACK, which was read, of this slot up to date. False: something newer has left. */
static __always_inline bool restamp_by(struct hook *h, struct packet *p, struct slot *slot)
{
	struct numbers_of known;
	struct stamped stamped;
	struct numbers to;

	if (!slot_read(slot, p->use, &known))
		return true;
	read_options(h->skb, p);
	if (!slot_stamp(slot, &known, p->seen.ack, p->seen.window, &stamped)) {
		h->count->discarded++;
		return false;
	}
	to = p->numbers;
	to.seq = bpf_htonl(stamped.seq);
	to.window = bpf_htons(stamped.window);
	if (rewrite(h->skb, p, &to, bpf_htonl(stamped.ts)))
		h->count->failed++;
	else
		h->count->stamped++;
	return true;
}

/*
 * Brings an ACK that the engine sends up to date. False: something newer has left. `bare`: it has no metadata
 * yet. Verified once.
 */
__noinline int restamp(struct __sk_buff *skb, bool ethernet, bool bare, bool inward)
{
	struct hook h = { .skb = skb, .ethernet = ethernet };
	struct packet p = {};
	struct slot *slot;

	if (!begin(&h, 0) || parse(&h, &p) != PARSED_TCP || p.seen.flags & (TCP_SYN | TCP_RST | TCP_FIN))
		return true;
	slot = slot_of(&p.key, &p);
	if (!slot)
		return true;
	if (!restamp_by(&h, &p, slot))
		return false;
	if (bare && READ(carrying)) {
		give_carried(skb, &p, slot);
		skb->tc_index = inward ? BY_SLOT : 0;
	}
	return true;
}

/* A frame that has been redirected from an egress. Verified once. */
__noinline int back(struct __sk_buff *skb)
{
	struct hook h = { .skb = skb, .ethernet = config.ethernet };
	struct packet p = {};
	struct slot *slot;

	if (skb->tc_index != BY_SLOT) {
		restore_metadata(skb, true, false);
		return 0;
	}
	skb->tc_index = 0;
	slot = parse(&h, &p) == PARSED_TCP ? slot_of(&p.key, &p) : NULL;
	if (slot)
		give_carried(skb, &p, slot);
	return 0;
}

/* Whose words tell of a frame of a sender with this role. */
static __always_inline struct hooks *engine_of(struct hook *h, __u32 role)
{
#if SEVERAL
	__u32 number = role >> ROLE_NUMBER;
	struct hooks *engine = bpf_map_lookup_elem(&hooks, &number);

	return engine ? engine : h->engine;
#else
	return h->engine;
#endif
}

#define OWN_TO_STAMP 1
#define OWN_BARE 2

/* Gives a frame of the engine's what it is to carry. Returns whether it is to be stamped. Verified once. */
__noinline __u32 own_begins(struct __sk_buff *skb, __u32 role)
{
	struct hook h = { .skb = skb };
	bool bare;

	if (is_probe(skb) || !begin(&h, 0))
		return 0;
	bare = !restore_metadata(skb, false, role & ROLE_TO_INGRESS);
	if (role & ROLE_RESTAMP)
		return bare ? OWN_TO_STAMP | OWN_BARE : OWN_TO_STAMP;
	h.count->own++;
	return 0;
}

/* As above, and counts and stamps it. False: something newer has left. */
static __always_inline bool leaves(struct __sk_buff *skb, __u32 role, bool ethernet)
{
	__u32 state = own_begins(skb, role);

	return !(state & OWN_TO_STAMP) || restamp(skb, ethernet, state & OWN_BARE, role & ROLE_TO_INGRESS);
}

/* Ends with it: sends it where it belongs, unless something newer has left. Verified once. */
__noinline int own_ends(struct __sk_buff *skb, __u32 role, __u32 ingress, bool leaving)
{
	struct hook h = { .skb = skb };
	bool inward = role & ROLE_TO_INGRESS;

	if (!ingress && inward && leaving)
		return bpf_redirect(skb->ifindex, BPF_F_INGRESS);
	if (!begin(&h, 0))
		return TC_ACT_UNSPEC;
	if (has_arrived(skb, engine_of(&h, role), role, inward) || !leaving)
		return consume();
	return TC_ACT_UNSPEC;
}

/* A frame that the engine, the rescuer or the next engine sends, seen by a hook of the interface. */
static __always_inline int own_frame(struct __sk_buff *skb, __u32 role, const bool ingress)
{
	bool leaving = true;

	if (ingress)
		back(skb);
	else
		leaving = leaves(skb, role, config.ethernet);
	return own_ends(skb, role, ingress, leaving);
}

/*
 * A frame that is sent on another device, to come in on the interface: no filter at the egress of that one
 * stands in its way, such as those of sources that are not the host's own (BCP 38).
 */
static __always_inline int homewards(struct hook *h, __u32 role)
{
	__u32 home = READ(h->engine->home);

	if (!home || !(role & ROLE_TO_INGRESS))
		return consume();
	if (leaves(h->skb, role, h->ethernet))
		return bpf_redirect(home, BPF_F_INGRESS);
	has_arrived(h->skb, engine_of(h, role), role, true);
	return consume();
}

#endif
