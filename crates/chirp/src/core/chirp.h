/* SPDX-License-Identifier: GPL-2.0 OR MIT OR Apache-2.0 */
/*
 * Paced chirping (Misund and Briscoe 2019): getting up to speed without a queue. Integers only, no calls out,
 * loops that end: the BPF congestion control and the simulated sender are compiled from the same lines.
 *
 * A chirp is a train of packets at falling gaps. Their mean is the estimate ĝ of the gap that the path has
 * room for. The place in the chirp where delay sets in tells that gap again (analysis.h). A round is a
 * round-trip time. Its packets leave in chirps, each followed by a guard in which the queue relaxes
 * (schedule.h).
 *
 * Callers keep this order: chirp_start(); before a packet leaves, chirp_gap() is the time that has to pass
 * behind it; after a new packet has left, chirp_sent(); when SND.UNA advances, chirp_acked(). A sender has
 * room for chirp_room() further packets. Times are nanoseconds of a monotonic clock. Sequence numbers are
 * those of the connection and wrap.
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
/*
 * A part that the kernel's verifier checks once for all callers: a separate function, which may be passed no
 * pointer at all.
 */
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

/*
 * Packets in flight whose departure is remembered; a power of two. Further ones leave at even gaps and
 * measure nothing.
 */
#define CHIRP_RECORDS 512
/* Packets of the longest chirp. */
#define CHIRP_LONGEST 32
/* Limits of gaps in nanoseconds: timers are not better than the first, and the second is 150 kbit/s. */
#define CHIRP_GAP_LEAST 1000u
#define CHIRP_GAP_MOST 80000000u
/* Unit of shares and relative deviations. */
#define CHIRP_ONE 256u
/* Unit of gains, which are in eighths. */
#define CHIRP_GAIN_ONE 8u
/* Packets of the first round. */
#define CHIRP_INITIAL 10u

/* Differences from the default; flags of chirp_start(). */
enum {
	/* A round's chirps are spread over it (paper, section II.B), and not sent back to back. */
	CHIRP_SPREAD = 1,
	/* Gain and geometry stay 2, whatever the estimates do. */
	CHIRP_FIXED = 2,
	/* The gap at which delay sets in is taken as it was sent, not corrected by the delay that it made. */
	CHIRP_PLAIN = 4,
	/* The first ten packets leave as two bursts half a round trip apart (paper, section IV.B). */
	CHIRP_BURSTS = 8,
	/* Neither marks (paper, section I.A) nor a standing queue change gain, guard, rounds and window. */
	CHIRP_UNMARKED = 16,
	/* Chirps keep their length, however many packets an ACK covers. */
	CHIRP_UNSTRETCHED = 32,
	/* Any loss ends the chirps. */
	CHIRP_FRAGILE = 64,
	/* Chirps do not begin again when marks have ceased. */
	CHIRP_ONCE = 128,
	/* Chirps do not begin again after an idle time. */
	CHIRP_NO_RESTART = 256,
	/*
	 * The host sends no single packets while one in flight left half a round trip ago. Linux's TCP does
	 * so where a millisecond has two packets or more (tcp_tso_should_defer()). Rounds are no longer than
	 * that, and each begins when the one before is acknowledged.
	 */
	CHIRP_BRIEF = 512,
	/* Rounds grow by the gain up to the end, even if other flows may begin. */
	CHIRP_HASTY = 1024,
	/* The algorithm of the paper. */
	CHIRP_PUBLISHED = 511 | CHIRP_HASTY,
};

/* Flags of chirp_acked(). */
enum {
	/* The ACK echoes a mark. */
	CHIRP_MARKED = 1,
	/* Packets are lost or out of order: the arrival of this ACK says nothing about its packet. */
	CHIRP_DISORDER = 2,
};

enum chirp_phase {
	/* The initial window is on its way. */
	CHIRP_FIRST,
	/* Chirps are being sent. */
	CHIRP_ROUNDS,
	/*
	 * The window is known. It is sent at the estimate's gaps for one round, so that it does not leave in
	 * a burst, and is corrected if a queue stands all that time.
	 */
	CHIRP_HANDOVER,
	/* Congestion avoidance, by the clock of ACKs. */
	CHIRP_DONE,
};

/* Departure of a packet. */
struct chirp_record {
	/* Sequence number behind it. */
	u32 end;
	/* Low half of the time of departure. */
	u32 sent;
	/* Number of its chirp, 0 for a packet that measures nothing. In the handover the window. */
	u16 chirp;
	/* Its place in the chirp, and the chirp's packets; 0 in the handover. */
	u8 index;
	u8 of;
};

/* Sample of a chirp from one ACK. */
struct chirp_sample {
	/* Packets since the sample before, and the mean gap in front of them. */
	u32 packets;
	u32 gap;
	/* Round-trip time of the last of these packets. */
	u32 rtt;
};

/*
 * Counts of the analysis of a chirp. They lie in memory, because the kernel's verifier follows every value
 * that a register can have from one turn of a loop to the next.
 */
struct chirp_count {
	/* Votes of finished excursions: their sum and number. */
	u64 votes;
	u64 rising;
	u32 voted;
	/*
	 * The current excursion: its length, 0 for none; delay at its beginning and the most above that; its
	 * votes.
	 */
	u32 length;
	u32 begin;
	u32 most;
	u32 risen;
	/* Gap at which it began. */
	u32 onset;
	/* Gaps that did not fall. */
	u32 wrong;
};

