/* SPDX-License-Identifier: GPL-2.0 OR MIT OR Apache-2.0 */
/*
 * Steering of ACKs: one program at the ingress, one at the egress of the interface towards the WAN.
 *
 * Data never leaves the kernel. Pure ACKs of controlled flows are taken to the engine, the ACK fields of
 * segments with payload are set back in place, and the ACKs that the engine makes are brought up to
 * date on their way out. Only the core classifies: unknown flows are shown to it within a budget.
 * Whatever goes wrong, a segment passes, and what passes is noted in the flow's slot: a made ACK
 * that is older than what the sender has would be refused by it (PAWS, RFC 5961).
 *
 * Compiled twice: for one engine, and with SEVERAL for several of them, which have a part of the slots, a
 * ring and an entry of `hooks` each. A flow that has a slot is its engine's; whatever else comes is that of
 * the engine that has its address.
 */
#ifndef SEVERAL
#define SEVERAL 0
#endif

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include "lookup.h"
#include "ring.h"
#include "openings.h"
#include "sum.h"
#include "stamp.h"
#include "count.h"
#include "bound.h"

static __always_inline bool rewritten(struct hook *h, struct packet *p, const struct numbers *to)
{
	if (!rewrite(h->skb, p, to, p->ts))
		return true;
	h->count->failed++;
	return false;
}

/* False: it could not be told or done, and passes as it came. */
static __always_inline bool set_back(struct hook *h, struct packet *p, const struct action *action)
{
	struct numbers to = p->numbers;
	struct segment *record;

	to.ack = bpf_htonl(action->ack);
	to.window = bpf_htons(action->window);
	if (!action->report) {
		if (!rewritten(h, p, &to))
			return false;
		h->count->set_back++;
		return true;
	}
	/* As it was before. */
	record = record_of(h, FATE_SET_BACK);
	if (!record)
		return false;
	if (!rewritten(h, p, &to)) {
		bpf_ringbuf_discard(record, BPF_RB_NO_WAKEUP);
		return false;
	}
	submit(h, record, &h->count->set_back);
	return true;
}

/* A segment with a wrong checksum passes as it came: its receiver does nothing with it. */
static __always_inline int broken(struct hook *h)
{
	h->count->broken++;
	return TC_ACT_UNSPEC;
}

/* The engine is away or cannot be told: the segment passes, and is noted if it can be true. */
static __always_inline int bypass(struct hook *h, struct packet *p, struct slot *slot, const struct numbers_of *known,
				  __u32 width, __u64 *count)
{
	struct action action = {};

	if (slot_passes_on(known, &p->seen) && is_broken(h->skb, p))
		return broken(h);
	if (p->seen.flags & TCP_ACK && slot_believes(known, &p->seen))
		slot_bypass(slot, known, &p->seen, width, &action);
	if (config.observe) {
		(*count)++;
		return TC_ACT_UNSPEC;
	}
	if (action.act != ACT_SET_BACK || !set_back(h, p, &action))
		(*count)++;
	return TC_ACT_UNSPEC;
}

/* A segment that would be taken or set back passes, and the engine is shown what it would hear of. */
static __always_inline int observed(struct hook *h, struct packet *p, struct slot *slot,
				    const struct numbers_of *known, const struct action *would)
{
	bool shows = would->act == ACT_TAKE || would->report;
	struct action action = {};

	slot_bypass(slot, known, &p->seen, 0, &action);
	sight_passes(p, p->slot);
	h->count->passed_flow++;
	return shows ? show(h) : TC_ACT_UNSPEC;
}

/* A segment of a controlled flow. */
static __always_inline int controlled_by(struct hook *h, struct packet *p, struct slot *slot)
{
	struct numbers_of known;
	struct action action = {};
	bool believed;

	/* Or the slot is another flow's by now. */
	if (!slot_read(slot, p->use, &known) || !(p->seen.flags & TCP_ACK)) {
		h->count->passed_flow++;
		return TC_ACT_UNSPEC;
	}
	believed = slot_believes(&known, &p->seen);
	if ((!believed || slot_tells(&known, &p->seen)) && is_broken(h->skb, p))
		return broken(h);
	if (believed)
		slot_believed(slot, &known, &p->seen, &action);
	else
		slot_doubt(slot, &action);
	if (action.doubted)
		h->count->doubted++;
	if (action.act == ACT_COPY)
		return show(h);
	if (action.granted) {
		h->count->granted++;
		sight_passes(p, p->slot);
	}
	if (config.observe && (action.act == ACT_TAKE || action.act == ACT_SET_BACK))
		return observed(h, p, slot, &known, &action);
	if (action.act == ACT_TAKE) {
		carry(h->skb, p, slot);
		if (take(h, slot))
			return consume();
	}
	if (action.act == ACT_SET_BACK && set_back(h, p, &action))
		return TC_ACT_UNSPEC;
	if (action.act != ACT_PASS)
		return bypass(h, p, slot, &known, READ(slot->width), &h->count->passed_flow);
	h->count->passed_flow++;
	return TC_ACT_UNSPEC;
}

