/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Reads a TCP segment, or the key of another IP packet, at a tc hook: from the first header on, with the tag
 * that the device took out, with or without an Ethernet header. Mirrors `weir_core::wire`, except that giant
 * segments without a length of their own (BIG TCP) are read too.
 */
#ifndef WEIR_PACKET_H
#define WEIR_PACKET_H

#include "headers.h"

/* Headers are searched for in so many bytes at most. */
#define HEADERS 256

/* Tags beyond those that keys have, and labels of MPLS, that are stepped over at most. */
#define MORE_TAGS 4
#define LABELS 8

#define SEEN_HASH 1
#define SEEN_SOURCE 2

struct seen {
	/* Of a packet that is none of TCP, the halves of its flow's hash, where flows have virtual queues. */
	__u32 seq;
	__u32 ack;
	__u32 payload;
	/* Of such a packet, the place of its source among `strangers`, where flows have a rate each. */
	__u32 ts;
	__u16 window;
	__u8 flags; /* of such a packet, what is known of these: SEEN_HASH, SEEN_SOURCE */
	bool has_ts;
	bool sack;
	bool plain; /* no options, or timestamps after two NOPs */
	__u32 at; /* when, in units of 2^20 ns */
};

/* The part of a TCP header that is ever changed, with what lies between. */
struct numbers {
	__be32 seq;
	__be32 ack;
	__u8 offset;
	__u8 flags;
	__be16 window;
};

struct packet {
	struct flow_key key;
	__u32 l3;      /* offset of the IP header; 0 without Ethernet */
	__u32 l4;      /* offset of the TCP header */
	__u32 options; /* bytes of TCP options */
	__u32 end;     /* offset of the end of the IP packet */
	__u32 ts_at;   /* offset of TSval; 0: none */
	__be32 ts; /* as it stands there */
	__be16 ether; /* protocol of the packet in the frame */
	__u32 slot; /* number of the flow's slot, where it has been looked up */
	__u32 use; /* tag of its flow's slot */
	bool other; /* no segment of TCP, but key, l3, l4 and end are those of an IP packet */
	bool unread; /* of no class: it has no addresses either, or is the link's own */
	bool control; /* and it passes whatever others do */
	__u8 ecn; /* ECN field of an IP packet (RFC 3168) */
	__u64 coarse; /* now, by the coarse clock; each reading costs as much as a look-up */
	struct numbers numbers;
	struct seen seen;
};

/*
 * Keeps two comparisons of a value apart. Compilers make one of them, on a copy, from which the verifier
 * of 6.12 does not see that a length is not 0, as helpers demand; and that of 6.1 does not see it from
 * a comparison with 0.
 */
#define APART(value) asm volatile("" : "+r"(value))

/*
 * The end of an IP packet that says it is `len` bytes long. Ethernet pads short frames, so the
 * packet's word counts; giant segments longer than 64 KB say 0 (`iph_totlen()`,
 * `ipv6_rcv` with BIG TCP), and those are never padded.
 */
static __always_inline bool find_end(struct __sk_buff *skb, __u32 from, __u32 len, struct packet *p)
{
	p->end = len ? from + len : skb->len;
	return p->end <= skb->len && (len || skb->gso_size);
}

static __always_inline enum parsed read_tcp(struct __sk_buff *skb, struct packet *p)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	struct tcp *tcp;
	__u32 header;

	if (p->l4 > 0xffff - HEADERS)
		return PARSED_OTHER;
	tcp = data + p->l4;
	if ((void *)(tcp + 1) > end)
		return PARSED_SHORT;
	header = (tcp->offset >> 4) * 4;
	if (header < sizeof(*tcp) || p->l4 + header > p->end)
		return PARSED_OTHER;
	p->options = header - sizeof(*tcp);
	p->key.sport = tcp->sport;
	p->key.dport = tcp->dport;
	p->key.inner |= bpf_htons(IPPROTO_TCP << 12);
	__builtin_memcpy(&p->numbers, &tcp->seq, sizeof(p->numbers));
	p->seen.seq = bpf_ntohl(tcp->seq);
	p->seen.ack = bpf_ntohl(tcp->ack);
	p->seen.window = bpf_ntohs(tcp->window);
	p->seen.flags = tcp->flags;
	p->seen.payload = p->end - p->l4 - header;
	return PARSED_TCP;
}

