/* SPDX-License-Identifier: GPL-2.0 OR MIT OR Apache-2.0 */
/*
 * Gives each repetition of a test run a flow, writes that into the frame, and goes on with the program that
 * is measured. A frame stays between repetitions as the one before has left it.
 */
#include "vmlinux.h"
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

/* Flows, and those of each class. */
#define FLOWS 100000
#define OF_CLASS 10
/* A full period: one less is a multiple of the prime factors of FLOWS, and of 4 (Hull and Dobell 1962). */
#define FACTOR 31421
#define STEP 17389

#define FIRST_PORT 1000

/* Headers of IPv6 and UDP: host and port are in front of their end. */
#define HEADERS 62

struct turns {
	__u32 many;   /* 0: one flow */
	__u32 host;   /* where the last 16 bits of the customer's address are */
	__u32 port;   /* where the customer's port is */
	__u32 tcp;    /* where the header of TCP is; 0: there is none */
	__u32 each;   /* what the sequence number grows by from turn to turn of a flow */
	__u32 from;   /* ... from here on */
};

const volatile struct turns turns = { .host = 28, .port = 34 };

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} measured SEC(".maps");

static __u32 flow, turn;

SEC("tc")
int turns_take(struct __sk_buff *skb)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	__u32 class, port;

	if (data + HEADERS > end || turns.host > HEADERS - 2 || turns.port > HEADERS - 2)
		return -1;
	if (turns.many)
		flow = (flow * FACTOR + STEP) % FLOWS;
	class = flow / OF_CLASS;
	port = FIRST_PORT + flow % OF_CLASS;
	*(__be16 *)(data + turns.host) = bpf_htons(class);
	*(__be16 *)(data + turns.port) = bpf_htons(port);
	if (turns.tcp && turns.tcp <= HEADERS && data + turns.tcp + 20 <= end) {
		*(__be32 *)(data + turns.tcp + 4) = bpf_htonl(turns.from + turn * turns.each);
		/* The urgent pointer, which means nothing, keeps the checksum of a frame with neither. */
		*(__be16 *)(data + turns.tcp + 18) = bpf_htons(~(class + port));
	}
	if (!flow)
		turn++;
	bpf_tail_call(skb, &measured, 0);
	return -1;
}

/* In place of the program that is measured: what the turns cost. */
SEC("tc")
int nothing(struct __sk_buff *skb)
{
	return -1;
}

char LICENSE[] SEC("license") = "GPL";
