/* SPDX-License-Identifier: GPL-2.0 OR MIT OR Apache-2.0 */
/*
 * Paced chirping (Misund and Briscoe 2019): getting up to speed without a queue. Integers only, no calls out, loops
 * that end: the BPF congestion control and the simulated sender are compiled from the same lines.
 *
 * A chirp is a train of packets at falling gaps whose mean is the estimate of the gap that the path has room for. Where in
 * it delay sets in tells that gap anew (analysis.h). A round is a round-trip time: so many packets, in chirps, each
 * followed by a guard in which the queue relaxes (schedule.h).
 *
 * Whoever calls keeps this order: chirp_start(); before a packet leaves, chirp_gap() is the time that is to pass behind it; when a
 * new packet has left, chirp_sent(); when SND.UNA advances, chirp_acked(). A sender has room for chirp_room() further packets.
 * Times are nanoseconds of a monotonic clock, sequence numbers those of the connection and wrap.
 */
#ifndef WEIR_CHIRP_H
#define WEIR_CHIRP_H

#ifdef __bpf__
typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
#define CHIRP_FN static __always_inline
/* A part that the kernel's verifier looks at once, whoever calls it: a function of its own, which may be handed no pointer at all. */
#define CHIRP_PART __attribute__((noinline)) int
#define CHIRP_ABSENT(c) (!(c))
#else
#include <stdint.h>
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
#define CHIRP_FN static inline
#define CHIRP_PART static inline int
#define CHIRP_ABSENT(c) 0
#endif

/* Packets in flight whose departure is remembered; a power of two. Further ones are sent at even gaps and measure nothing. */
#define CHIRP_RECORDS 512
/* Packets of the longest chirp. */
#define CHIRP_LONGEST 32
/* Gaps in nanoseconds: timers are not better than the first, and the second is 150 kbit/s. */
#define CHIRP_GAP_LEAST 1000u
#define CHIRP_GAP_MOST 80000000u
/* Shares and relative deviations are of this. */
#define CHIRP_ONE 256u
/* Gains are in eighths. */
#define CHIRP_GAIN_ONE 8u
/* Packets of the first round. */
#define CHIRP_INITIAL 10u

/* How it differs from its default; flags of chirp_start(). */
enum {
	/* A round's chirps are spread over it (paper, section II.B), and not sent one behind the other. */
	CHIRP_SPREAD = 1,
	/* Gain and geometry stay 2, whatever the estimates do. */
	CHIRP_FIXED = 2,
	/* The gap where delay sets in is taken as it was sent, not corrected by how much delay it made. */
	CHIRP_PLAIN = 4,
	/* The first ten packets leave as two bursts half a round trip apart (paper, section IV.B). */
	CHIRP_BURSTS = 8,
	/* Neither marks (paper, section I.A) nor a queue that stands change gain, guard, rounds and window. */
	CHIRP_UNMARKED = 16,
	/* Chirps are as ever, however many packets an ACK covers. */
	CHIRP_UNSTRETCHED = 32,
	/* Any loss ends it. */
	CHIRP_FRAGILE = 64,
	/* It does not begin again when marks have ceased. */
	CHIRP_ONCE = 128,
	/* It does not begin again after an idle time. */
	CHIRP_NO_RESTART = 256,
	/*
	 * The host sends no single packets while one is in flight that left half a round trip ago, as Linux's TCP where a millisecond has
	 * two packets or more (tcp_tso_should_defer()): rounds are no longer than that, and each begins when the one before is acknowledged.
	 */
	CHIRP_BRIEF = 512,
	/* Rounds grow by the gain up to the end, whoever else may begin. */
	CHIRP_HASTY = 1024,
	/* The algorithm of the paper. */
	CHIRP_PUBLISHED = 511 | CHIRP_HASTY,
};

/* Of chirp_acked(). */
enum {
	/* The ACK echoes a mark. */
	CHIRP_MARKED = 1,
	/* Something is lost or out of order: when this ACK came says nothing about its packet. */
	CHIRP_DISORDER = 2,
};

