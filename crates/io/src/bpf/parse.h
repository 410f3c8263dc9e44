/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Finds the flow of a frame: Ethernet, up to two tags, IPv4 or IPv6, TCP. Nothing is classified. */
#ifndef WEIR_PARSE_H
#define WEIR_PARSE_H

#include <bpf/bpf_endian.h>

#define TCP_FIN 0x01
#define TCP_SYN 0x02
#define TCP_RST 0x04

/* Extension headers followed before giving up; more than two are not seen in practice. */
#define MAX_EXTENSIONS 6

enum parsed {
	PARSED_TCP,
	PARSED_OTHER, /* not TCP, a fragment, too deep */
	PARSED_SHORT, /* the bytes at hand end before the answer */
};

struct tag {
	__be16 tci;
	__be16 proto;
};

struct ipv4 {
	__u8 ihl_version;
	__u8 tos;
	__be16 len;
	__be16 id;
	__be16 frag;
	__u8 ttl;
	__u8 protocol;
	__sum16 check;
	__u8 src[4];
	__u8 dst[4];
};

struct ipv6 {
	__u8 version[4];
	__be16 len;
	__u8 next;
	__u8 hop_limit;
	__u8 src[16];
	__u8 dst[16];
};

struct tcp {
	__be16 sport;
	__be16 dport;
	__be32 seq;
	__be32 ack;
	__u8 offset;
	__u8 flags;
	__be16 window;
	__sum16 check;
	__be16 urgent;
};

static __always_inline bool is_tag(__be16 proto)
{
	return proto == bpf_htons(ETH_P_8021Q) || proto == bpf_htons(ETH_P_8021AD);
}

static __always_inline enum parsed parse_tcp(void *pos, void *end, struct flow_key *key, __u8 *flags)
{
	struct tcp *tcp = pos;

	if ((void *)(tcp + 1) > end)
		return PARSED_SHORT;
	key->sport = tcp->sport;
	key->dport = tcp->dport;
	*flags = tcp->flags;
	return PARSED_TCP;
}

static __always_inline enum parsed parse_ipv4(void *pos, void *end, struct flow_key *key, __u8 *flags)
{
	struct ipv4 *ip = pos;
	__u32 header;

	if ((void *)(ip + 1) > end)
		return PARSED_SHORT;
	header = (ip->ihl_version & 0x0f) * 4;
	if (ip->ihl_version >> 4 != 4 || header < sizeof(*ip))
		return PARSED_OTHER;
	/* More fragments, or an offset. */
	if (ip->protocol != IPPROTO_TCP || ip->frag & bpf_htons(0x3fff))
		return PARSED_OTHER;
	key->src[10] = key->src[11] = key->dst[10] = key->dst[11] = 0xff;
	__builtin_memcpy(key->src + 12, ip->src, 4);
	__builtin_memcpy(key->dst + 12, ip->dst, 4);
	return parse_tcp(pos + header, end, key, flags);
}

static __always_inline enum parsed parse_ipv6(void *pos, void *end, struct flow_key *key, __u8 *flags)
{
	struct ipv6 *ip = pos;
	__u8 next;

	if ((void *)(ip + 1) > end)
		return PARSED_SHORT;
	if (ip->version[0] >> 4 != 6)
		return PARSED_OTHER;
	__builtin_memcpy(key->src, ip->src, 16);
	__builtin_memcpy(key->dst, ip->dst, 16);
	next = ip->next;
	pos = ip + 1;
#pragma unroll
	for (int i = 0; i < MAX_EXTENSIONS; i++) {
		__u8 *ext = pos;

		if (next == IPPROTO_TCP)
			return parse_tcp(pos, end, key, flags);
		if (next != IPPROTO_HOPOPTS && next != IPPROTO_ROUTING && next != IPPROTO_DSTOPTS)
			return PARSED_OTHER;
		if ((void *)(ext + 8) > end)
			return PARSED_SHORT;
		next = ext[0];
		pos += (ext[1] + 1) * 8;
	}
	return PARSED_OTHER;
}

/*
 * `key` is zeroed by the caller; its outer tag may be set already (`tags` = 1) when the kernel has
 * taken the tag out of the frame.
 */
static __always_inline enum parsed parse_frame(void *pos, void *end, struct flow_key *key, int tags,
					       __u8 *flags)
{
	__be16 proto;

	if (pos + ETH_HLEN > end)
		return PARSED_SHORT;
	proto = *(__be16 *)(pos + 12);
	pos += ETH_HLEN;
#pragma unroll
	for (int i = 0; i < 2; i++) {
		struct tag *tag = pos;
		__be16 id;

		if (!is_tag(proto))
			break;
		if (tags == 2)
			return PARSED_OTHER;
		if ((void *)(tag + 1) > end)
			return PARSED_SHORT;
		id = tag->tci & bpf_htons(0x0fff);
		if (tags == 0)
			key->outer_vlan = id;
		else
			key->inner_vlan = id;
		tags++;
		proto = tag->proto;
		pos = tag + 1;
	}
	if (proto == bpf_htons(ETH_P_IP))
		return parse_ipv4(pos, end, key, flags);
	if (proto == bpf_htons(ETH_P_IPV6))
		return parse_ipv6(pos, end, key, flags);
	return PARSED_OTHER;
}

#endif