/* Source and destination port where they are; of ICMP the identifier. */
struct first_bytes {
	__u8 type;
	__u8 code;
	__be16 second;
	__be16 third;
};

/* The key of a packet that is no TCP segment: as `Key::of_packet`. */
static __always_inline enum parsed read_other(struct __sk_buff *skb, struct packet *p, __u8 protocol,
					      bool fragment)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	struct first_bytes *first;

	p->other = true;
	/* Stands for an opening in keys. */
	if (protocol == 255)
		protocol = 0;
	p->key.outer |= bpf_htons((protocol >> 4) << 12);
	p->key.inner |= bpf_htons((protocol & 0x0f) << 12);
	if (fragment || p->l4 > 0xffff - HEADERS || p->l4 + sizeof(*first) > p->end)
		return PARSED_OTHER;
	first = data + p->l4;
	if ((void *)(first + 1) > end)
		return PARSED_SHORT;
	if (protocol == IPPROTO_UDP) {
		__builtin_memcpy(&p->key.sport, first, sizeof(p->key.sport));
		p->key.dport = first->second;
	} else if ((protocol == IPPROTO_ICMP && (first->type == 8 || first->type == 0)) ||
		   (protocol == IPPROTO_ICMPV6 && (first->type == 128 || first->type == 129))) {
		p->key.sport = p->key.dport = first->third;
	}
	return PARSED_OTHER;
}

/* Addresses and end of an IPv4 packet. False: it is malformed. */
static __always_inline bool begin_ipv4(struct __sk_buff *skb, struct packet *p, const struct ipv4 *ip)
{
	if (!find_end(skb, p->l3, bpf_ntohs(ip->len), p))
		return false;
	p->key.src[10] = p->key.src[11] = p->key.dst[10] = p->key.dst[11] = 0xff;
	__builtin_memcpy(p->key.src + 12, ip->src, 4);
	__builtin_memcpy(p->key.dst + 12, ip->dst, 4);
	p->ecn = ip->tos & 3;
	return true;
}

static __always_inline enum parsed read_ipv4(struct __sk_buff *skb, struct packet *p)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	struct ipv4 *ip = data + p->l3;
	__u32 header;

	if ((void *)(ip + 1) > end)
		return PARSED_SHORT;
	header = (ip->ihl_version & 0x0f) * 4;
	if (ip->ihl_version >> 4 != 4 || header < sizeof(*ip))
		return PARSED_OTHER;
	if (!begin_ipv4(skb, p, ip))
		return PARSED_OTHER;
	p->l4 = p->l3 + header;
	/* More fragments, or an offset. */
	if (ip->protocol != IPPROTO_TCP || ip->frag & bpf_htons(0x3fff))
		return read_other(skb, p, ip->protocol, ip->frag & bpf_htons(0x3fff));
	return read_tcp(skb, p);
}

/* A jumbo option of BIG TCP is a hop-by-hop header like any other. */
static __always_inline bool is_extension(__u8 next)
{
	return next == IPPROTO_HOPOPTS || next == IPPROTO_ROUTING || next == IPPROTO_DSTOPTS ||
	       next == IPPROTO_FRAGMENT;
}

/* A fragment that is no whole packet has more behind it, or an offset (RFC 6946, RFC 8200 section 4.5). */
static __always_inline bool is_fragment(const __u8 *ext)
{
	return *(const __be16 *)(ext + 2) & bpf_htons(0xfff9);
}

/* The same of an IPv6 packet, whose payload is at `at`. */
static __always_inline bool begin_ipv6(struct __sk_buff *skb, struct packet *p, const struct ipv6 *ip, __u32 at)
{
	if (!find_end(skb, ip->len ? at : 0, bpf_ntohs(ip->len), p))
		return false;
	__builtin_memcpy(p->key.src, ip->src, 16);
	__builtin_memcpy(p->key.dst, ip->dst, 16);
	p->ecn = ip->version[1] >> 4 & 3;
	return true;
}

static __always_inline enum parsed read_ipv6(struct __sk_buff *skb, struct packet *p)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	struct ipv6 *ip = data + p->l3;
	__u32 at = p->l3 + sizeof(*ip);
	__u8 next;

	if ((void *)(ip + 1) > end)
		return PARSED_SHORT;
	if (ip->version[0] >> 4 != 6)
		return PARSED_OTHER;
	if (!begin_ipv6(skb, p, ip, at))
		return PARSED_OTHER;
	next = ip->next;