/* As above, verified once. */
__noinline int controlled(struct __sk_buff *skb, struct packet *p, struct slot *slot, __u32 number, __u32 ingress)
{
	struct hook h = { .skb = skb, .ingress = ingress, .ethernet = config.ethernet };

	if (!p || !slot || !begin(&h, number))
		return TC_ACT_UNSPEC;
	read_options(skb, p);
	return controlled_by(&h, p, slot);
}

/* A RST, of the flow of `slot` if there is one. */
static __always_inline int reset(struct hook *h, struct packet *p, struct slot *slot)
{
	struct numbers_of known;

	if (slot && slot_read(slot, p->use, &known) && slot_takes_reset(&known, &p->seen) && !config.observe &&
	    take(h, slot))
		return consume();
	return show_within(h, BUDGET_ENDS, source_of(h, p));
}

/* A segment of a flow that the core has not classified. */
static __always_inline int unclassified(struct hook *h, struct packet *p)
{
	__u32 source = source_of(h, p);

	if (p->seen.flags & TCP_FIN)
		return show_within(h, BUDGET_ENDS, source);
	if (!p->seen.payload && is_broken(h->skb, p))
		return broken(h);
	if (!p->seen.payload && p->seen.flags & TCP_ACK && within(BUDGET_TAKES, source)) {
		if (config.observe)
			return show(h);
		if (take(h, NULL))
			return consume();
	}
	h->count->passed_unknown++;
	if (!within(BUDGET_COPIES, source))
		return TC_ACT_UNSPEC;
	return p->seen.payload && is_broken(h->skb, p) ? broken(h) : show(h);
}

/* A SYN without ACK passes, and the engine learns of it now or with its answer. */
static __always_inline int opens(struct hook *h, struct flow_key *key, struct packet *p)
{
	if (within(BUDGET_SYNS, source_of(h, p)))
		return show(h);
	keep_opening(h, key, p);
	return TC_ACT_UNSPEC;
}

/* The engine learns of a SYN-ACK. It is taken if its window has to be sized before its sender sees it. */
static __always_inline int answers(struct hook *h, struct flow_key *key, struct packet *p, bool sizes)
{
	/* A flood of SYNs leaves room for the answers to those that got one. */
	if (!within(BUDGET_OPENS, source_of(h, p)))
		return TC_ACT_UNSPEC;
	recall_opening(h, key, p);
	return sizes && !config.observe && take(h, NULL) ? consume() : show(h);
}

/* Without a beat the supervisor says what becomes of windows. */
static __always_inline bool beaten(struct hooks *engine)
{
	return *(volatile __u64 *)&engine->beat != 0;
}

/*
 * The engine is away: everything passes. Openings and endings are shown to it, or to the next one, unless it
 * has been away for long: nothing else tells of window scales, without which a flow in two directions passes
 * for good.
 */
static __always_inline int unattended_by(struct hook *h, struct packet *p, bool shapes)
{
	bool absent = !is_fresh(h->engine, now(h), config.absent) && beaten(h->engine);
	struct flow_key key = p->key;
	__u8 flags = p->seen.flags;
	struct numbers_of known;
	struct slot *slot = NULL;

	if (flags & TCP_SYN)
		bpf_map_delete_elem(&passing, &key);
	else if (shapes && !(flags & TCP_RST))
		slot = slot_of(&key, p);
	if (slot && slot_read(slot, p->use, &known)) {
		read_options(h->skb, p);
		/* Nothing is left that would bound windows again: those of before would stay for ever. */
		bypass(h, p, slot, &known, absent ? 0 : READ(slot->width), &h->count->passed_stale);
	} else {
		h->count->passed_stale++;
	}
	if (!(flags & (TCP_SYN | TCP_RST | TCP_FIN)) || !is_fresh(h->engine, now(h), config.absent))
		return TC_ACT_UNSPEC;
	if (flags & (TCP_RST | TCP_FIN))
		return show_within(h, BUDGET_ENDS, source_of(h, p));
	return flags & TCP_ACK ? answers(h, &key, p, false) : opens(h, &key, p);
}

/* As above, verified once. */
__noinline int unattended(struct __sk_buff *skb, struct packet *p, __u32 number, __u32 ingress, bool shapes)
{
	struct hook h = { .skb = skb, .ingress = ingress };

	return p && begin(&h, number) ? unattended_by(&h, p, shapes) : TC_ACT_UNSPEC;
}

