/* SPDX-License-Identifier: GPL-2.0 OR MIT OR Apache-2.0 */
/*
 * DCTCP (RFC 8257), as net/ipv4/tcp_dctcp.c has it: the sender's estimate of the share of marks, and the
 * receiver's echo of every mark.
 */
#ifndef WEIR_DCTCP_H
#define WEIR_DCTCP_H

#define DCTCP_ONE 1024u
/* g = 1/16 */
#define DCTCP_SHIFT_G 4

struct dctcp {
	__u32 delivered;
	__u32 delivered_ce;
	/* SND.NXT at the beginning of the window of data that is observed. */
	__u32 next_seq;
	/* Share marked, of DCTCP_ONE. */
	__u32 alpha;
	__u32 prior_rcv_nxt;
	/* Was the segment received last marked? */
	__u32 ce;
};

static __always_inline void dctcp_begin(struct tcp_sock *tp, struct dctcp *d, __u32 alpha)
{
	d->delivered = tp->delivered;
	d->delivered_ce = tp->delivered_ce;
	d->next_seq = tp->snd_nxt;
	d->alpha = alpha > DCTCP_ONE ? DCTCP_ONE : alpha;
}

/* RFC 8257 section 3.3, once for a window of data. */
static __always_inline void dctcp_observe(struct tcp_sock *tp, struct dctcp *d)
{
	__u32 alpha = d->alpha, decay, marked, delivered;

	if ((__s32)(tp->snd_una - d->next_seq) < 0)
		return;
	marked = tp->delivered_ce - d->delivered_ce;
	delivered = tp->delivered - d->delivered;
	decay = alpha >> DCTCP_SHIFT_G;
	alpha -= decay ? decay : alpha;
	if (marked)
		alpha += (marked << (10 - DCTCP_SHIFT_G)) / (delivered ? delivered : 1);
	dctcp_begin(tp, d, alpha);
}

static __always_inline __u32 dctcp_threshold(const struct tcp_sock *tp, const struct dctcp *d)
{
	__u32 cwnd = tp->snd_cwnd;

	return at_least(2, cwnd - (__u32)(((__u64)cwnd * d->alpha) >> 11));
}

static __always_inline void dctcp_echo(struct tcp_sock *tp, __u32 ce)
{
	if (ce)
		tp->ecn_flags |= TCP_ECN_DEMAND_CWR;
	else
		tp->ecn_flags &= ~TCP_ECN_DEMAND_CWR;
}

/*
 * A segment has come, marked or not: a change is told at once, after what waits with the marks before
 * (section 3.2).
 */
static __always_inline void dctcp_received(struct sock *sk, struct dctcp *d, __u32 ce)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct inet_connection_sock *icsk = &tp->inet_conn;

	if (d->ce != ce) {
		if (icsk->icsk_ack.pending & ICSK_ACK_TIMER) {
			dctcp_echo(tp, d->ce);
			bpf_tcp_send_ack(tp, d->prior_rcv_nxt);
		}
		icsk->icsk_ack.pending |= ICSK_ACK_NOW;
	}
	d->prior_rcv_nxt = tp->rcv_nxt;
	d->ce = ce;
	dctcp_echo(tp, ce);
}

#endif
