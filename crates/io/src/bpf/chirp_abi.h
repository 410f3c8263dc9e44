/* SPDX-License-Identifier: GPL-2.0 OR MIT OR Apache-2.0 */
/* Layout shared by the congestion control and the command; chirp.rs has the same. */
#ifndef WEIR_CHIRP_ABI_H
#define WEIR_CHIRP_ABI_H

/*
 * A connection, seen from this end. Addresses are in network order, IPv4 ones in the first word; ports in
 * host order.
 */
struct chirp_key {
	__u32 local[4];
	__u32 remote[4];
	__u16 local_port;
	__u16 remote_port;
	__u16 family;
	__u16 pad;
	/* Inode of its network namespace. */
	__u32 netns;
};

struct chirp_row {
	/* enum chirp_phase */
	__u32 phase;
	/* Estimate, its mean deviation, the gap asked for last: nanoseconds. */
	__u32 gap;
	__u32 deviation;
	__u32 last_gap;
	/* Eighths. */
	__u32 gain;
	__u32 chirps;
	__u32 unusable;
	__u32 rounds;
	/* Packets. */
	__u32 cwnd;
	/* Parts of 1024. */
	__u32 alpha;
	/* Marks were echoed: congestion avoidance is DCTCP's. */
	__u32 marks;
	/* fq paces on the route: no chirps. */
	__u32 fq;
};

/*
 * Entries of the histogram of lateness: microseconds by which gaps were longer than asked for, from -256 on.
 */
#define CHIRP_LATENESS 1024
#define CHIRP_LATENESS_ZERO 256
/*
 * Two more histograms of this length follow, in microseconds from 0 on: gaps asked for, and gaps sent. The
 * last entry holds all longer ones.
 */
#define CHIRP_ASKED CHIRP_LATENESS
#define CHIRP_SENT (2 * CHIRP_LATENESS)
#define CHIRP_HISTOGRAMS (3 * CHIRP_LATENESS)

#endif
