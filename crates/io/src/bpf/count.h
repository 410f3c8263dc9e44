/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What passes of a class that ACKs cannot slow: the same as weir_core::steer::{Fields, Tally}. Only the core
 * classifies. A hook learns the class of all packets that are alike in what some rule looks at, and counts
 * them from then on.
 */
#ifndef WEIR_COUNT_H
#define WEIR_COUNT_H

/* TCP has one of so many parts of a class's rate. */
#define TCP_PART 10

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct flow_key);
	__type(value, struct counted);
} counted SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct tally);
} tallies SEC(".maps");

/* Leaves of a key what some rule looks at. */
static __always_inline void keep_fields(struct flow_key *key, __u32 fields)
{
	__u16 bits = (fields & FIELD_PROTOCOL ? 0xf000 : 0);

	if (!(fields & FIELD_SRC))
		__builtin_memset(key->src, 0, sizeof(key->src));
	if (!(fields & FIELD_DST))
		__builtin_memset(key->dst, 0, sizeof(key->dst));
	if (!(fields & FIELD_SPORT))
		key->sport = 0;
	if (!(fields & FIELD_DPORT))
		key->dport = 0;
	key->inner = (key->inner & bpf_htons(bits)) | bpf_htons(fields & FIELDS_INWARD ? 1 : 0);
	key->outer &= bpf_htons(bits | (fields & FIELD_VLAN ? 0x0fff : 0));
}

/* What has been learnt of packets with this key; NULL: nothing. */
static __always_inline struct counted *learnt(struct hooks *engine, struct flow_key *key)
{
	struct counted *entry = bpf_map_lookup_elem(&counted, key);

	return entry && READ(entry->generation) == READ(engine->counting) ? entry : NULL;
}

/* Nanoseconds that so many bytes take. */
static __always_inline __u64 served(__u64 bytes, __u64 per_byte)
{
	return bytes * per_byte >> TALLY_FRACTION;
}

/* Moves a record by what takes so long. */
static __always_inline void charge(__u64 *due, __u64 time, __u64 now)
{
	__u64 old = READ64(*due), from = old > now ? old : now;

	if (__sync_val_compare_and_swap(due, old, from + time) != old)
		__sync_fetch_and_add(due, time);
}

/* `Tally::is_within` */
static __always_inline bool tally_within(struct tally *t, __u64 packets, __u64 bytes, __u64 per_byte, __u64 now)
{
	__s64 cost = bytes + READ64(t->overhead) * packets;
	__u64 old, from;

	if (cost < 0)
		cost = 0;
	old = READ64(t->due);
	from = old > now ? old : now;
	if (from - now > READ64(t->burst))
		return false;
	charge(&t->due, served(cost, per_byte), now);
	return true;
}

/* `Tally::admits` */
static __always_inline bool tally_admits(struct tally *t, __u64 packets, __u64 bytes, __u64 now, bool beside_tcp)
{
	__u64 per_byte = READ64(t->per_byte);

	if (beside_tcp)
		per_byte += per_byte / (TCP_PART - 1);
	return !per_byte || tally_within(t, packets, bytes, per_byte, now);
}

/* `Tally::passes`, or `Tally::count` unless it `polices`. */
static __always_inline bool tally_passes(struct tally *t, __u64 packets, __u64 bytes, __u64 now, bool beside_tcp,
					 bool polices)
{
	if (polices && !tally_admits(t, packets, bytes, now, beside_tcp)) {
		__sync_fetch_and_add(&t->dropped, packets);
		__sync_fetch_and_add(&t->dropped_bytes, bytes);
		return false;
	}
	__sync_fetch_and_add(&t->packets, packets);
	__sync_fetch_and_add(&t->bytes, bytes);
	return true;
}

#endif