/* The end of a flow that passes may be that of the one in the other direction, which is controlled. */
static __always_inline int known_to_pass(struct hook *h, struct packet *p)
{
	h->count->passed_known++;
	return p->seen.flags & TCP_FIN ? show_within(h, BUDGET_ENDS, source_of(h, p)) : TC_ACT_UNSPEC;
}

/* Counts a packet. False: it exceeds its class's rate, and is to be dropped. */
static __always_inline bool counted_by(struct hook *h, struct packet *p, struct counted *by)
{
	__u32 number = READ(by->tally);
	struct tally *tally = bpf_map_lookup_elem(&tallies, &number);
	__u64 load = load_of(h->skb, p), packets = load >> 32, bytes = (__u32)load;

	if (!tally)
		return true;
	if (!tally_passes(tally, packets, bytes, now(h), false, is_attended_at(h->engine, config.stale, p->coarse))) {
		h->count->policed++;
		return false;
	}
	if (!p->other)
		count_part(h->skb, p, number);
	return true;
}

/*
 * A packet that is no segment of TCP. The engine is shown it if it is counted, and not known for which class.
 */
static __always_inline int other(struct hook *h, struct packet *p, __u32 fields)
{
	struct counted *by;
	__u32 source;

	if (!p->other || !(fields & FIELDS_COUNTED))
		return TC_ACT_UNSPEC;
	source = source_of(h, p);
	keep_fields(&p->key, fields);
	by = learnt(h->engine, &p->key);
	if (by)
		return counted_by(h, p, by) || config.observe ? TC_ACT_UNSPEC : consume();
	return is_attended_at(h->engine, config.stale, p->coarse) ? show_within(h, BUDGET_COPIES, source) :
								    TC_ACT_UNSPEC;
}

/* A segment with data. False: its flow passes untouched, and it exceeds its class's rate. */
static __always_inline bool data_passes(struct hook *h, struct packet *p)
{
	struct counted *by = learnt(h->engine, &p->key);

	return !by || counted_by(h, p, by);
}

/* What rules look at of packets in the direction of a hook. */
static __always_inline __u32 fields_of(struct hook *h)
{
	return h->ingress ? READ(h->engine->count_in) : READ(h->engine->count_out);
}

/* Is there more to know of a segment with payload than whether a connection begins or ends with it? */
static __always_inline bool looks_at_data(struct hook *h)
{
	return SEVERAL || rules_of(h) & RULES_BOUND || fields_of(h) & (FIELDS_UNTOUCHED | FIELDS_MEASURED);
}

/* Counts what TCP may be inside of, where nothing looks for it. */
static __always_inline void count_kind(struct hook *h, struct packet *p)
{
	__u16 protocol;

	if (p->ether == bpf_htons(ETH_P_MPLS_UC) || p->ether == bpf_htons(ETH_P_MPLS_MC)) {
		h->count->mpls++;
		return;
	}
	protocol = (bpf_ntohs(p->key.outer) >> 12) << 4 | bpf_ntohs(p->key.inner) >> 12;
	if (protocol == IPPROTO_GRE || protocol == IPPROTO_IPIP || protocol == IPPROTO_IPV6)
		h->count->tunnels++;
}

/* A pure ACK may be what tries a way that is shut. */
static __always_inline bool is_tried(struct hook *h, struct packet *p)
{
	return !p->seen.payload && !(p->seen.flags & (TCP_SYN | TCP_RST | TCP_FIN)) &&
	       is_trial(h->engine, h->ingress);
}

/* Is it plain that a segment of others passes? */
static __always_inline bool is_of_no_interest(struct hook *h)
{
	bool shapes = h->ingress ? config.shape_in : config.shape_out;

	return !shapes && is_plain_segment(h->skb, config.ethernet, looks_at_data(h));
}

/* Is it plain that a datagram passes, where nothing looks at any? */
static __always_inline bool is_of_no_class(struct hook *h)
{
	return !SEVERAL && !(rules_of(h) & RULES_BOUND) && !(fields_of(h) & FIELDS_COUNTED) &&
	       is_plain_datagram(h->skb, config.ethernet);
}

