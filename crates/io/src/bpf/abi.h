/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What the programs and user space share. abi.rs mirrors every struct and checks its size; change
 * both.
 */
#ifndef WEIR_ABI_H
#define WEIR_ABI_H

/* A flow as seen on the port it comes in on, everything in network order. */
struct flow_key {
	__u8 src[16]; /* IPv4 as ::ffff:a.b.c.d */
	__u8 dst[16];
	__be16 sport;
	__be16 dport;
	/* VLAN identifiers, 0: no tag; above each four bits of the protocol, the high ones first. */
	__be16 outer;
	__be16 inner;
};

/* Addresses of the LAN whose flows one engine has: the key of a longest-prefix match. */
struct home_key {
	__u32 bits;
	__u8 address[16]; /* IPv4 as ::ffff:a.b.c.d */
};

/* What the gateway has said of a flow, by its key as the flow's ACKs show it. */
struct flow {
	__u32 slot;
	__u32 tag; /* the slot's, or the entry is of a flow that is gone */
	__u64 class; /* recent.rules, and below it recent.place, of its data; hooks write it */
};

/* A side's numbers, two in a word: the first named above. */
struct line {
	__u64 told;  /* sent, tx */
	__u64 said;  /* edge, ack */
	__u64 next;  /* turn, nxt */
	__u64 clock; /* at, ts */
};

/*
 * Layout of weir_core::steer::Slot, which says what each field means: a cache line that the gateway writes,
 * and one of the hooks.
 */
struct slot {
	struct line gateway;
	__u32 tag;
	__u32 flags;
	__u32 width;
	__u32 come;
	__u64 grant; /* taken, up to */
	__u32 asked;
	__u32 first;

	struct line hooks;
	__u32 last;
	__u32 doubts;
	__u32 taken;
	__u32 answered;
	__u32 candidate;
	__u32 witnesses;
	__u32 behind_since;
	__u32 spare;
};

/*
 * Each engine's entry of an array map that engines and supervisor have mapped. The first cache line is read
 * for every segment and written seldom, the second one is written by the hooks.
 */
struct hooks {
	__u64 beat;	  /* CLOCK_MONOTONIC of the engine's last round; 0: no engine */
	__u32 generation; /* entries of `passing` with others are misses */
	__u32 wake;	  /* not 0: the engine sleeps until a record is submitted */
	__u32 out_to;	  /* `all`: where frames seen at egress are redirected; 0: they pass */
	__u32 in_to;	  /* `all`: the same for ingress */
	__u32 count_out;  /* what rules look at of packets seen at egress that are not TCP (enum fields) */
	__u32 count_in;	  /* the same for ingress */
	__u32 counting;	  /* entries of `counted` with others are misses */
	__u32 gone;	  /* not 0: the supervisor knows that a part of the way is gone, and everything passes */
	__u32 shut_out;	  /* not 0: what the engine sends out does not arrive, and what is seen at egress passes */
	__u32 shut_in;	  /* the same for ingress */
	__u32 trial;	  /* bit of a hook (enum trials): one segment may be taken although its way is shut */
	__u32 owner;	  /* the engine's thread; with OWNER_DIED once that has ended */
	__u32 rules[2];	  /* rules of packets seen at egress and at ingress (enum rules_word) */
	__u64 taken_out; /* `all`: frames redirected at egress */
	__u64 taken_in;	 /* ... and at ingress */
	__u64 seen_out;	 /* the engine's frames that go out, and were seen by the hook at egress */
	__u64 seen_in;	 /* the engine's frames that come in, and were seen by the hook at ingress, or discarded on their way */
	__u32 unheld;	 /* when data last passed a bound that was not kept, in units of 2^23 ns */
	__u32 home;	 /* number of the interface on which frames of senders with ROLE_TO_INGRESS come in */
	__u64 watched;	 /* CLOCK_MONOTONIC of the supervisor's last look */
	__u64 kept_until; /* until then bounds are kept and frames are taken, with or without an engine */
	__u64 begun;	 /* when these programs took over from others with bounds of their own; 0: never */
};

/* Set in `owner` by the kernel (FUTEX_OWNER_DIED). */
#define OWNER_DIED 0x40000000

enum trials {
	TRIAL_OUT = 1,
	TRIAL_IN = 2,
};

