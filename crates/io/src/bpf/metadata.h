/* SPDX-License-Identifier: GPL-2.0 OR MIT OR Apache-2.0 */
/*
 * Metadata of the frames that go through user space: mark, priority, queue mapping and departure time.
 *
 * On the way to the engine a frame's mark is the number of a record in `arriving`. Of all metadata a packet
 * socket tells only the mark (SO_RCVMARK), and only the mark survives the internal pair
 * (`____dev_forward_skb()`).
 *
 * On the way back the departure time is the number of a record in `leaving`: SCM_TXTIME needs no privilege,
 * unlike SO_MARK and SO_PRIORITY. As a time it would be long past, so it does no harm where no hook reads it.
 * Redirection to ingress clears priority and time, but not tc_index: there the hook at ingress finds the
 * number.
 *
 * A packet socket counts all tags of a frame as part of its device's MTU, but for one that is no service tag
 * (`packet_snd()`). The kernel forwards longer frames, whose outer tag is beside their bytes. The engine
 * sends them without that tag, which is put back beside them.
 */
#ifndef WEIR_METADATA_H
#define WEIR_METADATA_H

#include "abi.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, LEAVING);
	__type(key, __u32);
	__type(value, struct outgoing);
} leaving SEC(".maps");

/* Number of the record of a frame that the engine sends; 0: it has none. */
static __always_inline __u32 leaving_number(struct __sk_buff *skb, const bool ingress)
{
	__u64 time = skb->tstamp;

	if (ingress)
		return skb->tc_index;
	return time <= LEAVING ? time : 0;
}

/*
 * Gives a frame that the engine sends its metadata. `inward`: it is then redirected to ingress. False: the
 * engine has none for it.
 */
static __always_inline bool restore_metadata(struct __sk_buff *skb, const bool ingress, bool inward)
{
	__u32 number = leaving_number(skb, ingress), place = number - 1;
	const struct outgoing *record;

	if (!number)
		return false;
	skb->tc_index = inward ? number : 0;
	record = bpf_map_lookup_elem(&leaving, &place);
	if (!record)
		return false;
	skb->mark = record->metadata.mark;
	skb->priority = record->metadata.priority;
	skb->queue_mapping = record->metadata.queue;
	if (!ingress)
		skb->tstamp = record->metadata.departure;
	/* It has none beside its bytes yet, so there is nothing to fail. */
	if (!ingress && record->tag_proto)
		bpf_skb_vlan_push(skb, record->tag_proto, record->tag);
	return true;
}

#endif
