/* SPDX-License-Identifier: GPL-2.0 OR MIT OR Apache-2.0 */
/*
 * SYNs that the engine was not shown. Nothing but the two SYNs tells of window scales, so what a budget
 * leaves out is kept here and shown in front of its answer, which a flood of SYNs has none of. Unanswered
 * ones are forgotten first come, first gone.
 */
#ifndef WEIR_OPENINGS_H
#define WEIR_OPENINGS_H

#include "ring.h"

/* Data that comes with a SYN at most (weir_core::track::opening). */
#define FAST_OPEN 1460

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 32768);
	__type(key, struct flow_key);
	__type(value, struct segment); /* `mark`: its sequence number */
} openings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct segment);
} opening SEC(".maps");

/* Keys are on the stack: see slot_of. */
static __always_inline void keep_opening(struct hook *h, struct flow_key *key, struct packet *p)
{
	__u32 zero = 0;
	struct segment *record = bpf_map_lookup_elem(&opening, &zero);

	if (!record || !fill(h, record, FATE_EARLIER))
		return;
	record->mark = p->seen.seq;
	bpf_map_update_elem(&openings, key, record, 0);
}

/* Shows the SYN that this one answers, if it was kept. */
static __always_inline void recall_opening(struct hook *h, struct flow_key *key, struct packet *p)
{
	struct segment *kept, *record;
	__u64 age;

	reverse(key);
	kept = bpf_map_lookup_elem(&openings, key);
	reverse(key);
	if (kept && p->seen.ack - kept->mark - 1 <= FAST_OPEN) {
		record = reserve(h);
		if (record) {
			age = (now(h) - kept->time) / 1000;
			__builtin_memcpy(record, kept, sizeof(*record));
			record->time = now(h);
			record->mark = age > 0xffffffff ? 0xffffffff : age;
			submit(h, record, &h->count->copied);
		} else {
			h->count->ring_full++;
		}
	}
}

#endif
