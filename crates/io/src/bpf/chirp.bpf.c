/* SPDX-License-Identifier: GPL-2.0 OR MIT OR Apache-2.0 */
/*
 * The congestion controls `weir_chirp` and `weir_dctcp`.
 *
 * weir_chirp begins with paced chirps (../../../chirp/src/core). It goes on with the kernel's CUBIC or, from
 * the first mark on, with DCTCP. weir_dctcp is plain DCTCP.
 *
 * Exact gaps between single segments: `min_tso_segs` is called at the beginning of every tcp_write_xmit(). It
 * admits one more segment to the window and sets the pacing rate that makes the gap behind it. The timer of
 * TCP's own pacing calls it again. SND.NXT at the next call shows whether the segment left. The kernel
 * subtracts a segment's lateness from the gap behind it, up to half of that gap
 * (tcp_update_skb_after_send()), so a late timer does not move the rest of the chirp. After a pause, whose
 * end no gap asked for, this would halve the first gap. A gap that is longer by the lateness cancels it.
 *
 * LINK: registered as a link (Linux 6.4), or by the map alone.
 */
#include "vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "tcp.h"
#include "dctcp.h"
#include "chirp_abi.h"
#include "../../../chirp/src/core/chirp.h"

char LICENSE[] SEC("license") = "GPL";

/* Set when the congestion control is unloaded: flows end their chirps. The program's only variable. */
__u32 retired = 0;

/*
 * TCP's own pacing has timers of a microsecond. Without a gap the next segment would wait for the next ACK.
 */
#define LEAST_GAP 2000
/*
 * Gap from which the kernel sends single segments. Where a millisecond has two segments or more, it sends no
 * fewer than a millisecond has, as long as a segment in flight left half a round trip ago
 * (tcp_tso_should_defer(), tcp_tso_autosize()).
 */
#define SINGLE_GAP 490000
#define AUTOSIZE_SHIFT 10
#define AUTOSIZE_RTT_SHIFT 9
#define AUTOSIZE_MOST 65536
/* Greatest age of the row of a flow that is acknowledged, nanoseconds. */
#define STATUS_AGE 100000000ull
/* Greatest ratio of a round's packets to those of the round before. */
#define CHIRP_NEXT 4
/* `last_max_cwnd` is the second word of CUBIC's state (struct bictcp). */
#define CUBIC_LAST_MAX 1

struct chirper {
	struct chirp flow;
	struct dctcp dctcp;
	/*
	 * Time at which a segment leaves if it leaves at this call; the last departure; the gap asked for
	 * behind it.
	 */
	__u64 at;
	__u64 left;
	__u64 asked;
	/* Last time at which packets were in flight or acknowledged. */
	__u64 busy;
	/* Time at which its row was written. */
	__u64 published;
	/* SND.NXT at the last call. */
	__u32 nxt;
	__u8 state;
	__u8 ece;
	__u8 marks;
	__u8 fq;
	/* The kernel is reducing a window that was a chirp's. */
	__u8 reduces;
	/* The next segments leave several at once. */
	__u8 several;
	/* The flow is still paced, until `calm` is acknowledged. */
	__u8 calms;
	__u32 calm;
	/* Window at the last look, and the most that the end or the undoing of a reduction can restore. */
	__u32 window;
	__u32 prior;
	/* Threshold before the chirps, with which slow start goes on if they find no window. */
	__u32 known;
	/* Key of its row. A closing connection has given its port back by the time that it is released. */
	struct chirp_key name;
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct chirper);
} chirpers SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct chirp_key);
	__type(value, struct chirp_row);
} rows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, CHIRP_HISTOGRAMS);
	__type(key, __u32);
	__type(value, __u64);
} lateness SEC(".maps");