#pragma unroll
	for (int i = 0; i < MAX_EXTENSIONS; i++) {
		__u8 *ext = data + at;

		if (!is_extension(next))
			break;
		if (next == IPPROTO_HOPOPTS && i)
			return PARSED_OTHER;
		if (at + 8 > p->end)
			return PARSED_OTHER;
		if ((void *)(ext + 8) > end)
			return PARSED_SHORT;
		if (next == IPPROTO_FRAGMENT && is_fragment(ext)) {
			p->l4 = at + 8;
			return read_other(skb, p, IPPROTO_FRAGMENT, true);
		}
		/* Segments left: the checksum counts another destination than the header shows. */
		if (next == IPPROTO_ROUTING && ext[3])
			goto found;
		at += next == IPPROTO_FRAGMENT ? 8 : (ext[1] + 1) * 8;
		if (at > p->end)
			return PARSED_OTHER;
		next = ext[0];
	}
	/* More of them than are followed. */
	if (is_extension(next))
		return PARSED_OTHER;
found:
	p->l4 = at;
	if (next == IPPROTO_TCP)
		return read_tcp(skb, p);
	return read_other(skb, p, next, false);
}

/* Most bytes in front of an IP header: an Ethernet header, two tags and a session of PPPoE. */
#define L3_MOST (ETH_HLEN + 2 * sizeof(struct tag) + PPPOE)

/*
 * The protocol of the IP packet in a session of PPPoE, as `pppoe::carries_ipv6`; 0: it has none, or one
 * that is longer than the session says.
 */
static __always_inline __be16 in_session(const struct pppoe *s)
{
	__u32 room = bpf_ntohs(s->length);

	if (s->version != PPPOE_VERSION || s->code || !s->session)
		return 0;
	if (s->protocol == bpf_htons(PPP_IPV4))
		return 2 + bpf_ntohs(s->ip[1]) <= room ? bpf_htons(ETH_P_IP) : 0;
	if (s->protocol == bpf_htons(PPP_IPV6))
		return 2 + sizeof(struct ipv6) + bpf_ntohs(s->ip[2]) <= room ? bpf_htons(ETH_P_IPV6) : 0;
	return 0;
}

/*
 * Reads what is in front of the IP header; false if that is not at hand. `p` is zeroed by the caller.
 * Verified once: what follows knows nothing of the ways through it.
 */
__noinline int find_l3(struct __sk_buff *skb, struct packet *p, bool ethernet)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	int tags = 0;
	__be16 proto;

	if (!p)
		return false;
	/* It is so, and the verifier is to see it. */
	p->l3 = 0;
	p->ether = skb->protocol;
	if (!ethernet)
		return true;
	if (data + ETH_HLEN > end)
		return false;
	if (skb->vlan_present) {
		p->key.outer = bpf_htons(skb->vlan_tci & 0x0fff);
		tags = 1;
	}
	proto = *(__be16 *)(data + 12);
	p->l3 = ETH_HLEN;
#pragma unroll
	for (int i = 0; i < 2; i++) {
		struct tag *tag = data + p->l3;

		if (!is_tag(proto) || tags == 2)
			break;
		if ((void *)(tag + 1) > end)
			return false;
		if (tags == 0)
			p->key.outer = tag->tci & bpf_htons(0x0fff);
		else
			p->key.inner = tag->tci & bpf_htons(0x0fff);
		tags++;
		proto = tag->proto;
		p->l3 += sizeof(*tag);
	}
	p->ether = proto;
	if (proto == bpf_htons(ETH_P_PPP_SES)) {
		struct pppoe *session = data + p->l3;

		if ((void *)(session + 1) > end)
			return false;
		proto = in_session(session);
		if (proto) {
			p->ether = proto;
			p->l3 += PPPOE;
		}
	}
	return true;
}

/* Reads a packet whose IP header was found. Verified once. */
__noinline int parse_packet(struct __sk_buff *skb, struct packet *p)
{
	if (!p || p->l3 > L3_MOST)
		return PARSED_OTHER;
	if (p->ether == bpf_htons(ETH_P_IP))
		return read_ipv4(skb, p);
	if (p->ether == bpf_htons(ETH_P_IPV6))
		return read_ipv6(skb, p);
	return PARSED_OTHER;
}