enum chirp_phase {
	/* The initial window is on its way. */
	CHIRP_FIRST,
	/* Chirps. */
	CHIRP_ROUNDS,
	/* The window is known; for one round it is sent at the estimate's gaps, so that it does not leave in a burst, and corrected if a
	   queue stands all that time. */
	CHIRP_HANDOVER,
	/* Congestion avoidance, by the clock of ACKs. */
	CHIRP_DONE,
};

/* When a packet left. */
struct chirp_record {
	/* Sequence number behind it. */
	u32 end;
	/* Low half of the time. */
	u32 sent;
	/* Number of its chirp, 0 for a packet that measures nothing; in the handover the window. */
	u16 chirp;
	/* Its place in the chirp, and the packets of that; 0 in the handover. */
	u8 index;
	u8 of;
};

/* What an ACK told of a chirp. */
struct chirp_sample {
	/* Packets since the sample before, and the mean gap in front of them. */
	u32 packets;
	u32 gap;
	/* Round-trip time of the last of them. */
	u32 rtt;
};

/*
 * What is counted on the way through a chirp. It lies in memory, since the kernel's verifier follows every value that a register can
 * have from one turn of a loop to the next.
 */
struct chirp_count {
	/* Of the votes of excursions that have ended: their sum and number. */
	u64 votes;
	u64 rising;
	u32 voted;
	/* Of the excursion that goes on: its length, 0 for none; delay at its beginning and most above that; its votes. */
	u32 length;
	u32 begin;
	u32 most;
	u32 risen;
	/* The gap where it began. */
	u32 onset;
	/* Gaps that did not fall. */
	u32 wrong;
};

struct chirp {
	/* Estimate: the gap between packets that the path has room for, and the mean deviation of single estimates from it. */
	u32 gap;
	u32 deviation;
	/* Round-trip times: least and smoothed. */
	u32 rtt_min;
	u32 srtt;
	/* Delay above the least at the beginning of chirps, smoothed. */
	u32 queue;
	/* Window in packets that comes out; 0 before. */
	u32 window;
	/* Chirps that gave an estimate, and those that did not. */
	u32 chirps;
	u32 unusable;
	/* Congestion events with losses. */
	u32 losses;
	u32 rounds;
	/* Share of packets marked, of CHIRP_ONE, smoothed over rounds; this round's. */
	u32 marked;
	u32 round_acked;
	u32 round_marked;
	/* Gain in force, in eighths. */
	u32 gain;
	u16 rules;
	u8 phase;
	/* The rules that it began with. */
	u16 given;

	/* Is the packet of a round awaited whose ACK begins the next; has it left? */
	u8 awaits_marker;
	/* Does the guard in force have nothing of a pause? Always, where chirps are not spread over the round. */
	u8 tight;
	/* This round's packets: to be sent at most, sent; those of the round before; ĝ at its beginning. */
	u32 planned;
	u32 sent;
	u32 before;
	u32 round_gap;
	/* Its ACK begins the next round; behind the last packet sent. */
	u32 marker;
	u32 last_end;
	/* Low half of when the last packet left, and the gap asked for behind it. */
	u32 last_sent;
	u32 last_gap;

	/* The chirp being sent: the gap behind its next packet, by how much gaps fall, its guard. */
	u32 next_gap;
	u32 step;
	u32 guard;
	u16 serial;
	u8 index;
	u8 of;
	/* Will its packets be analysed? */
	u8 measures_next;

