/* SPDX-License-Identifier: GPL-2.0 OR MIT OR Apache-2.0 */
/* Notes the metadata of frames, for tests: behind all other programs of a hook. */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include "abi.h"

/* Of the frame seen last at egress and at ingress. `number` counts frames. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, struct metadata);
} seen SEC(".maps");

static __always_inline int note(struct __sk_buff *skb, __u32 hook)
{
	struct metadata *last = bpf_map_lookup_elem(&seen, &hook);

	if (!last)
		return TC_ACT_UNSPEC;
	last->departure = skb->tstamp;
	last->mark = skb->mark;
	last->priority = skb->priority;
	last->queue = skb->queue_mapping;
	__sync_fetch_and_add(&last->number, 1);
	return TC_ACT_UNSPEC;
}

SEC("tc")
int probe_egress(struct __sk_buff *skb)
{
	return note(skb, 0);
}

SEC("tc")
int probe_ingress(struct __sk_buff *skb)
{
	return note(skb, 1);
}

char LICENSE[] SEC("license") = "GPL";