/*
 * Protocol of a frame that only tells whether the way back is open: of the two that IEEE 802 leaves to local
 * experiments, the one that fillers between paced packets do not have. The hook that sees it where it belongs
 * consumes it.
 */
#define ETH_P_PROBE 0x88b6

/* Layout of weir_core::steer::Fields. */
enum fields {
	FIELD_SRC = 1,
	FIELD_DST = 2,
	FIELD_SPORT = 4,
	FIELD_DPORT = 8,
	FIELD_VLAN = 16,
	FIELD_PROTOCOL = 32,
	FIELDS_COUNTED = 64,   /* packets are counted, whatever is looked at */
	FIELDS_INWARD = 256,   /* keys are those of packets that come in from the WAN */
	FIELDS_MEASURED = 512,	/* segments of data may be asked for */
	FIELDS_FAIR = 1024,	/* flows have virtual queues */
	FIELDS_EACH = 2048,	/* flows that have a rate each have virtual queues */
	FIELDS_UNTOUCHED = 128, /* segments of TCP are counted, too, of the flows that `counted` names */
};

/*
 * The parts of a word that says which rules hold. Another word: what was classified has to be classified
 * again.
 */
enum rules_word {
	RULES_HALF = 1,	  /* which half of `places` and `conditions` is read, and the entries of `rules` */
	RULES_PARTS = 2,  /* one bit for each enum rule_part: there are rules */
	RULES_BOUND = 128, /* some class has a bound; without, all else means nothing */
};

/* weir_core::gateway::Part */
enum rule_part {
	PART_SRC,
	PART_DST,
	PART_VLAN,
	PART_SPORT,
	PART_DPORT,
	PART_ANY,
};

/* A prefix of a part of packets: the key of a longest-prefix match. */
struct rule_key {
	__u32 bits;  /* of what follows */
	__u8 engine;
	__u8 table;  /* RULES_HALF, 2: of what is seen at ingress, and above these enum rule_part */
	__u8 prefix[16];
	__u8 pad[2];
};

/* weir_core::gateway::Group */
struct group {
	__u32 class; /* index in the configuration; NO_CLASS */
	__u32 first;
	__u32 count;
};

#define NO_CLASS 0xffffffff
#define MOST_CONDITIONS 64

enum condition_flags {
	CONDITION_VLAN = 1,
	CONDITION_PROTOCOL = 2,
	CONDITION_SRC_V6 = 4,
	CONDITION_DST_V6 = 8,
};

/* weir_core::gateway::Condition */
struct condition {
	__u64 src[2];
	__u64 src_mask[2];
	__u64 dst[2];
	__u64 dst_mask[2];
	__u16 sports[2];
	__u16 dports[2];
	__u16 vlan;
	__u8 protocol;
	__u8 flags;
	__u32 class;
};

/* What a processor has found out of packets lately. */
struct recent {
	struct flow_key key;
	__u32 rules;	/* by which the class was found (rules_by); 0: it was not */
	__u32 place;	/* the class's; NO_CLASS */
	__u32 slot;	/* of the flow whose data this is; NO_SLOT */
	__u32 tag;	/* the slot's; without one, the time until which it is not looked for again */
	__u32 acks;	/* slot of the flow whose ACKs come with these packets */
	__u32 acks_tag; /* that one's; 0: it is not known */
};

#define NO_SLOT 0xffffffff

/* Layout of weir_core::steer::FairShare, which says what each field means. */
struct fair_share {
	__u64 per_byte;
	__u64 passed;
	__u64 looked;
	__u64 before;
	__u64 average;
	__u64 rate;
	__u64 beyond;
	__u32 flows;
	__u32 most;
	__u64 new_due;
	__u64 new_per_byte;
	__u64 new_passed;
	__u64 new_before;
	__u64 new_average;
	__u64 entry_due;
	__u32 entry_part;
	__u16 depth;
	__u16 spills;
	__u64 marked;
};

/* Layout of weir_core::steer::Spill, which says what each field means. */
struct spill {
	__u32 sent;
	__u32 left;
};