/* Callbacks that did not come, as far as flows noticed. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} skipped SEC(".maps");

static __always_inline struct chirper *chirper(struct sock *sk)
{
	return bpf_sk_storage_get(&chirpers, sk, NULL, 0);
}

static __always_inline void name_of(struct sock *sk, struct chirp_key *key)
{
	key->netns = sk->__sk_common.skc_net.net->ns.inum;
	key->family = sk->__sk_common.skc_family;
	key->local_port = sk->__sk_common.skc_num;
	key->remote_port = __builtin_bswap16(sk->__sk_common.skc_dport);
	if (key->family == AF_INET6) {
		key->local[0] = sk->__sk_common.skc_v6_rcv_saddr.in6_u.u6_addr32[0];
		key->local[1] = sk->__sk_common.skc_v6_rcv_saddr.in6_u.u6_addr32[1];
		key->local[2] = sk->__sk_common.skc_v6_rcv_saddr.in6_u.u6_addr32[2];
		key->local[3] = sk->__sk_common.skc_v6_rcv_saddr.in6_u.u6_addr32[3];
		key->remote[0] = sk->__sk_common.skc_v6_daddr.in6_u.u6_addr32[0];
		key->remote[1] = sk->__sk_common.skc_v6_daddr.in6_u.u6_addr32[1];
		key->remote[2] = sk->__sk_common.skc_v6_daddr.in6_u.u6_addr32[2];
		key->remote[3] = sk->__sk_common.skc_v6_daddr.in6_u.u6_addr32[3];
	} else {
		key->local[0] = sk->__sk_common.skc_rcv_saddr;
		key->remote[0] = sk->__sk_common.skc_daddr;
	}
}

static __noinline void publish(struct sock *sk, struct chirper *s)
{
	struct chirp_row row = {
		.phase = s->flow.phase,
		.gap = s->flow.gap,
		.deviation = s->flow.deviation,
		.last_gap = s->flow.last_gap,
		.gain = s->flow.gain,
		.chirps = s->flow.chirps,
		.unusable = s->flow.unusable,
		.rounds = s->flow.rounds,
		.cwnd = tcp_sk(sk)->snd_cwnd,
		.alpha = s->dctcp.alpha,
		.marks = s->marks,
		.fq = s->fq,
	};

	s->published = tcp_sk(sk)->tcp_clock_cache;
	bpf_map_update_elem(&rows, &s->name, &row, 0);
}

static __always_inline int chirps(const struct chirper *s)
{
	return s->flow.phase <= CHIRP_ROUNDS;
}

static __always_inline void count_one(__u32 index)
{
	__u64 *count = bpf_map_lookup_elem(&lateness, &index);

	if (count)
		__sync_fetch_and_add(count, 1);
}

/* A gap in whole microseconds, up to the histogram's last entry. */
static __always_inline __u32 place_of(__u64 ns)
{
	__u64 us = (ns + 500) / 1000;

	return us < CHIRP_LATENESS ? (__u32)us : CHIRP_LATENESS - 1;
}

static __always_inline void count_lateness(const struct chirper *s)
{
	__u64 gap = s->at - s->left;
	__u32 index = CHIRP_LATENESS_ZERO;

	/* After a pause the gap did not decide. */
	if (!s->left || s->asked < LEAST_GAP || gap > 4 * s->asked + 1000000)
		return;
	if (gap >= s->asked)
		index += (__u32)((gap - s->asked + 500) / 1000);
	else
		index -= (__u32)((s->asked - gap + 500) / 1000) < CHIRP_LATENESS_ZERO ?
				 (__u32)((s->asked - gap + 500) / 1000) :
				 CHIRP_LATENESS_ZERO;
	if (index >= CHIRP_LATENESS)
		index = CHIRP_LATENESS - 1;
	count_one(index);
	count_one(CHIRP_ASKED + place_of(s->asked));
	count_one(CHIRP_SENT + place_of(gap));
}

/*
 * Counts the segments of `mss` bytes that have left since the last call, up to `nxt`. Several may have left
 * in the first round, which has no gaps, and where the window is sent. A separate function, which the
 * verifier checks once.
 */
__noinline int count_sent(struct chirper *s, __u32 nxt, __u32 mss)
{
	__u32 i;

	if (!s)
		return 0;
	if (s->flow.phase == CHIRP_FIRST) {
		for (i = 1; i < CHIRP_INITIAL; i++) {
			if ((s32)(nxt - s->nxt) <= (s32)mss)
				break;
			s->nxt += mss;
			chirp_sent_first(&s->flow, s->nxt, s->at);
		}
		chirp_sent_first(&s->flow, nxt, s->at);
	} else if (s->several || s->flow.phase == CHIRP_HANDOVER) {
		for (i = 1; i < AUTOSIZE_MOST / 512; i++) {
			if ((__s32)(nxt - s->nxt) <= (__s32)mss)
				break;
			s->nxt += mss;
			s->flow.measures_next = 0;
			chirp_sent(&s->flow, s->nxt, s->at);
		}
		s->flow.measures_next = 0;
		chirp_sent(&s->flow, nxt, s->at);
		s->asked = 0;
	} else {
		if (s->flow.phase == CHIRP_ROUNDS)
			count_lateness(s);
		s->asked = chirp_gap(&s->flow);
		chirp_sent(&s->flow, nxt, s->at);
	}
	s->several = 0;
	s->left = s->at;
	s->nxt = nxt;
	return 0;
}

