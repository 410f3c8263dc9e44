/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Writes new numbers into a TCP segment in place, and keeps its checksum right. */
#ifndef WEIR_REWRITE_H
#define WEIR_REWRITE_H

/* Codepoints of the ECN field (RFC 3168 section 5). */
#define ECT_1 1
#define ECT_0 2
#define ECN_CE 3

#define TCP_NUMBERS 4
#define TCP_CHECKSUM 16
#define IPV4_CHECKSUM 10
#define BPF_F_RECOMPUTE_CSUM 1

/* Adds to a ones' complement sum what it means that `from` becomes `to` (RFC 1624). */
static __always_inline __u64 replaced(__u64 sum, __u32 from, __u32 to)
{
	return sum + (__u32)~from + to;
}

/* What four bytes at an odd offset add to the sum: they lie across three 16-bit words. */
static __always_inline __u32 at_odd(__u32 bytes)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	return bytes << 8 | bytes >> 24;
#else
	return bytes >> 8 | bytes << 24;
#endif
}

/*
 * 0, or the kernel's error with nothing changed. `bpf_l4_csum_replace()` does what each state of the
 * checksum needs when no part of the pseudo-header changes: complete in the segment: updated; left to
 * the device (CHECKSUM_PARTIAL): nothing; summed up by the device (CHECKSUM_COMPLETE): the sum over
 * all bytes stays, as the checksum field makes up for the others. So none of the flags that
 * correct `skb->csum` must be given.
 */
static __noinline long rewrite(struct __sk_buff *skb, struct packet *p, const struct numbers *to, __be32 ts)
{
	__u32 at = p->l4;
	bool stamps = p->ts_at && ts != p->ts;
	__u64 sum = 0;
	long error;

	sum = replaced(sum, p->numbers.seq, to->seq);
	sum = replaced(sum, p->numbers.ack, to->ack);
	sum = replaced(sum, p->numbers.window, to->window);
	if (stamps && (p->ts_at - at) & 1)
		sum = replaced(sum, at_odd(p->ts), at_odd(ts));
	else if (stamps)
		sum = replaced(sum, p->ts, ts);
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffffffff) + (sum >> 32);
	/* The first one to write decides whether the others can: it reaches farthest. */
	if (stamps) {
		error = bpf_skb_store_bytes(skb, p->ts_at, &ts, sizeof(ts), 0);
		if (error)
			return error;
	}
	error = bpf_l4_csum_replace(skb, at + TCP_CHECKSUM, 0, (__u32)sum, 0);
	if (error)
		return error;
	return bpf_skb_store_bytes(skb, at + TCP_NUMBERS, to, sizeof(*to), 0);
}

/*
 * Sets Congestion Experienced in the header of an IP packet whose ECN field is not 0. IPv4's checksum makes
 * up for it, so that a sum of the device over all bytes stays as it is; IPv6 has none. Verified once.
 */
__noinline int mark(struct __sk_buff *skb, struct packet *p)
{
	__be16 old, new;
	__u32 at;

	if (!p)
		return 0;
	at = p->l3;
	if (bpf_skb_load_bytes(skb, at, &old, sizeof(old)))
		return 0;
	if (p->ether != bpf_htons(ETH_P_IP)) {
		new = old | bpf_htons(ECN_CE << 4);
		return bpf_skb_store_bytes(skb, at, &new, sizeof(new), BPF_F_RECOMPUTE_CSUM);
	}
	new = old | bpf_htons(ECN_CE);
	if (bpf_l3_csum_replace(skb, at + IPV4_CHECKSUM, old, new, sizeof(new)))
		return 0;
	return bpf_skb_store_bytes(skb, at, &new, sizeof(new), 0);
}

#endif
