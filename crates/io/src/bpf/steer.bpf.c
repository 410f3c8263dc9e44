/* SPDX-License-Identifier: GPL-2.0 OR MIT OR Apache-2.0 */
/*
 * XDP program of a port: which frames go to the engine in user space, and which stay in the kernel.
 *
 * Only the core classifies. This program looks the 5-tuple up; a miss goes to user space, which
 * writes a verdict. Whatever goes wrong, a frame is passed to the kernel: no engine, an engine that
 * hangs, no socket, a frame that does not fit.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include "abi.h"
#include "parse.h"

const volatile struct steer_config config = { .stale = 50000000, .mode = STEER_FULL, .max_len = 1792 };

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct control);
} control SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct flow_key);
	__type(value, struct flow_verdict);
} verdicts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, 64);
	__type(key, __u32);
	__type(value, __u32);
} sockets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct steer_counters);
} counters SEC(".maps");

static __always_inline void put_stamp(struct xdp_md *ctx, __u64 now)
{
	struct stamp *stamp;

	/* A driver without metadata refuses: user space then stamps the frame itself. */
	if (bpf_xdp_adjust_meta(ctx, -(int)sizeof(*stamp)))
		return;
	stamp = (void *)(long)ctx->data_meta;
	if ((void *)(stamp + 1) > (void *)(long)ctx->data)
		return;
	stamp->time = now;
	stamp->magic = STAMP_MAGIC;
}

static __always_inline bool passes(struct flow_key *key, __u8 flags, __u32 generation)
{
	struct flow_verdict *known;

	/* A new connection may come under another class than the last one on the same ports; and the end of a
	 * flow that passes is the end of the one in the other direction, which may be shaped. */
	if (flags & (TCP_SYN | TCP_FIN | TCP_RST))
		return false;
	known = bpf_map_lookup_elem(&verdicts, key);
	return known && known->generation == generation && known->verdict == VERDICT_PASS;
}

SEC("xdp")
int steer(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 zero = 0, queue = ctx->rx_queue_index;
	struct steer_counters *count = bpf_map_lookup_elem(&counters, &zero);
	struct control *engine = bpf_map_lookup_elem(&control, &zero);
	__u64 now = bpf_ktime_get_ns();

	if (!count || !engine)
		return XDP_PASS;
	/* The engine may beat on another CPU just after `now` was read: compare signed. */
	if ((__s64)(now - *(volatile __u64 *)&engine->beat) > (__s64)config.stale) {
		count->passed_stale++;
		return XDP_PASS;
	}
	if (config.mode == STEER_ACKS) {
		struct flow_key key = {};
		__u8 flags = 0;

		if (parse_frame(data, end, &key, 0, &flags) != PARSED_TCP) {
			count->passed_other++;
			return XDP_PASS;
		}
		if (passes(&key, flags, engine->generation)) {
			count->passed_verdict++;
			return XDP_PASS;
		}
	}
	if (end - data > config.max_len) {
		count->passed_long++;
		return XDP_PASS;
	}
	if (!bpf_map_lookup_elem(&sockets, &queue)) {
		count->passed_unbound++;
		return XDP_PASS;
	}
	count->taken++;
	put_stamp(ctx, now);
	return bpf_redirect_map(&sockets, queue, XDP_PASS);
}

/* bpf_xdp_adjust_meta and friends need no GPL, but some kernels are built to load nothing else. */
char LICENSE[] SEC("license") = "GPL";