/* Counts the segments that have left since the last call. */
static __always_inline void notice(struct tcp_sock *tp, struct chirper *s)
{
	if (tp->snd_nxt != s->nxt)
		count_sent(s, tp->snd_nxt, at_least(1, tp->mss_cache));
}

/* Paces one segment per gap, but no faster than the application allows (SO_MAX_PACING_RATE). */
static __always_inline void pace(struct sock *sk, __u64 gap)
{
	unsigned long rate = (__u64)tcp_sk(sk)->mss_cache * 1000000000ull / at_least(LEAST_GAP, gap);

	sk->sk_pacing_rate = rate < sk->sk_max_pacing_rate ? rate : sk->sk_max_pacing_rate;
}

static __always_inline void unpace(struct sock *sk)
{
	if (sk->sk_pacing_status == SK_PACING_NEEDED && sk->sk_max_pacing_rate == ~0ul)
		sk->sk_pacing_status = SK_PACING_NONE;
}

/*
 * Hands the window, which was sent at its gaps, to congestion avoidance. The kernel paces it a little faster
 * (tcp_update_pacing_rate()) for a round trip. Otherwise the packets that the gaps kept back would leave at
 * once.
 */
static __always_inline void calm_down(struct sock *sk, struct chirper *s)
{
	s->calms = 1;
	s->calm = tcp_sk(sk)->snd_nxt;
	publish(sk, s);
}

/* Leaves the rest to congestion avoidance, or to slow start without an estimate. */
static __always_inline void finish(struct sock *sk, struct chirper *s)
{
	chirp_stop(&s->flow);
	unpace(sk);
	publish(sk, s);
}

/*
 * Adopts the window that chirps found, or its rest after it was sent once and a queue stood. If they found
 * none, slow start goes on. A reduction that began among chirps continues in proportion to the window of that
 * time (PRR, RFC 6937), which is a few packets: a high threshold would let it send many times more. Until the
 * reduction is over there is no threshold, and weir_min_tso() keeps the window.
 */
static __always_inline void adopt(struct sock *sk, struct chirper *s, int chirped)
{
	struct tcp_sock *tp = tcp_sk(sk);

	tp->snd_cwnd = s->window = s->flow.window;
	s->prior = at_least(s->prior, s->window);
	s->reduces = s->state == TCP_CA_CWR || s->state == TCP_CA_Recovery;
	tp->snd_ssthresh = s->reduces ? TCP_INFINITE_SSTHRESH : s->flow.window;
	if (!s->reduces && chirped && s->flow.phase == CHIRP_DONE)
		tp->snd_ssthresh = s->known;
	if (s->flow.phase == CHIRP_HANDOVER)
		((__u32 *)tp->inet_conn.icsk_ca_priv)[CUBIC_LAST_MAX] = s->flow.window;
	dctcp_begin(tp, &s->dctcp, at_least(128, 4 * s->flow.marked));
	pace(sk, s->flow.gap);
}

/* Follows such a reduction into another state or to its end. Returns whether it goes on. */
static __always_inline int goes_on(struct tcp_sock *tp, struct chirper *s)
{
	if (s->state == TCP_CA_Recovery)
		s->flow.window = at_least(2, s->flow.window / 2);
	s->reduces = s->state == TCP_CA_CWR || s->state == TCP_CA_Recovery;
	if (s->state == TCP_CA_Loss)
		tp->snd_ssthresh = at_least(2, s->flow.window / 2);
	else if (!s->reduces)
		tp->snd_cwnd = tp->snd_ssthresh = s->flow.window;
	return s->reduces;
}

/* Threshold with which a reduction that begins now ends. */
static __noinline __u32 threshold(struct sock *sk, struct chirper *s)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (chirps(s)) {
		/* Marks do not end chirps, nor do losses that are not congestion. */
		if (s->ece && !tp->lost_out)
			return TCP_INFINITE_SSTHRESH;
		/*
		 * All packets may count as lost (tcp_enter_loss()). They were in flight (RFC 5681 section
		 * 3.1, FlightSize).
		 */
		if (chirp_lost(&s->flow, in_flight(tp) + tp->lost_out))
			return TCP_INFINITE_SSTHRESH;
		finish(sk, s);
		return s->flow.window;
	}
	if (s->flow.phase == CHIRP_HANDOVER && !tp->lost_out)
		return at_least(2, s->flow.window);
	if (s->marks)
		return dctcp_threshold(tp, &s->dctcp);
	return cubictcp_recalc_ssthresh(sk);
}

