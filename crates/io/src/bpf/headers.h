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

/* A session of PPPoE and PPP (RFC 2516, RFC 1661), and the beginning of an IP packet in it. */
struct pppoe {
	__u8 version; /* and type */
	__u8 code;
	__be16 session;
	__be16 length; /* from the protocol on */
	__be16 protocol;
	__be16 ip[3];
};

#define PPPOE 8
#define PPPOE_VERSION 0x11
#define ETH_P_PPP_DISC 0x8863
#define PPP_IPV4 0x0021
#define PPP_IPV6 0x0057
/* The first of PPP's protocols that control the link and the protocols on it. */
#define PPP_CONTROL 0x8000

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
