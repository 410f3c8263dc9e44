/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The headers of a TCP segment on the wire. */
#ifndef WEIR_HEADERS_H
#define WEIR_HEADERS_H

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

struct udp {
	__be16 sport;
	__be16 dport;
	__be16 len;
	__sum16 check;
};

static __always_inline bool is_tag(__be16 proto)
{
	return proto == bpf_htons(ETH_P_8021Q) || proto == bpf_htons(ETH_P_8021AD);
}

#endif
