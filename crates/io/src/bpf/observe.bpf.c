/* SPDX-License-Identifier: GPL-2.0 OR MIT OR Apache-2.0 */
/*
 * tc program of a data port: copies the headers of TCP frames with SYN, FIN or RST for the engine
 * and leaves every frame untouched. An XDP program here would turn the peer's segmentation offload
 * off on virtual devices and see giant segments cut.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include "abi.h"
#include "parse.h"

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 18);
} ring SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct observe_counters);
} counters SEC(".maps");

static __always_inline enum parsed parse_skb(struct __sk_buff *skb, __u8 *flags)
{
	/* A tag that the device took out of the frame counts as the outer one. */
	return parse_frame((void *)(long)skb->data, (void *)(long)skb->data_end, &(struct flow_key){},
			   skb->vlan_present ? 1 : 0, flags);
}

/* Copies the frame's head as it was on the wire: with the tag that the device took out. */
static __always_inline __u32 copy_head(struct __sk_buff *skb, __u8 *head)
{
	__u32 len = skb->len;

	if (!skb->vlan_present) {
		if (len > OBSERVED_HEAD)
			len = OBSERVED_HEAD;
		/* Keep the bound that the verifier saw in the register that is passed. */
		asm volatile("" : "+r"(len));
		if (len < ETH_HLEN || len > OBSERVED_HEAD || bpf_skb_load_bytes(skb, 0, head, len))
			return 0;
		return len;
	}
	if (bpf_skb_load_bytes(skb, 0, head, 12))
		return 0;
	*(__be16 *)(head + 12) = skb->vlan_proto;
	*(__be16 *)(head + 14) = bpf_htons(skb->vlan_tci);
	if (len < ETH_HLEN)
		return 0;
	len -= 12;
	if (len > OBSERVED_HEAD - 16)
		len = OBSERVED_HEAD - 16;
	asm volatile("" : "+r"(len));
	if (len < 2 || len > OBSERVED_HEAD - 16 || bpf_skb_load_bytes(skb, 12, head + 16, len))
		return 0;
	return len + 16;
}

SEC("tc")
int observe(struct __sk_buff *skb)
{
	struct observe_counters *count;
	struct observation *seen;
	enum parsed parsed;
	__u32 zero = 0;
	__u8 flags = 0;

	parsed = parse_skb(skb, &flags);
	if (parsed == PARSED_SHORT) {
		__u32 want = skb->len < OBSERVED_HEAD ? skb->len : OBSERVED_HEAD;

		/* Headers in fragments of the buffer: pull them in, once. */
		if (bpf_skb_pull_data(skb, want))
			return TC_ACT_UNSPEC;
		parsed = parse_skb(skb, &flags);
	}
	if (parsed != PARSED_TCP || !(flags & (TCP_SYN | TCP_FIN | TCP_RST)))
		return TC_ACT_UNSPEC;
	count = bpf_map_lookup_elem(&counters, &zero);
	if (!count)
		return TC_ACT_UNSPEC;
	seen = bpf_ringbuf_reserve(&ring, sizeof(*seen), 0);
	if (!seen) {
		count->lost++;
		return TC_ACT_UNSPEC;
	}
	seen->time = bpf_ktime_get_ns();
	seen->len = skb->len + (skb->vlan_present ? 4 : 0);
	seen->head_len = copy_head(skb, seen->head);
	if (!seen->head_len) {
		bpf_ringbuf_discard(seen, 0);
		return TC_ACT_UNSPEC;
	}
	count->observed++;
	bpf_ringbuf_submit(seen, 0);
	return TC_ACT_UNSPEC;
}

char LICENSE[] SEC("license") = "GPL";