/* `p` is zeroed by the caller. */
static __always_inline enum parsed read_packet(struct __sk_buff *skb, struct packet *p, bool ethernet)
{
	return find_l3(skb, p, ethernet) ? parse_packet(skb, p) : PARSED_SHORT;
}

/*
 * The offset of an IP header inside of a frame that was not read, as `wire::inner`: behind more tags, PPPoE
 * or MPLS.
 */
static __always_inline __u32 inner_of(struct __sk_buff *skb, struct packet *p)
{
	__u32 at = p->l3;
	__be16 proto = p->ether, next[2];
	__u8 label[4];

	for (int i = 0; i < MORE_TAGS && is_tag(proto); i++) {
		if (bpf_skb_load_bytes(skb, at, next, sizeof(next)))
			return at;
		proto = next[1];
		at += sizeof(next);
	}
	if (proto == bpf_htons(ETH_P_PPP_SES))
		return at + PPPOE;
	if (proto != bpf_htons(ETH_P_MPLS_UC) && proto != bpf_htons(ETH_P_MPLS_MC))
		return at;
	for (int i = 0; i < LABELS; i++) {
		if (bpf_skb_load_bytes(skb, at, label, sizeof(label)))
			return at;
		at += sizeof(label);
		if (label[2] & 1)
			break;
	}
	return at;
}

/* Most bytes of ARP with Ethernet's padding, and of one frame of control (`Gateway::admits_unread`). */
#define ARP_MOST 46
#define PPP_CONTROL_MOST 128

/* ARP and the control of PPP, without which nothing else would pass, and which have room for nothing else. */
static __always_inline bool is_control(struct __sk_buff *skb, struct packet *p)
{
	__u32 bytes = skb->len - p->l3;
	__be16 protocol;

	if (p->ether == bpf_htons(ETH_P_ARP))
		return bytes <= ARP_MOST;
	if (bytes > PPP_CONTROL_MOST)
		return false;
	if (p->ether == bpf_htons(ETH_P_PPP_DISC))
		return true;
	return p->ether == bpf_htons(ETH_P_PPP_SES) &&
	       !bpf_skb_load_bytes(skb, p->l3 + PPPOE - sizeof(protocol), &protocol, sizeof(protocol)) &&
	       bpf_ntohs(protocol) >= PPP_CONTROL;
}

/*
 * Finds the addresses of a packet that cannot be read as a whole, as `wire::other_packet`: headers that
 * contradict each other, more extension headers than are followed, IP inside of another protocol. Verified
 * once.
 */
__noinline int find_addresses(struct __sk_buff *skb, struct packet *p)
{
	__u8 head[sizeof(struct ipv6)];
	__u8 protocol;
	__u32 at;

	if (!p)
		return 0;
	at = inner_of(skb, p);
	p->end = skb->len;
	p->unread = true;
	p->control = is_control(skb, p);
	if (at + sizeof(struct ipv4) > skb->len || bpf_skb_load_bytes(skb, at, head, sizeof(struct ipv4)))
		return 0;
	__builtin_memset(p->key.src, 0, 2 * sizeof(p->key.src));
	if (head[0] >> 4 == 4) {
		p->l4 = at + sizeof(struct ipv4);
		protocol = head[9];
		p->ecn = p->ether == bpf_htons(ETH_P_IP) ? head[1] & 3 : 0;
		p->key.src[10] = p->key.src[11] = p->key.dst[10] = p->key.dst[11] = 0xff;
		__builtin_memcpy(p->key.src + 12, head + 12, 4);
		__builtin_memcpy(p->key.dst + 12, head + 16, 4);
	} else if (head[0] >> 4 == 6 && !bpf_skb_load_bytes(skb, at, head, sizeof(head))) {
		p->l4 = at + sizeof(head);
		protocol = is_extension(head[6]) ? IPPROTO_FRAGMENT : head[6];
		p->ecn = p->ether == bpf_htons(ETH_P_IPV6) ? head[1] >> 4 & 3 : 0;
		__builtin_memcpy(p->key.src, head + 8, 16);
		__builtin_memcpy(p->key.dst, head + 24, 16);
	} else {
		return 0;
	}
	if (protocol == 255)
		protocol = 0;
	p->l3 = at;
	p->key.outer |= bpf_htons((protocol >> 4) << 12);
	p->key.inner |= bpf_htons((protocol & 0x0f) << 12);
	p->unread = false;
	p->other = true;
	return 0;
}