/* Layout of weir_core::steer::Bound, which says what each field means. */
struct bound {
	__u64 due;
	__u64 per_byte;
	__u32 bare_by;
	__u32 tcp;
	__u32 above;
	__u32 counts;
	__u64 held;
	__u64 free;
	__u64 packets;
	__u64 quic;
	__u64 own_due;
	__u64 own_per_byte;
	__u64 bare_due;
	__u64 flow_most;
	__u64 dropped;
	__u64 dropped_bytes;
	__u64 repeated;
	__u64 reordered;
	struct fair_share fair;
	__u64 acked;
	__u64 untouched;
	__u64 unresponsive;
	__u64 spares[5];
};

/* Layout of weir_core::steer::VirtualQueue, which says what each field means. */
struct virtual_queue {
	__u64 due;
	__u32 passed;
	__u32 beyond;
	__u32 permitted;
	__u32 settled;
	__u32 edge;
	__u32 begun;
	__u32 seen;
	__u32 spare;
	__u64 spares[3];
};

#define FLOW_PARTS 15

/* Layout of weir_core::steer::FlowBound, which says what each field means. */
struct flow_bound {
	__u32 parts[FLOW_PARTS];
	__u32 newest;
	struct virtual_queue queue;
};

/* Layout of weir_core::quality::Sight, which says what each field means. */
struct sight {
	__u32 end;
	__u32 stage;
	__u32 number;
	__u32 at;
	__u32 sample;
	__u32 repeated;
	__u32 reordered;
	__u32 hole;
};

#define COUNTS_PAYLOAD (1 << 16)
#define COUNTS_OWN (1 << 17)
#define COUNTS_FLOWS (1 << 18)
#define COUNTS_PERMITS (1 << 19)
#define COUNTS_FAIR (1 << 20)
#define COUNTS_EACH (1 << 21)

/* Who counts packets with a key. */
struct counted {
	__u32 generation;
	__u32 tally; /* its number; one that there is not: none */
};

/* Layout of weir_core::steer::Tally, which says what each field means. */
struct tally {
	__u64 packets;
	__u64 bytes;
	__u64 dropped;
	__u64 dropped_bytes;
	__u64 due;
	__u64 per_byte;
	__u64 burst;
	__s64 overhead;
};

/* Fraction bits of `per_byte`. */
#define TALLY_FRACTION 20

enum role {
	ROLE_TO_INGRESS = 1, /* its frames are to come in on the interface, not to go out */
	ROLE_RESTAMP = 2,    /* its frames are plain ACKs that are brought up to date */
	ROLE_ENGINE = 4,     /* it is an engine's, whose number is in the bits from ROLE_NUMBER on */
};

#define ROLE_NUMBER 8

/* A token bucket as the time that one costs and the time that may be saved up. */
struct budget {
	__u64 interval;
	__u64 burst;
};

enum budgets {
	BUDGET_TAKES,  /* pure ACKs of unknown flows that are taken */
	BUDGET_COPIES, /* headers of unknown flows, and of packets that are no TCP */
	BUDGET_SYNS,   /* headers of SYNs without ACK */
	BUDGET_OPENS,  /* SYN-ACKs that are taken or copied */
	BUDGET_ENDS,   /* headers with FIN or RST */
	BUDGETS,
};

struct acks_config {
	__u64 stale;  /* ns without a beat after which segments pass */
	__u64 absent; /* ... and after which nothing is shown any more */
	struct budget budgets[BUDGETS];
	__u8 ethernet;	/* the device has Ethernet headers */
	__u8 shape_in;	/* ACKs of shaped flows come by ingress */
	__u8 shape_out; /* ACKs of shaped flows come by egress */
	__u8 size_in;	/* SYN-ACKs are taken at ingress */
	__u8 size_out;	/* SYN-ACKs are taken at egress */
	__u8 assume;	/* test runs have no packet socket: every frame is from one with the role ... */
	__u8 role;	/* ... given here */
	__u8 observe; /* everything passes as it came: what would be done is counted and shown */
	__u32 slots; /* of each engine, where there are several; not 0 */
	__u32 classes; /* places of each engine */
	__u64 seed; /* odd */
	__u64 keys[5]; /* of hash_of */
	__u32 recent;  /* places for what was found out lately, a power of two */
	__u32 conditions; /* of each half of an engine */
	__u32 unread; /* place in `bounds` of what has no readable addresses: at egress, and then at ingress */
	__u32 spills; /* programs behind these redirect what spills */
};