/* Follows the connection into another state. */
static __noinline int enter(struct sock *sk, struct chirper *s, __u8 state)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (state >= TCP_CA_CWR && s->state < TCP_CA_CWR)
		s->prior = at_least(s->window, s->flow.phase == CHIRP_DONE ? 0 : s->flow.window);
	s->state = state;
	if (s->reduces && !chirps(s) && goes_on(tp, s))
		return 0;
	if (chirps(s)) {
		if (state != TCP_CA_Loss)
			return 0;
		/* The packets in flight vary through a round: half of the most that it may have. */
		tp->snd_ssthresh = at_least(2, at_least(s->flow.planned, in_flight(tp) + tp->lost_out) / 2);
		finish(sk, s);
	} else if (state == TCP_CA_Loss && s->flow.phase == CHIRP_HANDOVER) {
		finish(sk, s);
	} else if (s->marks) {
		/* RFC 8257 section 3.5: the reaction to a loss is that of conventional TCP. */
		if (state == TCP_CA_Recovery)
			tp->snd_ssthresh = at_least(2, tp->snd_cwnd / 2);
		return 0;
	}
	cubictcp_state(sk, state);
	return 0;
}

static __always_inline void count_skipped(void)
{
	__u32 only = 0;
	__u64 *count = bpf_map_lookup_elem(&skipped, &only);

	if (count)
		__sync_fetch_and_add(count, 1);
}

/*
 * Makes up for callbacks that did not come. Some kernels for sandboxes skip programs while a process of their
 * own is the current task, which a softirq may have interrupted. The threshold of a reduction is then a stray
 * value of the stack, and becomes the window at its end. An ACK at most doubles a window, and a reduction
 * never ends above the window that it began with.
 */
static __always_inline void keep_up(struct sock *sk, struct tcp_sock *tp, struct chirper *s)
{
	__u8 state = BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_state);
	int leapt = !chirps(s) && tp->snd_cwnd > at_least(s->prior, 2 * s->window) + CHIRP_INITIAL;

	if (leapt || (state >= TCP_CA_CWR && s->state < TCP_CA_CWR)) {
		tp->snd_cwnd = at_least(2, s->window);
		tp->snd_ssthresh = threshold(sk, s);
	}
	if (leapt || state != s->state)
		count_skipped();
	if (state != s->state)
		enter(sk, s, state);
	s->window = tp->snd_cwnd;
}

/* Number of segments that the kernel sends together at this rate. */
static __always_inline __u32 together(const struct tcp_sock *tp, const struct chirper *s, __u64 rate)
{
	__u64 bytes = rate >> AUTOSIZE_SHIFT;
	__u32 rtt = s->flow.rtt_min / 1000 >> AUTOSIZE_RTT_SHIFT;

	if (rtt < 32)
		bytes += AUTOSIZE_MOST >> rtt;
	if (bytes > AUTOSIZE_MOST)
		bytes = AUTOSIZE_MOST;
	return at_least(1, bytes / at_least(1, tp->mss_cache));
}

/*
 * Returns how many segments may leave at this call while the kernel would hold single ones back, and the gap
 * behind them. It is one, until the oldest in flight should be acknowledged. A receiver that waits for the
 * next segment does not acknowledge it then, which would cost a round trip. So it is as many as the kernel
 * sends together, at the estimate's rate: nothing is measured, and no time is lost.
 */
static __always_inline __u32 held_up(const struct tcp_sock *tp, struct chirper *s, __u64 now, __u64 *gap)
{
	__u32 oldest = chirp_age(&s->flow, 0, now), due = s->flow.srtt + s->flow.srtt / 16;

	if (*gap >= SINGLE_GAP || oldest < s->flow.srtt / 2)
		return 1;
	if (!chirp_straggles(&s->flow, now)) {
		*gap = oldest < due && due - oldest > SINGLE_GAP ? due - oldest : SINGLE_GAP;
		return 1;
	}
	s->several = 1;
	*gap = s->flow.gap;
	return together(tp, s, (__u64)tp->mss_cache * 1000000000ull / at_least(LEAST_GAP, *gap));
}

