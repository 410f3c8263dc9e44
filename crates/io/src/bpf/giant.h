/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Number of packets that a frame stands for. */
#ifndef WEIR_GIANT_H
#define WEIR_GIANT_H

/*
 * Packets on the wire: of a giant segment with so many bytes of headers, its payload by `gso_size`. Those of
 * virtual machines and packet sockets (SKB_GSO_DODGY) have no `gso_segs`: `qdisc_pkt_len_init()` divides as
 * well.
 */
static __always_inline __u32 packets_of(struct __sk_buff *skb, __u32 headers)
{
	__u32 size = skb->gso_size, segments = skb->gso_segs;

	if (!size)
		return 1;
	if (segments)
		return segments;
	return skb->len > headers ? (skb->len - headers + size - 1) / size : 1;
}

#endif
