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
 * Compiled twice: for one engine, and with SEVERAL for several of them, which have a part of the slots, a ring and an entry of
 * `hooks` each. A flow that has a slot is its engine's; whatever else comes is that of the engine that has its address.
 */
#ifndef SEVERAL
#define SEVERAL 0
#endif

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include "abi.h"
#include "packet.h"
#include "slot.h"
#include "rewrite.h"
#include "own.h"
#include "count.h"

const volatile struct acks_config config = { .stale = 50000000, .absent = 2000000000, .ethernet = 1 };

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, struct flow_key);
	__type(value, struct flow);
} flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct flow_key);
	__type(value, __u32);
} passing SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 65536);
	__type(key, __u32);
	__type(value, struct slot);
} slots SEC(".maps");

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

/* The number of the engine that has the flows of an address of the LAN, where that is not the first. */
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, struct home_key);
	__type(value, __u32);
} homes SEC(".maps");
#else
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 22);
} ring SEC(".maps");
#endif

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

/* A record with everything in it, still to be submitted; NULL: no room in the ring. */
static __always_inline struct segment *record_of(struct hook *h, enum fate fate)
{
	struct segment *record = reserve(h);

	if (!record) {
		h->count->ring_full++;
		return NULL;
	}
	record->time = now(h);
	record->port = h->ingress;
	record->fate = fate;
	record->gso_size = h->skb->gso_size;
	record->pad = 0;
	if (!copy_head(h, record)) {
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

/* Shows a segment that passes as it came. */
static __always_inline int show(struct hook *h)
{
	struct segment *record = record_of(h, FATE_PASSED);

	if (record)
		submit(h, record, &h->count->copied);
	return TC_ACT_UNSPEC;
}

static __always_inline int show_within(struct hook *h, enum budgets which)
{
	return within(h, which) ? show(h) : TC_ACT_UNSPEC;
}

/* Takes the segment, of the flow of `slot` if there is one. False: it cannot be taken whole. */
static __always_inline bool take(struct hook *h, struct slot *slot)
{
	struct segment *record = record_of(h, FATE_TAKEN);

	if (!record)
		return false;
	if (record->head_len != record->len) {
		bpf_ringbuf_discard(record, BPF_RB_NO_WAKEUP);
		return false;
	}
	if (slot)
		slot_take(slot, now(h));
	submit(h, record, &h->count->taken);
	return true;
}

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

/* The engine is away or cannot be told: the segment passes, and is noted if it can be true. */
static __always_inline int bypass(struct hook *h, struct packet *p, struct slot *slot, __u64 *count)
{
	struct action action = {};

	slot_bypass(slot, &p->seen, &action);
	if (action.act != ACT_SET_BACK || !set_back(h, p, &action))
		(*count)++;
	return TC_ACT_UNSPEC;
}

/* A segment of a controlled flow. */
static __always_inline int controlled(struct hook *h, struct packet *p, struct slot *slot)
{
	struct action action = {};

	slot_segment(slot, &p->seen, &action);
	if (action.doubted)
		h->count->doubted++;
	if (action.act == ACT_COPY)
		return show(h);
	if (action.granted)
		h->count->granted++;
	if (action.act == ACT_TAKE && take(h, slot))
		return consume();
	if (action.act == ACT_SET_BACK && set_back(h, p, &action))
		return TC_ACT_UNSPEC;
	if (action.act != ACT_PASS)
		return bypass(h, p, slot, &h->count->passed_flow);
	h->count->passed_flow++;
	return TC_ACT_UNSPEC;
}

/* A RST, of the flow of `slot` if there is one. */
static __always_inline int reset(struct hook *h, struct packet *p, struct slot *slot)
{
	if (slot && slot_takes_reset(slot, &p->seen) && take(h, slot))
		return consume();
	return show_within(h, BUDGET_ENDS);
}

/* A segment of a flow that the core has not classified. */
static __always_inline int unclassified(struct hook *h, struct packet *p)
{
	if (p->seen.flags & TCP_FIN)
		return show_within(h, BUDGET_ENDS);
	if (!p->seen.payload && p->seen.flags & TCP_ACK && within(h, BUDGET_TAKES) && take(h, NULL))
		return consume();
	h->count->passed_unknown++;
	return show_within(h, BUDGET_COPIES);
}

/* The slot of the flow that the gateway named, and its number; NULL: none, or its entry is of a flow that is gone. */
static __always_inline struct slot *numbered_slot(struct packet *p, __u32 *of)
{
	struct flow *flow = bpf_map_lookup_elem(&flows, &p->key);
	struct slot *slot;
	__u32 number, tag;

	if (!flow)
		return NULL;
	number = READ(flow->slot);
	tag = READ(flow->tag);
	*of = number;
	slot = bpf_map_lookup_elem(&slots, &number);
	return slot && tag && READ(slot->tag) == tag ? slot : NULL;
}

static __always_inline struct slot *slot_of(struct packet *p)
{
	__u32 number;

	return numbered_slot(p, &number);
}

/* A segment of data passes, the headers of which the engine asked for (Slot::answers). */
static __always_inline bool asked_for(struct packet *p)
{
	struct flow_key key = p->key;
	struct slot *slot;

	__builtin_memcpy(p->key.src, key.dst, sizeof(key.src));
	__builtin_memcpy(p->key.dst, key.src, sizeof(key.dst));
	p->key.sport = key.dport;
	p->key.dport = key.sport;
	slot = slot_of(p);
	p->key = key;
	return slot && READ(slot->asked) && __sync_lock_test_and_set(&slot->asked, 0);
}

#if SEVERAL
/* The number of the engine that has the flows of a packet's address on the LAN's side, of both directions. */
static __always_inline __u32 home_of(struct hook *h, struct packet *p)
{
	struct home_key key = { .bits = 128 };
	__u32 *home;

	__builtin_memcpy(key.address, h->ingress ? p->key.dst : p->key.src, sizeof(key.address));
	home = bpf_map_lookup_elem(&homes, &key);
	return home ? READ(*home) : 0;
}

/* Finds the engine of a packet, which has been the first one so far, and the slot of its flow if it has one. */
static __always_inline struct slot *find_engine(struct hook *h, struct packet *p, bool may_have_slot)
{
	__u32 number = 0;
	struct slot *slot = may_have_slot ? numbered_slot(p, &number) : NULL;
	struct hooks *engine;

	number = slot ? number / config.slots : home_of(h, p);
	engine = bpf_map_lookup_elem(&hooks, &number);
	if (engine) {
		h->engine = engine;
		h->number = number;
	}
	return slot;
}
#endif

/* Without a beat the supervisor says what becomes of windows. */
static __always_inline bool beaten(struct hooks *engine)
{
	return *(volatile __u64 *)&engine->beat != 0;
}

/*
 * The engine is away: everything passes. Openings and endings are shown to it, or to the next one, unless it has been
 * away for long: nothing else tells of window scales, without which a flow in two directions passes for good.
 */
static __always_inline int unattended(struct hook *h, struct packet *p, bool shapes)
{
	__u8 flags = p->seen.flags;
	struct slot *slot = NULL;

	if (flags & TCP_SYN)
		bpf_map_delete_elem(&passing, &p->key);
	else if (shapes && !(flags & TCP_RST))
		slot = slot_of(p);
	if (slot) {
		read_options(h->skb, p);
		/* Nobody is left who would bound windows anew: those of before would stay for ever. */
		if (!is_fresh(h->engine, now(h), config.absent) && READ(slot->width) && beaten(h->engine))
			WRITE(slot->width, 0);
		bypass(h, p, slot, &h->count->passed_stale);
	} else {
		h->count->passed_stale++;
	}
	if (!(flags & (TCP_SYN | TCP_RST | TCP_FIN)) || !is_fresh(h->engine, now(h), config.absent))
		return TC_ACT_UNSPEC;
	if (flags & (TCP_RST | TCP_FIN))
		return show_within(h, BUDGET_ENDS);
	return show_within(h, flags & TCP_ACK ? BUDGET_OPENS : BUDGET_SYNS);
}

static __always_inline bool passes(struct hook *h, struct packet *p)
{
	__u32 *generation = bpf_map_lookup_elem(&passing, &p->key);

	return generation && READ(*generation) == READ(h->engine->generation);
}

/* The end of a flow that passes may be that of the one in the other direction, which is controlled. */
static __always_inline int known_to_pass(struct hook *h, struct packet *p)
{
	h->count->passed_known++;
	return p->seen.flags & TCP_FIN ? show_within(h, BUDGET_ENDS) : TC_ACT_UNSPEC;
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

/* Headers of a packet that are counted for each of the packets that a giant one stands for. */
static __always_inline __u32 headers(struct packet *p)
{
	return p->l4 - p->l3 + (p->other ? sizeof(struct udp) : sizeof(struct tcp) + p->options);
}

/* Counts a packet. False: it exceeds its class's rate, and is to be dropped. */
static __always_inline bool counted_by(struct hook *h, struct packet *p, struct counted *by)
{
	__u32 number = READ(by->tally), packets = h->skb->gso_size ? h->skb->gso_segs : 1;
	struct tally *tally = bpf_map_lookup_elem(&tallies, &number);
	__u64 bytes = p->end - p->l3;

	if (!tally)
		return true;
	if (packets > 1)
		bytes += (__u64)(packets - 1) * headers(p);
	if (tally_passes(tally, packets ? packets : 1, bytes, now(h), is_attended(h->engine, config.stale)))
		return true;
	h->count->policed++;
	return false;
}

/* A packet that is no segment of TCP. The engine is shown it if it is counted, and not known for which class. */
static __always_inline int other(struct hook *h, struct packet *p, __u32 fields)
{
	struct counted *by;

	if (!p->other || !(fields & FIELDS_COUNTED))
		return TC_ACT_UNSPEC;
	keep_fields(&p->key, fields);
	by = learnt(h->engine, &p->key);
	if (by)
		return counted_by(h, p, by) ? TC_ACT_UNSPEC : consume();
	return is_attended(h->engine, config.stale) ? show_within(h, BUDGET_COPIES) : TC_ACT_UNSPEC;
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

/* Is there more to know of a segment of data than whether a connection begins or ends with it? */
static __always_inline bool looks_at_all(struct hook *h)
{
	return SEVERAL || fields_of(h) & (FIELDS_UNTOUCHED | FIELDS_MEASURED);
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

	if (!shapes && !looks_at_all(h) && is_plain_segment(h->skb, config.ethernet)) {
		h->count->passed_known++;
		return TC_ACT_UNSPEC;
	}
	parsed = parse(h->skb, &p);
#if SEVERAL
	slot = find_engine(h, &p, shapes && parsed == PARSED_TCP);
#endif
	fields = fields_of(h);
	if (parsed != PARSED_TCP) {
		h->count->passed_other++;
		return other(h, &p, fields);
	}
	if (fields & FIELDS_UNTOUCHED && p.seen.payload && !data_passes(h, &p))
		return consume();
	if (!is_attended(h->engine, config.stale))
		return unattended(h, &p, shapes);
	if (p.seen.flags & TCP_RST)
		return reset(h, &p, shapes ? slot_of(&p) : NULL);
	if (p.seen.flags & TCP_SYN) {
		/* A new connection may be one that does not pass. */
		bpf_map_delete_elem(&passing, &p.key);
		if (!(p.seen.flags & TCP_ACK))
			return show_within(h, BUDGET_SYNS);
		/* A flood of SYNs leaves room for the answers to those that got one. */
		if (!within(h, BUDGET_OPENS))
			return TC_ACT_UNSPEC;
		return sizes && take(h, NULL) ? consume() : show(h);
	}
	if (fields & FIELDS_MEASURED && p.seen.payload && asked_for(&p))
		show(h);
	if (!shapes)
		return known_to_pass(h, &p);
#if !SEVERAL
	slot = slot_of(&p);
#endif
	if (slot) {
		read_options(h->skb, &p);
		return controlled(h, &p, slot);
	}
	return passes(h, &p) ? known_to_pass(h, &p) : unclassified(h, &p);
}

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

static __always_inline int run(struct __sk_buff *skb, const bool ingress)
{
	struct hook h = { .skb = skb, .ingress = ingress };
	__u32 zero = 0, *role;

	h.count = bpf_map_lookup_elem(&counters, &zero);
	h.engine = bpf_map_lookup_elem(&hooks, &zero);
	if (!h.count || !h.engine)
		return TC_ACT_UNSPEC;
	if (config.assume)
		return own(&h, config.role);
	role = sender_role(skb);
	if (role)
		return own(&h, *role);
	return segment(&h);
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

/* bpf_ktime_get_ns() and some kernels' configurations want it. */
char LICENSE[] SEC("license") = "GPL";