/* Bytes that the receiver has room for. */
static __always_inline __u32 takes(const struct tcp_sock *tp)
{
	__s32 room = tp->snd_una + tp->snd_wnd - tp->snd_nxt;

	return room > 0 ? room : 0;
}

SEC("struct_ops")
__u32 BPF_PROG(weir_min_tso, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct chirper *s = chirper(sk);
	__u64 gap, late, now;
	int room;

	if (!s)
		return 2;
	keep_up(sk, tp, s);
	now = tp->tcp_clock_cache;
	if (tp->packets_out)
		s->busy = now;
	/*
	 * Without losses the handover's window may leave: the kernel would wait for ACKs, which are few after
	 * a brief round.
	 */
	if (s->reduces && !chirps(s) &&
	    (tp->snd_cwnd > s->flow.window || (s->flow.phase == CHIRP_HANDOVER && s->state == TCP_CA_CWR)))
		tp->snd_cwnd = s->window = s->flow.window;
	if (s->flow.phase == CHIRP_DONE)
		return 2;
	if (s->flow.phase == CHIRP_HANDOVER) {
		notice(tp, s);
		if (takes(tp) < (__u64)(tp->snd_cwnd - in_flight(tp)) * tp->mss_cache && tp->snd_cwnd > in_flight(tp))
			chirp_closed(&s->flow);
		s->at = now;
		/* With each ACK the kernel raises the rate to 1.2 windows per round trip. */
		pace(sk, s->flow.gap);
		return 1;
	}
	if (retired || sk->sk_pacing_status == SK_PACING_FQ) {
		s->fq = sk->sk_pacing_status == SK_PACING_FQ;
		tp->snd_cwnd = at_least(CHIRP_INITIAL, in_flight(tp));
		finish(sk, s);
		return 2;
	}
	notice(tp, s);
	if (s->state >= TCP_CA_Recovery)
		return 1;
	if (s->flow.phase == CHIRP_FIRST) {
		s->at = now;
		tp->snd_cwnd = at_least(1, in_flight(tp) + chirp_room(&s->flow));
		return 1;
	}
	if (takes(tp) < tp->mss_cache)
		chirp_closed(&s->flow);
	late = now > tp->tcp_wstamp_ns ? now - tp->tcp_wstamp_ns : 0;
	room = !!chirp_room(&s->flow);
	/* The segment does not wait for the gap. */
	if (!room && now >= tp->tcp_wstamp_ns)
		s->asked = 0;
	gap = chirp_gap(&s->flow);
	if (gap < LEAST_GAP)
		gap = LEAST_GAP;
	s->at = now;
	if (late > gap / 2)
		gap += gap < late ? gap : late;
	if (room && chirp_rule(&s->flow, CHIRP_BRIEF))
		room = held_up(tp, s, now, &gap);
	pace(sk, gap);
	tp->snd_cwnd = at_least(1, in_flight(tp) + room);
	return 1;
}

SEC("struct_ops")
void BPF_PROG(weir_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct chirper *s = chirper(sk);
	__u32 flags = 0, rounds, window;
	int chirped;

	if (!s) {
		cubictcp_acked(sk, sample);
		return;
	}
	keep_up(sk, tp, s);
	s->busy = tp->tcp_clock_cache;
	if (s->flow.phase == CHIRP_DONE) {
		if (s->calms && (__s32)(tp->snd_una - s->calm) >= 0) {
			s->calms = 0;
			unpace(sk);
		}
		if (!s->marks)
			cubictcp_acked(sk, sample);
		return;
	}
	notice(tp, s);
	if (s->ece)
		flags |= CHIRP_MARKED;
	if (tp->sacked_out || s->state >= TCP_CA_Recovery)
		flags |= CHIRP_DISORDER;
	rounds = s->flow.rounds;
	window = s->flow.window;
	chirped = chirps(s);
	chirp_acked(&s->flow, tp->snd_una, tp->tcp_clock_cache, in_flight(tp), flags);
	if (!chirps(s) && (chirped || s->flow.window != window))
		adopt(sk, s, chirped);
	if (chirped != chirps(s) || rounds != s->flow.rounds || s->busy - s->published > STATUS_AGE)
		publish(sk, s);
	if (s->flow.phase == CHIRP_DONE)
		calm_down(sk, s);
}

