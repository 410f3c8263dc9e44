/* SPDX-License-Identifier: GPL-2.0 OR MIT OR Apache-2.0 */
/*
 * The checksum of a TCP segment, as weir_core::wire::checksum judges it: right where it is complete and
 * right, or holds the pseudo-header's sum alone, which this host's own segments have until a device completes
 * them (CHECKSUM_PARTIAL; tc programs are not told). A receiver does nothing with any other (RFC 9293 section
 * 3.10.7), so nothing is learnt from it here.
 */
#ifndef WEIR_SUM_H
#define WEIR_SUM_H

#include "packet.h"
#include "rewrite.h"

/* Bytes that `bpf_csum_diff()` takes at once before Linux 6.13. */
#define SUM_STEP 512
/* A longer segment that is not giant cannot be summed: jumbo frames are shorter. */
#define SUM_STEPS 19

struct summed {
	__u8 bytes[SUM_STEP + 8]; /* padded to words */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct summed);
} scratch SEC(".maps");

static __always_inline __u16 folded(__u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

/* What an IPv4 address has in front of it in a key, 0xffff, is nothing in a ones' complement sum. */
static __always_inline __u64 pseudo_sum(struct packet *p, __u32 len)
{
	__u64 sum = (__u64)bpf_htonl(len) + bpf_htonl(IPPROTO_TCP);
	__u32 words[8];

	__builtin_memcpy(words, p->key.src, 16);
	__builtin_memcpy(words + 4, p->key.dst, 16);
#pragma unroll
	for (int i = 0; i < 8; i++)
		sum += words[i];
	return sum;
}

/*
 * Adds the header of a segment without payload, where it has no options or timestamps after two NOPs, as
 * nearly all have. False: it is another one, or not at hand.
 */
static __always_inline bool sum_header(struct __sk_buff *skb, struct packet *p, __u64 *sum)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	__u32 *words;

	if (p->l4 > 0xffff - HEADERS)
		return false;
	words = data + p->l4;
	if ((void *)(words + 5) > end)
		return false;
	*sum += (__u64)words[0] + words[1] + words[2] + words[3] + words[4];
	if (!p->options)
		return true;
	if (p->options != 12 || (void *)(words + 8) > end)
		return false;
	*sum += (__u64)words[5] + words[6] + words[7];
	return true;
}

/* Adds `len` bytes from `from` on. False: they are too many, or cannot be read. */
static __always_inline int sum_bytes(struct __sk_buff *skb, __u32 from, __u32 len, __u64 *sum)
{
	__u32 zero = 0;
	struct summed *buffer = bpf_map_lookup_elem(&scratch, &zero);

	if (!buffer || !sum)
		return false;
	for (int i = 0; i < SUM_STEPS; i++) {
		__u32 part = len < SUM_STEP ? len : SUM_STEP;

		if (!len)
			return true;
		*(__u32 *)(buffer->bytes + (part & (SUM_STEP - 4))) = 0;
		/* Changes nothing. The verifier of 6.1 sees by it that there is something to be read. */
		APART(part);
		part = ((part - 1) & (SUM_STEP - 1)) + 1;
		if (bpf_skb_load_bytes(skb, from, buffer->bytes, part))
			return false;
		*sum += (__u32)bpf_csum_diff(NULL, 0, (__be32 *)buffer->bytes, (part + 3) & ~3U, 0);
		from += part;
		len -= part;
	}
	return !len;
}

/*
 * Is the checksum of a segment wrong? Those that giant ones were made of have been summed
 * (`tcp4_gro_receive()`), or are still to be.
 */
__noinline int is_broken(struct __sk_buff *skb, struct packet *p)
{
	__u64 pseudo, sum;
	__sum16 field;
	__u32 len;

	if (!p || skb->gso_size)
		return false;
	len = p->end - p->l4;
	pseudo = pseudo_sum(p, len);
	sum = pseudo;
	if (p->seen.payload || !sum_header(skb, p, &sum)) {
		sum = pseudo;
		if (bpf_skb_load_bytes(skb, p->l4 + TCP_CHECKSUM, &field, sizeof(field)))
			return true;
		if (field == folded(pseudo))
			return false;
		return !sum_bytes(skb, p->l4, len, &sum) || folded(sum) != 0xffff;
	}
	if (folded(sum) == 0xffff)
		return false;
	return bpf_skb_load_bytes(skb, p->l4 + TCP_CHECKSUM, &field, sizeof(field)) || field != folded(pseudo);
}

#endif