/* A segment of others. */
static __always_inline int segment(struct hook *h)
{
	bool sizes = h->ingress ? config.size_in : config.size_out;
	bool shapes = h->ingress ? config.shape_in : config.shape_out;
	struct packet p = {};
	enum parsed parsed;
	struct slot *slot;
	__u32 fields;

	parsed = parse(h, &p);
	/* From here: below `parse_frame()` it would be too deep for Linux 6.1. */
	if (parsed != PARSED_TCP && !p.other)
		find_addresses(h->skb, &p);
#if SEVERAL
	slot = find_engine(h, &p, shapes && parsed == PARSED_TCP);
#endif
	fields = fields_of(h);
	if (parsed == PARSED_TCP || fields & FIELDS_COUNTED)
		p.coarse = bpf_ktime_get_coarse_ns();
	p.seen.at = p.coarse >> 20;
	if (parsed != PARSED_TCP && rules_of(h) & RULES_BOUND && is_of_link(h->skb, &p))
		p.unread = true;
	if (parsed != PARSED_TCP) {
		h->count->passed_other++;
		count_kind(h, &p);
	}
	if (rules_of(h) & RULES_BOUND) {
		bool charged = parsed != PARSED_TCP || is_charged(h->skb, &p);
		__u32 judgement = judge_packet(h, &p, charged);

		if (judgement == JUDGED_DROPPED && !config.observe)
			return consume();
		if (judgement == JUDGED_MARKED && !config.observe)
			mark(h->skb, &p);
		/* Those behind these programs take it. */
		if (judgement >= JUDGED_SPILLS) {
			h->skb->cb[0] = SPILLED | ((judgement - JUDGED_SPILLS + 1) & 0xffff);
			return TC_ACT_UNSPEC;
		}
	} else if (parsed != PARSED_TCP) {
		return other(h, &p, fields);
	} else if (fields & FIELDS_UNTOUCHED && p.seen.payload && !data_passes(h, &p) && !config.observe) {
		return consume();
	}
	if (parsed != PARSED_TCP)
		return TC_ACT_UNSPEC;
	/* Its ACKs came in as well, and have one slot: they are the ingress hook's. */
	if (is_back(h->skb, h->ingress)) {
		h->count->hairpins++;
		return TC_ACT_UNSPEC;
	}
	if (p.seen.flags & (TCP_SYN | TCP_RST | TCP_FIN) && is_broken(h->skb, &p))
		return broken(h);
	if (!is_attended_at(h->engine, config.stale, p.coarse) || (is_shut(h->engine, h->ingress) && !is_tried(h, &p)))
		return unattended(h->skb, &p, engine_number(h), h->ingress, shapes);
	if (p.seen.flags & TCP_RST)
		return reset(h, &p, shapes ? slot_of(&p.key, &p) : NULL);
	if (p.seen.flags & TCP_SYN) {
		/* A new connection may be one that does not pass. */
		bpf_map_delete_elem(&passing, &p.key);
		return p.seen.flags & TCP_ACK ? answers(h, &p.key, &p, sizes) : opens(h, &p.key, &p);
	}
	if (fields & FIELDS_MEASURED && p.seen.payload && asked_for(&p))
		show(h);
	if (!shapes)
		return known_to_pass(h, &p);
#if !SEVERAL
	slot = recent_slot(&p.key, &p);
#endif
	if (slot)
		return controlled(h->skb, &p, slot, engine_number(h), h->ingress);
	return passes(h, &p) ? known_to_pass(h, &p) : unclassified(h, &p);
}

/* A frame of others. */
static __always_inline int frame(struct hook *h)
{
	if (is_of_no_interest(h)) {
		h->count->passed_known++;
		return TC_ACT_UNSPEC;
	}
	if (is_of_no_class(h)) {
		h->count->passed_other++;
		return TC_ACT_UNSPEC;
	}
	return segment(h);
}

static __always_inline int run(struct __sk_buff *skb, const bool ingress)
{
	struct hook h = { .skb = skb, .ingress = ingress, .ethernet = config.ethernet };
	__u32 *role;
	int action;

	if (config.spills)
		skb->cb[0] = 0;
	if (!begin(&h, 0))
		return TC_ACT_UNSPEC;
	if (config.assume)
		return own_frame(skb, config.role, ingress);
	role = sender_role(skb);
	if (ingress && !role)
		count_frame(skb, &h.count->bytes_in, &h.count->packets_in);
	action = role ? own_frame(skb, *role, ingress) : frame(&h);
	/* Interfaces count in the same way: all that comes in, and what leaves of that which goes out. */
	if (!ingress && action == TC_ACT_UNSPEC)
		count_frame(skb, &h.count->bytes_out, &h.count->packets_out);
	return action;
}

SEC("tc")
int acks_ingress(struct __sk_buff *skb)
{
	return run(skb, true);
}

SEC("tc")
int acks_egress(struct __sk_buff *skb)
{
	return run(skb, false);
}

/*
 * At the egress of a device with Ethernet headers, by which frames are sent that are to come in on the
 * interface.
 */
SEC("tc")
int acks_return(struct __sk_buff *skb)
{
	struct hook h = { .skb = skb, .ethernet = true };
	__u32 zero = 0, *role = sender_role(skb);

	if (!role)
		return TC_ACT_UNSPEC;
	h.count = bpf_map_lookup_elem(&counters, &zero);
	h.engine = bpf_map_lookup_elem(&hooks, &zero);
	if (!h.count || !h.engine)
		return TC_ACT_UNSPEC;
	return homewards(&h, *role);
}

/* bpf_ktime_get_ns() and some kernels' configurations want it. */
char LICENSE[] SEC("license") = "GPL";
