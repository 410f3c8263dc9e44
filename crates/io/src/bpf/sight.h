/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What is measured of a flow: weir_core::quality::Sight in C, with the same names and the same order of
 * tests. Change both; a test compares them.
 */
#ifndef WEIR_SIGHT_H
#define WEIR_SIGHT_H

#include "giant.h"
#include "packet.h"
#include "slot.h"

/* Of the flow of each slot. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sight);
} sights SEC(".maps");

enum stage { STAGE_NONE, STAGE_BEGINS, STAGE_DATA, STAGE_HELD, STAGE_LEFT, STAGE_ECHOED, STAGE_DONE };

#define SIGHT_PASSED (1U << 31)
#define SIGHT_LONGEST (1U << 22)
#define SIGHT_OVERTAKEN 3
#define SIGHT_BEHIND (1 << 22)

/* `units` of now */
static __always_inline __u32 sight_now(void)
{
	return bpf_ktime_get_ns() >> 10;
}

/* `Told::allows`, of what the slot knows */
static __always_inline bool sight_allows(struct slot *slot, __u32 end)
{
	bool own = READ(slot->last) & LAST_OWN;
	__u64 said = newest_pair(own, READ64(slot->hooks.said), READ64(slot->gateway.said));

	if (READ(slot->flags) & SLOT_SCALED)
		return !after(end, said >> 32);
	return (__s32)(end - (__u32)said) <= 1 << 30;
}

/* `Sight::note_echo`: TSecr is behind TSval. */
static __always_inline void sight_note_echo(struct __sk_buff *skb, struct packet *p, struct sight *s)
{
	__be32 echo;

	read_options(skb, p);
	if (!p->seen.has_ts || bpf_skb_load_bytes(skb, p->ts_at + 4, &echo, sizeof(echo)))
		return;
	if (after(READ(s->number), bpf_ntohl(echo)))
		return;
	WRITE(s->number, sight_now());
	WRITE(s->stage, STAGE_ECHOED);
}

enum repeat { REPEAT_NONE, REPEAT_AGAIN, REPEAT_OVERTAKEN };

/* `Sight::old`. Returns what is found, and above that the packets. */
static __always_inline __u64 sight_old(struct sight *s, struct packet *p, __u32 packets, __u32 end)
{
	__u32 payload = p->seen.payload, seq = p->seen.seq, common = end - seq, each, word, hole;
	__u16 since;

	if (payload == 1 && seq + 1 == end)
		return REPEAT_NONE;
	__sync_val_compare_and_swap(&s->stage, STAGE_DATA, STAGE_NONE);
	if (common > payload)
		common = payload;
	each = (payload + packets - 1) / packets;
	if (!each)
		each = 1;
	packets = (common + each - 1) / each;
	word = READ(s->reordered);
	hole = READ(s->hole);
	since = (sight_now() >> 10) - (word >> 16);
	if (hole == seq)
		WRITE(s->hole, seq + common);
	if (hole == seq && word >> 16 && since < SIGHT_OVERTAKEN) {
		__u32 count = (word & 0xffff) + packets;

		WRITE(s->reordered, (word & 0xffff0000) | (count < 0xffff ? count : 0xffff));
		return REPEAT_OVERTAKEN | (__u64)packets << 32;
	}
	__sync_fetch_and_add(&s->repeated, packets);
	return REPEAT_AGAIN | (__u64)packets << 32;
}

static __always_inline void sight_note_hole(struct sight *s, __u32 from)
{
	__u32 at = sight_now() >> 10 & 0xffff;

	WRITE(s->hole, from);
	WRITE(s->reordered, (READ(s->reordered) & 0xffff) | (at ? at : 1) << 16);
}

static __always_inline void sight_begin_with(struct sight *s, __u32 end)
{
	if (READ(s->stage) != STAGE_NONE ||
	    __sync_val_compare_and_swap(&s->stage, STAGE_NONE, STAGE_BEGINS) != STAGE_NONE)
		return;
	WRITE(s->number, end);
	WRITE(s->at, sight_now());
	WRITE(s->stage, STAGE_DATA);
}

/* `Sight::follows` */
static __always_inline bool sight_follows(struct sight *s, const struct packet *p)
{
	__u32 stage = READ(s->stage);

	if (stage == STAGE_NONE || stage == STAGE_LEFT || READ(s->end) != p->seen.seq)
		return false;
	WRITE(s->end, p->seen.seq + p->seen.payload);
	return true;
}

/*
 * `Sight::data`: a segment of data comes of the flow of this slot, of whatever becomes of it. Returns what is
 * found, and above that the packets. Verified once.
 */
__noinline __u64 sight_data(struct __sk_buff *skb, struct packet *p, __u32 number)
{
	struct sight *s = bpf_map_lookup_elem(&sights, &number);
	__u32 packets, end, last;
	__u64 repeat = REPEAT_NONE;
	struct slot *slot;

	/* The slot's lines of memory are not asked for in vain. */
	if (!p || !s || sight_follows(s, p))
		return REPEAT_NONE;
	slot = bpf_map_lookup_elem(&slots, &number);
	if (!slot)
		return REPEAT_NONE;
	packets = packets_of(skb, p->l4 + sizeof(struct tcp) + p->options);
	end = READ(s->end);
	last = p->seen.seq + p->seen.payload;
	if (!sight_allows(slot, last) || (__s32)(end - p->seen.seq) > SIGHT_BEHIND)
		return REPEAT_NONE;
	if (READ(s->stage) == STAGE_LEFT)
		sight_note_echo(skb, p, s);
	if (after(end, p->seen.seq))
		repeat = sight_old(s, p, packets, end);
	if (!after(last, end))
		return repeat;
	if (after(p->seen.seq, end))
		sight_note_hole(s, end);
	WRITE(s->end, last);
	if (!repeat)
		sight_begin_with(s, last);
	return repeat;
}

/* `Sight::passes` */
static __always_inline void sight_passes(struct packet *p, __u32 number)
{
	struct sight *s = bpf_map_lookup_elem(&sights, &number);
	__u32 time, at;

	if (!s || READ(s->stage) != STAGE_DATA || after(READ(s->number), p->seen.ack))
		return;
	at = sight_now();
	time = at - READ(s->at);
	if (time > SIGHT_LONGEST) {
		WRITE(s->stage, STAGE_NONE);
		return;
	}
	WRITE(s->sample, SIGHT_PASSED | time);
	WRITE(s->at, at);
	if (p->seen.has_ts)
		WRITE(s->number, p->seen.ts);
	WRITE(s->stage, p->seen.has_ts ? STAGE_LEFT : STAGE_DONE);
}

#endif