struct chirp {
	/*
	 * Estimate: the gap between packets that the path has room for, and the mean deviation of single
	 * estimates from it.
	 */
	u32 gap;
	u32 deviation;
	/* Least and smoothed round-trip time. */
	u32 rtt_min;
	u32 srtt;
	/* Delay above the least at the beginning of chirps, smoothed. */
	u32 queue;
	/* Resulting window in packets; 0 before. */
	u32 window;
	/* Chirps that gave an estimate, and chirps that did not. */
	u32 chirps;
	u32 unusable;
	/* Congestion events with losses. */
	u32 losses;
	u32 rounds;
	/* Share of packets marked, in parts of CHIRP_ONE, smoothed over rounds; counts of this round. */
	u32 marked;
	u32 round_acked;
	u32 round_marked;
	/* Current gain, in eighths. */
	u32 gain;
	u16 rules;
	u8 phase;
	/* Rules at the start. */
	u16 given;

	/* The packet whose ACK begins the next round has not left yet. */
	u8 awaits_marker;
	/* The guard leaves no pause at all; always so where chirps are not spread over the round. */
	u8 tight;
	/* This round's packets: most to be sent, sent; packets of the round before; ĝ at its beginning. */
	u32 planned;
	u32 sent;
	u32 before;
	u32 round_gap;
	/* Its ACK begins the next round; end of the last packet sent. */
	u32 marker;
	u32 last_end;
	/* Low half of the last departure, and the gap asked for behind it. */
	u32 last_sent;
	u32 last_gap;

	/* The chirp being sent: the gap behind its next packet, the step by which gaps fall, its guard. */
	u32 next_gap;
	u32 step;
	u32 guard;
	u16 serial;
	u8 index;
	u8 of;
	/* Its packets will be analysed. */
	u8 measures_next;

	/* The chirp being acknowledged: samples so far. */
	u8 samples;
	/* Packets that the samples cover, and packets of the chirp. */
	u8 covered;
	u8 measures;
	/* Number of that chirp; 0 for none. */
	u16 collecting;
	/* Packets per ACK in eighths: smoothed; the recent peak; the peak of ACKs that came after a pause. */
	u16 per_ack;
	u16 most_per_ack;
	u16 own_per_ack;
	/* A bit for each of the last three ACKs: set if it echoes a mark. */
	u8 echoes;
	/* Thinned ACKs have shown a queue. */
	u8 met_queue;
	/*
	 * Low half of the last ACK's arrival, 0 for none; the time that it may have waited; the shortest time
	 * between two.
	 */
	u32 heard;
	u32 waited;
	u32 tick;
	/* The shortest gap between delivered packets that thinned ACKs have shown; 0 for none. */
	u32 delivers;
	/* The next train is remembered after this many packets of the round. */
	u32 remembers;
	/* Last sample: departure of its packet, and its place. */
	u32 sample_sent;
	u8 sample_index;

	/*
	 * First round: packets acknowledged by the first ACK and in all, departure of the first packet,
	 * arrival of the first ACK.
	 */
	u8 first_acked;
	u16 all_acked;
	u32 first_sent;
	u32 first_at;
	/*
	 * ACKs of the first round: the last one, the gap before it, the sum of differences between such gaps,
	 * and their number.
	 */
	u32 ack_at;
	u32 ack_gap;
	u32 differ;
	u32 compared;
	/* Gap between ACKs of the first round; 0 if it is not known. */
	u32 burst;

	/*
	 * Smoothed falls of delay from one packet of a chirp to the next: the variation of the path's delay.
	 */
	u32 jitter;
	/* Least window that may result, unless the path is full. */
	u32 floor;
	/*
	 * Brief rounds: departure of this one's first packet, and the packets of it that the receiver has
	 * room for.
	 */
	u32 begun;
	u32 takes;
	/*
	 * Handover of brief rounds: packets that fill the path by the estimate, and the window's remainder on
	 * the way to the next packet.
	 */
	u32 aim;
	u32 lacks;
	/*
	 * A queue stands, since when, and packets delivered since then; the way in which the window was cut
	 * in this round trip.
	 */
	u8 stands;
	u8 cut;
	/* The receiver takes less than the window. */
	u8 closed;
	u32 stands_at;
	u32 delivered;
	/*
	 * Handover: least round-trip time of its round; number of corrections of the window, and of rounds
	 * kept for thinned ACKs.
	 */
	u32 least;
	u8 settled;
	u8 grown;
	/* Rounds that paused. */
	u8 paused;

	/* Congestion avoidance: round trips since the last mark, and the end of this one. */
	u32 quiet;
	u32 quiet_end;

	/* Records from head to tail; both numbers only grow. */
	u32 head;
	u32 tail;
	struct chirp_count count;
	struct chirp_sample sample[CHIRP_LONGEST];
	struct chirp_record record[CHIRP_RECORDS];
};

/*
 * Returns which of the `asked` rules are in force. The kernel's flows have only one, so its verifier need not
 * follow the others.
 */
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

/* Returns whether a sequence number is at `una` or before. */
CHIRP_FN int chirp_covered(u32 end, u32 una)
{
	return (s32)(una - end) >= 0;
}

/* Caps a round-trip time at 4 s. */
CHIRP_FN u32 chirp_time(u64 ns)
{
	return ns > 4000000000ull ? 4000000000u : (u32)ns;
}

/* Returns the excess of a round-trip time over the least. */
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