SEC("struct_ops")
void BPF_PROG(weir_in_ack, struct sock *sk, __u32 flags)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct chirper *s = chirper(sk);

	if (!s)
		return;
	s->ece = !!(flags & CA_ACK_ECE);
	s->marks |= s->ece;
	if (s->flow.phase != CHIRP_DONE || !s->marks)
		return;
	dctcp_observe(tp, &s->dctcp);
	if (s->state == TCP_CA_Open && !retired && !s->fq &&
	    chirp_watch(&s->flow, tp->snd_una, tp->snd_nxt, tp->snd_cwnd, s->dctcp.alpha, s->ece,
			(__u64)tp->srtt_us * 125)) {
		s->nxt = tp->snd_nxt;
		s->left = 0;
		s->calms = 0;
		sk->sk_pacing_status = SK_PACING_NEEDED;
		publish(sk, s);
	}
}

SEC("struct_ops")
void BPF_PROG(weir_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct chirper *s = chirper(sk);

	if (s && chirps(s))
		return;
	if (s && s->marks)
		tcp_reno_cong_avoid(sk, ack, acked);
	else
		cubictcp_cong_avoid(sk, ack, acked);
	if (s && tcp_sk(sk)->tcp_clock_cache - s->published > STATUS_AGE)
		publish(sk, s);
}

SEC("struct_ops")
__u32 BPF_PROG(weir_ssthresh, struct sock *sk)
{
	struct chirper *s = chirper(sk);

	return s ? threshold(sk, s) : cubictcp_recalc_ssthresh(sk);
}

SEC("struct_ops")
void BPF_PROG(weir_set_state, struct sock *sk, __u8 state)
{
	struct chirper *s = chirper(sk);

	if (s)
		enter(sk, s, state);
	else
		cubictcp_state(sk, state);
}

SEC("struct_ops")
void BPF_PROG(weir_cwnd_event, struct sock *sk, int event)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct chirper *s = chirper(sk);
	__u64 now;

	if (!s)
		return;
	if (event == CA_EVENT_ECN_IS_CE || event == CA_EVENT_ECN_NO_CE) {
		dctcp_received(sk, &s->dctcp, event == CA_EVENT_ECN_IS_CE);
		return;
	}
	if (event == CA_EVENT_LOSS && s->marks && !chirps(s))
		tp->snd_ssthresh = at_least(2, tp->snd_cwnd / 2);
	/* The whole flight may be lost and sent again now: that is no idle time. */
	if (event != CA_EVENT_TX_START || tp->packets_out || !s->left || s->fq || retired)
		return;
	now = tp->tcp_clock_cache;
	if (now > s->busy && chirp_restart(&s->flow, now - s->busy)) {
		s->nxt = tp->snd_nxt;
		s->left = 0;
		s->calms = 0;
		s->known = tp->snd_ssthresh;
		/* The segments that leave now were built before. */
		s->several = 1;
		sk->sk_pacing_status = SK_PACING_NEEDED;
		publish(sk, s);
	}
}