/* `LINK_MOST` and `NEIGHBOUR_MOST` */
#define LINK_MOST 576
#define NEIGHBOUR_MOST 128

/* `is_neighbour_discovery`, by the first and the last of these types */
#define NDISC_FIRST 133
#define NDISC_LAST 137

/* `is_of_scope`: an address of IPv6, by its first 16 bits */
static __always_inline bool is_of_scope(__be16 first)
{
	return (first & bpf_htons(0xffc0)) == bpf_htons(0xfe80) || (first & bpf_htons(0xff0f)) == bpf_htons(0xff02);
}

/*
 * `wire::is_of_link`: is this a packet of the link's own, and no longer than such packets are? Verified once.
 */
__noinline int is_of_link(struct __sk_buff *skb, struct packet *p)
{
	__u32 protocol, first[4], bytes;
	__u8 head[8], type = 0;
	bool of_link;

	if (!p || p->unread)
		return false;
	bytes = p->end - p->l3;
	protocol = (bpf_ntohs(p->key.outer) >> 12) << 4 | bpf_ntohs(p->key.inner) >> 12;
	__builtin_memcpy(first, p->key.dst, sizeof(first));
	of_link = is_of_scope(*(__be16 *)p->key.dst) || is_of_scope(*(__be16 *)p->key.src);
	if (!first[0] && !first[1] && first[2] == bpf_htonl(0xffff))
		of_link = of_link || !~first[3] || (first[3] & bpf_htonl(0xffffff00)) == bpf_htonl(0xe0000000);
	if (of_link && protocol != IPPROTO_TCP && bytes <= LINK_MOST)
		return true;
	if (protocol != IPPROTO_ICMPV6 || bytes > NEIGHBOUR_MOST ||
	    bpf_skb_load_bytes(skb, p->l4, &type, sizeof(type)) || type < NDISC_FIRST || type > NDISC_LAST)
		return false;
	/* No router has had it. */
	return !bpf_skb_load_bytes(skb, p->l3, head, sizeof(head)) && head[0] >> 4 == 6 && head[7] == 255;
}

/* Where the usual headers of a segment of TCP are: no tag, no options or extension headers of IP. */
struct usual {
	struct ipv4 *four; /* NULL: it is IPv6 */
	struct ipv6 *six;
	struct tcp *tcp;
};

/* False: it has others, or is no segment of TCP, or they are not at hand. */
static __always_inline bool find_usual(struct __sk_buff *skb, bool ethernet, struct usual *u)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	__u32 l3 = ethernet ? ETH_HLEN : 0;
	__be16 proto;

	u->four = data + l3;
	u->six = data + l3;
	u->tcp = (void *)(u->four + 1);
	if ((void *)(u->tcp + 1) > end)
		return false;
	proto = ethernet ? *(__be16 *)(data + 12) : skb->protocol;
	if (proto == bpf_htons(ETH_P_IP))
		return u->four->ihl_version == 0x45 && u->four->protocol == IPPROTO_TCP &&
		       !(u->four->frag & bpf_htons(0x3fff));
	u->four = NULL;
	u->tcp = (void *)(u->six + 1);
	return proto == bpf_htons(ETH_P_IPV6) && (void *)(u->tcp + 1) <= end && u->six->version[0] >> 4 == 6 &&
	       u->six->next == IPPROTO_TCP;
}

/*
 * Is it plain that this segment of TCP neither begins nor ends a connection, and, if `bare`, that it has no
 * payload?
 */
static __always_inline bool is_plain_segment(struct __sk_buff *skb, bool ethernet, bool bare)
{
	struct usual u;
	__u32 headers, len;

	if (!find_usual(skb, ethernet, &u) || u.tcp->flags & (TCP_SYN | TCP_RST | TCP_FIN))
		return false;
	if (!bare)
		return true;
	headers = (u.tcp->offset >> 4) * 4;
	len = u.four ? bpf_ntohs(u.four->len) - sizeof(*u.four) : bpf_ntohs(u.six->len);
	return headers >= sizeof(*u.tcp) && len == headers;
}