struct all_config {
	__u64 stale;
	__u8 ethernet;
	__u8 behind; /* programs that take ACKs are in front, and count what is common */
	__u8 spilled_out; /* of frames seen at egress, only those of flows that have spilled are redirected */
	__u8 spilled_in; /* the same for ingress */
	__u8 pad[4];
};

/* Metadata of a frame, beside its bytes. */
struct metadata {
	__u64 departure; /* not before this time of CLOCK_MONOTONIC; 0: at once */
	__u32 number;	 /* the record's; 0: there is no metadata */
	__u32 mark;
	__u32 priority;
	__u16 queue; /* `queue_mapping` */
	__u16 spilled; /* number of the queue of its flow, plus one; 0: that has not spilled */
};

/* Of a frame that the engine sends. */
struct outgoing {
	struct metadata metadata;
	__be16 tag_proto; /* of the outer tag that it is sent without; 0: it has all its tags */
	__u16 tag;
	__u32 pad;
};

/* In `cb[0]`, by which programs that take ACKs tell those behind them of such a frame, above that number. */
#define SPILLED 0x57450000

/* Records of `arriving` and of `leaving`. Numbers of the latter count from 1 and fit `tc_index`. */
#define ARRIVING 65536
#define LEAVING 16384

struct acks_counters {
	__u64 taken;
	__u64 copied;
	__u64 set_back;
	__u64 passed_flow;    /* of a controlled flow, as it came */
	__u64 passed_known;   /* of a flow that passes */
	__u64 passed_unknown; /* nothing was to be told of it */
	__u64 passed_other;   /* not TCP, a fragment, malformed */
	__u64 passed_stale;   /* no beat */
	__u64 doubted;	      /* of a controlled flow, but not believed */
	__u64 ring_full;
	__u64 over_budget;
	__u64 own;	 /* the engine's, as they came */
	__u64 stamped;	 /* the engine's, brought up to date */
	__u64 discarded; /* the engine's, too late */
	__u64 failed;	 /* the kernel refused to rewrite */
	__u64 granted;	 /* passed by a grant, as they came or set back */
	__u64 policed;	 /* dropped: they exceed their class's rate, and ACKs cannot slow them, or its bound */
	__u64 broken;	 /* of TCP with a wrong checksum: nothing was learnt from it */
	__u64 bytes_out; /* that leave, of frames with their headers */
	__u64 bytes_in;	 /* that came in, dropped or not, but for the engine's own */
	__u64 mpls;	 /* of `passed_other`: MPLS */
	__u64 tunnels;	 /* ... GRE and IP in IP */
	__u64 hairpins;	 /* segments that leave by the interface on which they came in, and are the ingress hook's */
	__u64 packets_out; /* of bytes_out: of a giant one, its segments */
	__u64 packets_in;
	__u64 unlisted_bytes[2]; /* of packets that no class takes, out and in, from IP headers on */
	__u64 unlisted_packets[2];
};

/* What an address of the LAN sent and received that no class takes: out, in. */
struct unlisted {
	__u64 bytes[2];
	__u64 packets[2];
};

struct all_counters {
	__u64 taken;
	__u64 passed_stale;
	__u64 own;
	__u64 dropped; /* behind a socket that has read it */
	__u64 failed;  /* no room for an Ethernet header */
	__u64 bytes_out; /* that leave: the engine's, and those that pass */
	__u64 bytes_in;	 /* that came in, but for the engine's */
	__u64 packets_out; /* of bytes_out: of a giant one, its segments */
	__u64 packets_in;
};

enum fate {
	FATE_TAKEN,
	FATE_PASSED,
	FATE_SET_BACK,
	FATE_COUNTED, /* taken, and counted by its flow's slot */
	FATE_EARLIER, /* passed as it came, `mark` microseconds ago */
};

#define SEGMENT_HEAD 188

/* A record of the ring. */
struct segment {
	__u64 time;
	__u32 len;	/* of the frame with the Ethernet header and all tags; of a giant one too */
	__u16 head_len; /* bytes of it that follow */
	__u8 port;	/* 0: seen at egress, 1: at ingress */
	__u8 fate;
	__u16 gso_size;
	__u16 queue;		 /* `queue_mapping` */
	__u8 head[SEGMENT_HEAD]; /* as it was before it was set back */
	__u32 mark;
	__u32 priority;
};

#endif