	/* The chirp being acknowledged. */
	u8 samples;
	/* Packets that the samples cover, of those that the chirp has. */
	u8 covered;
	u8 measures;
	/* Its number; 0 for none. */
	u16 collecting;
	/* Packets per ACK, smoothed, in eighths; the most of late; those of ACKs that came after a pause. */
	u16 per_ack;
	u16 most_per_ack;
	u16 own_per_ack;
	/* Of the last three ACKs, a bit each: does it echo a mark? */
	u8 echoes;
	/* Have thinned ACKs shown a queue? */
	u8 met_queue;
	/* Low half of when the last ACK came, 0 for none, and how long it may have waited; the shortest time between two. */
	u32 heard;
	u32 waited;
	u32 tick;
	/* The shortest gap at which thinned ACKs show that packets were delivered; 0 for none. */
	u32 delivers;
	/* Behind so many packets of this round the next train is remembered. */
	u32 remembers;
	/* Of the last sample: when its packet left, its place. */
	u32 sample_sent;
	u8 sample_index;

	/* First round: packets acknowledged by the first ACK and in all, when the first packet left, and when the first ACK came. */
	u8 first_acked;
	u16 all_acked;
	u32 first_sent;
	u32 first_at;
	/* Of its ACKs: the last one, the gap before it, how much such gaps differ from each other in all, how often they were compared. */
	u32 ack_at;
	u32 ack_gap;
	u32 differ;
	u32 compared;
	/* The gap of its ACKs; 0 if that is not known. */
	u32 burst;

	/* Falls of delay from one packet of a chirp to the next, smoothed: what the path's delay varies by. */
	u32 jitter;
	/* The window does not come out below this, unless the path is full. */
	u32 floor;
	/* Brief rounds: when this one's first packet left, and the packets of it that the receiver has room for. */
	u32 begun;
	u32 takes;
	/* Their handover: packets that fill the path by the estimate, and what the window lacks of the next packet towards them. */
	u32 aim;
	u32 lacks;
	/* Does a queue stand, since when, and what was delivered since then? Was the window cut in this round trip? */
	u8 stands;
	u8 cut;
	/* Does the receiver take less than the window? */
	u8 closed;
	u32 stands_at;
	u32 delivered;
	/* Handover: the least round-trip time of its round, and how often the window was corrected, and kept for thinned ACKs. */
	u32 least;
	u8 settled;
	u8 grown;
	/* Rounds that paused. */
	u8 paused;

	/* Congestion avoidance: round trips since the last mark, and where this one ends. */
	u32 quiet;
	u32 quiet_end;

	/* Records from head to tail; both only grow. */
	u32 head;
	u32 tail;
	struct chirp_count count;
	struct chirp_sample sample[CHIRP_LONGEST];
	struct chirp_record record[CHIRP_RECORDS];
};

/* Which of `asked` are in force? The kernel's flows have none but one, and its verifier needs not follow what the others would do. */
CHIRP_FN u32 chirp_rule(const struct chirp *c, u32 asked)
{
#ifdef __bpf__
	asked &= CHIRP_BRIEF;
#endif
	return c->rules & asked;
}

CHIRP_FN u32 chirp_min(u32 a, u32 b)
{
	return a < b ? a : b;
}

CHIRP_FN u32 chirp_max(u32 a, u32 b)
{
	return a > b ? a : b;
}

CHIRP_FN u32 chirp_clamp_gap(u64 gap)
{
	if (gap < CHIRP_GAP_LEAST)
		return CHIRP_GAP_LEAST;
	return gap > CHIRP_GAP_MOST ? CHIRP_GAP_MOST : (u32)gap;
}

/* Is a sequence number at `una` or before? */
CHIRP_FN int chirp_covered(u32 end, u32 una)
{
	return (s32)(una - end) >= 0;
}

/* A round-trip time as it is kept: at most 4 s. */
CHIRP_FN u32 chirp_time(u64 ns)
{
	return ns > 4000000000ull ? 4000000000u : (u32)ns;
}

/* By how much a round-trip time is above the least. */
CHIRP_FN u32 chirp_over(const struct chirp *c, u32 rtt)
{
	return rtt > c->rtt_min ? rtt - c->rtt_min : 0;
}

#include "thinned.h"
#include "analysis.h"
#include "schedule.h"
#include "brief.h"
#include "handover.h"
#include "samples.h"
#include "rounds.h"

#endif