/* Is it plain that this is a whole datagram? */
static __always_inline bool is_plain_datagram(struct __sk_buff *skb, bool ethernet)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	struct ipv4 *four = data + (ethernet ? ETH_HLEN : 0);
	struct ipv6 *six = (void *)four;
	__be16 proto;

	if ((void *)(four + 1) > end)
		return false;
	proto = ethernet ? *(__be16 *)(data + 12) : skb->protocol;
	if (proto == bpf_htons(ETH_P_IP))
		return four->ihl_version >> 4 == 4 && four->protocol == IPPROTO_UDP &&
		       !(four->frag & bpf_htons(0x3fff));
	return proto == bpf_htons(ETH_P_IPV6) && six->version[0] >> 4 == 6 && six->next == IPPROTO_UDP;
}

/* Reads a segment with the usual headers. False: it has others, and `p` is as it was. */
static __always_inline bool read_usual(struct __sk_buff *skb, bool ethernet, struct packet *p, enum parsed *parsed)
{
	struct usual u;
	bool whole;

	if ((ethernet && skb->vlan_present) || !find_usual(skb, ethernet, &u))
		return false;
	p->l3 = ethernet ? ETH_HLEN : 0;
	if (u.four) {
		p->ether = bpf_htons(ETH_P_IP);
		p->l4 = p->l3 + sizeof(*u.four);
		whole = begin_ipv4(skb, p, u.four);
	} else {
		p->ether = bpf_htons(ETH_P_IPV6);
		p->l4 = p->l3 + sizeof(*u.six);
		whole = begin_ipv6(skb, p, u.six, p->l4);
	}
	*parsed = whole ? read_tcp(skb, p) : PARSED_OTHER;
	return true;
}

#define OPTION_END 0
#define OPTION_NOP 1
#define OPTION_SACK 5
#define OPTION_TIMESTAMPS 8
#define OPTIONS_MAX 40

/* Two times NOP, timestamps, and nothing else: nearly every segment there is. */
#define ALIGNED_TIMESTAMPS 0x0101080a

/*
 * Looks for TSval and SACK blocks. Options that are cut short end the search, as in
 * `tcp_parse_options()`; what was found before counts.
 */
static __attribute__((noinline)) void scan_options(struct __sk_buff *skb, struct packet *p)
{
	/* An option's length may lie behind the last byte. */
	__u8 list[OPTIONS_MAX + 8] = {};
	__u32 len = p->options, at = 0, from = p->l4 + sizeof(struct tcp);

	APART(len);
	if (len < 4)
		return;
	APART(len);
	if (len > OPTIONS_MAX || bpf_skb_load_bytes(skb, from, list, len))
		return;
	for (int i = 0; i < OPTIONS_MAX; i++) {
		__u32 kind, size;

		/* All ways through the loop look alike to the verifier. */
		asm volatile("%0 &= 63" : "+r"(at));
		if (at >= len || at >= OPTIONS_MAX)
			break;
		kind = list[at];
		if (kind == OPTION_END)
			break;
		if (kind == OPTION_NOP) {
			at++;
			continue;
		}
		size = list[at + 1];
		if (size < 2 || at + size > len)
			break;
		if (kind == OPTION_TIMESTAMPS && size == 10) {
			p->ts_at = from + at + 2;
			p->seen.has_ts = true;
		}
		if (kind == OPTION_SACK && size >= 10)
			p->seen.sack = true;
		at += size;
	}
	if (p->seen.has_ts)
		bpf_skb_load_bytes(skb, p->ts_at, &p->ts, 4);
}

/* Options of a segment that was read. */
static __always_inline void read_options(struct __sk_buff *skb, struct packet *p)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	__u32 at = p->l4 + sizeof(struct tcp);
	__be32 *words;

	p->seen.plain = !p->options;
	if (!p->options)
		return;
	if (at > 0xffff - HEADERS)
		return;
	words = data + at;
	if (p->options == 12 && (void *)(words + 3) <= end && words[0] == bpf_htonl(ALIGNED_TIMESTAMPS)) {
		p->seen.has_ts = true;
		p->seen.plain = true;
		p->ts_at = at + 4;
		p->ts = words[1];
	} else {
		scan_options(skb, p);
	}
	p->seen.ts = bpf_ntohl(p->ts);
}

#endif