SEC("struct_ops")
__u32 BPF_PROG(weir_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

/*
 * Returns the send buffer's size in windows (tcp_sndbuf_expand()). Among chirps the window says little, so
 * the next round counts: data without room in the buffer would have to be written while the round is sent.
 */
SEC("struct_ops")
__u32 BPF_PROG(weir_sndbuf_expand, struct sock *sk)
{
	struct chirper *s = chirper(sk);

	if (!s || s->flow.phase == CHIRP_DONE)
		return 2;
	return 2 * at_least(1, CHIRP_NEXT * at_least(s->flow.planned, s->flow.window) / at_least(CHIRP_INITIAL, tcp_sk(sk)->snd_cwnd));
}

SEC("struct_ops")
void BPF_PROG(weir_init, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct chirper *s;

	cubictcp_init(sk);
	s = bpf_sk_storage_get(&chirpers, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	if (!s)
		return;
	name_of(sk, &s->name);
	s->nxt = tp->snd_nxt;
	s->window = tp->snd_cwnd;
	s->known = tp->snd_ssthresh;
	s->state = BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_state);
	s->dctcp.prior_rcv_nxt = tp->rcv_nxt;
	dctcp_begin(tp, &s->dctcp, DCTCP_ONE);
	/* srtt_us is in eighths of a microsecond. */
	chirp_start(&s->flow, (__u64)tp->srtt_us * 125, CHIRP_BRIEF);
	/*
	 * A connection that changes its congestion control keeps its window. Data sent with the SYN (Fast
	 * Open) count as a second delivered segment by now. If the peer did not take them, they are in flight
	 * and will be sent again as lost: slow start then. It also serves smaller initial windows, due to the
	 * route or a lost SYN (RFC 5681 section 3.1).
	 */
	if (tp->packets_out || tp->delivered > 2 || tp->snd_cwnd < CHIRP_INITIAL || sk->sk_pacing_status == SK_PACING_FQ) {
		s->fq = sk->sk_pacing_status == SK_PACING_FQ;
		finish(sk, s);
		return;
	}
	sk->sk_pacing_status = SK_PACING_NEEDED;
	publish(sk, s);
}

SEC("struct_ops")
void BPF_PROG(weir_release, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct chirper *s = chirper(sk);

	unpace(sk);
	if (!s)
		return;
	/*
	 * The next congestion control may begin with the initial window, not with a chirp's single segment.
	 */
	if (chirps(s))
		tp->snd_cwnd = at_least(CHIRP_INITIAL, in_flight(tp));
	bpf_map_delete_elem(&rows, &s->name);
	bpf_sk_storage_delete(&chirpers, sk);
}

/* State of plain DCTCP, which lies in the connection. */

static __always_inline struct dctcp *plain(struct sock *sk)
{
	return (struct dctcp *)tcp_sk(sk)->inet_conn.icsk_ca_priv;
}

SEC("struct_ops")
void BPF_PROG(dctcp_init, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct dctcp *d = plain(sk);

	d->prior_rcv_nxt = tp->rcv_nxt;
	d->ce = 0;
	dctcp_begin(tp, d, DCTCP_ONE);
}

SEC("struct_ops")
void BPF_PROG(dctcp_in_ack, struct sock *sk, __u32 flags)
{
	dctcp_observe(tcp_sk(sk), plain(sk));
}

SEC("struct_ops")
__u32 BPF_PROG(dctcp_ssthresh, struct sock *sk)
{
	return dctcp_threshold(tcp_sk(sk), plain(sk));
}

SEC("struct_ops")
void BPF_PROG(dctcp_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	tcp_reno_cong_avoid(sk, ack, acked);
}

SEC("struct_ops")
void BPF_PROG(dctcp_state, struct sock *sk, __u8 state)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (state == TCP_CA_Recovery)
		tp->snd_ssthresh = at_least(2, tp->snd_cwnd / 2);
}

SEC("struct_ops")
void BPF_PROG(dctcp_cwnd_event, struct sock *sk, int event)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (event == CA_EVENT_ECN_IS_CE || event == CA_EVENT_ECN_NO_CE)
		dctcp_received(sk, plain(sk), event == CA_EVENT_ECN_IS_CE);
	if (event == CA_EVENT_LOSS)
		tp->snd_ssthresh = at_least(2, tp->snd_cwnd / 2);
}

#if LINK
#define REGISTERED SEC(".struct_ops.link")
#else
#define REGISTERED SEC(".struct_ops")
#endif

REGISTERED
struct tcp_congestion_ops weir_chirp = {
	.flags = TCP_CONG_NEEDS_ECN,
	.init = (void *)weir_init,
	.release = (void *)weir_release,
	.ssthresh = (void *)weir_ssthresh,
	.cong_avoid = (void *)weir_cong_avoid,
	.set_state = (void *)weir_set_state,
	.cwnd_event = (void *)weir_cwnd_event,
	.in_ack_event = (void *)weir_in_ack,
	.pkts_acked = (void *)weir_pkts_acked,
	.min_tso_segs = (void *)weir_min_tso,
	.undo_cwnd = (void *)weir_undo_cwnd,
	.sndbuf_expand = (void *)weir_sndbuf_expand,
	.name = "weir_chirp",
};

REGISTERED
struct tcp_congestion_ops weir_dctcp = {
	.flags = TCP_CONG_NEEDS_ECN,
	.init = (void *)dctcp_init,
	.ssthresh = (void *)dctcp_ssthresh,
	.cong_avoid = (void *)dctcp_cong_avoid,
	.set_state = (void *)dctcp_state,
	.cwnd_event = (void *)dctcp_cwnd_event,
	.in_ack_event = (void *)dctcp_in_ack,
	.undo_cwnd = (void *)weir_undo_cwnd,
	.name = "weir_dctcp",
};
