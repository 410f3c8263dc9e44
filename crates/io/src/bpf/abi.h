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
	__be16 outer_vlan; /* identifier only; 0: untagged */
	__be16 inner_vlan;
};

enum verdict { VERDICT_TAKE = 0, VERDICT_PASS = 1 };

struct flow_verdict {
	__u32 verdict;
	__u32 generation; /* of the configuration that decided */
};

/* One entry of an array map that the engine has mapped. */
struct control {
	__u64 beat;	  /* CLOCK_MONOTONIC of the engine's last round; 0: no engine */
	__u32 generation; /* verdicts of others are misses */
	__u32 reserved;
};

enum steering { STEER_FULL = 0, STEER_ACKS = 1 };

struct steer_config {
	__u64 stale; /* ns without a beat after which frames pass */
	__u32 mode;
	__u32 max_len; /* longer frames do not fit a chunk and pass */
};

struct steer_counters {
	__u64 taken;
	__u64 passed_verdict; /* the flow's verdict is to pass */
	__u64 passed_other;   /* not TCP, or a fragment, or cut short */
	__u64 passed_stale;   /* no beat */
	__u64 passed_unbound; /* no socket on this queue */
	__u64 passed_long;
};

/* In front of every frame that is taken. */
struct stamp {
	__u64 time;
	__u64 magic; /* a chunk may hold an older frame's stamp: user space clears this */
};

#define STAMP_MAGIC 0x6d617473726965ULL

#define OBSERVED_HEAD 192

/* A record of the observer's ring. */
struct observation {
	__u64 time;
	__u32 len;	/* of the frame on the wire, tags included */
	__u32 head_len; /* bytes of it that follow */
	__u8 head[OBSERVED_HEAD];
};

struct observe_counters {
	__u64 observed;
	__u64 lost; /* the ring was full */
};

#endif
