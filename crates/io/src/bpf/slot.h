/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What becomes of a segment of a controlled flow: weir_core::steer in C, function by function, with
 * the same names and the same order of tests. Change both; the differential test compares them.
 */
#ifndef WEIR_SLOT_H
#define WEIR_SLOT_H

#define SLOT_SCALED (1U << 0)
#define SLOT_TIMESTAMPS (1U << 1)
#define SLOT_SIZED (1U << 2)
#define SLOT_SCALE_SHIFT 24

#define SEQ_AHEAD (1 << 16)
#define SEQ_BEHIND (1 << 22)
#define PURE_BEHIND (1 << 17)
#define ACK_RANGE (1 << 30)
#define DOUBT_SAMPLE 16

#define TCP_PSH 0x08
#define TCP_ACK 0x10
#define TCP_URG 0x20

/* Another CPU may change any field at any time: each is read once, here. */
#define READ(place) (*(volatile __u32 *)&(place))
#define WRITE(place, value) (*(volatile __u32 *)&(place) = (value))

/* Who fails to move a number so often has lost to as many others, all of whom moved it forward. */
#define ATTEMPTS 8

enum act { ACT_PASS, ACT_COPY, ACT_TAKE, ACT_SET_BACK };

struct action {
	enum act act;
	__u32 ack;
	__u16 window;
	bool report;
	bool doubted;
	bool granted;
};

static __always_inline bool after(__u32 a, __u32 b)
{
	return (__s32)(a - b) > 0;
}

/* Verified once, for all that call it: the loop is one of many ways through each of them otherwise. */
__noinline int push(__u32 *place, __u32 to)
{
	__u32 old;

	if (!place)
		return 0;
	old = READ(*place);
	for (int i = 0; i < ATTEMPTS && after(to, old); i++) {
		__u32 now = __sync_val_compare_and_swap(place, old, to);

		if (now == old)
			return 1;
		old = now;
	}
	return 0;
}

static __always_inline void advance(__u32 *place, __u32 to)
{
	if (after(to, READ(*place)))
		push(place, to);
}

static __always_inline bool slot_has(struct slot *slot, __u32 flags)
{
	return (READ(slot->flags) & flags) == flags;
}

static __always_inline __u32 slot_scale(struct slot *slot)
{
	__u32 scale = READ(slot->flags) >> SLOT_SCALE_SHIFT;

	return scale < 14 ? scale : 14;
}

static __always_inline __u32 seen_end(const struct seen *seen)
{
	return seen->seq + seen->payload + (seen->flags & TCP_FIN ? 1 : 0);
}

static __always_inline bool seen_is_pure(const struct seen *seen)
{
	return !seen->payload && !(seen->flags & (TCP_FIN | TCP_URG));
}

static __always_inline bool slot_believes(struct slot *slot, const struct seen *seen)
{
	__s32 ahead = seen->seq - READ(slot->nxt), progress;

	if (ahead > SEQ_AHEAD || ahead < -(seen_is_pure(seen) ? PURE_BEHIND : SEQ_BEHIND))
		return false;
	progress = seen->ack - READ(slot->tx);
	/* As `unsigned_abs`: the most negative number is far, too. */
	if (!slot_has(slot, SLOT_SCALED))
		return progress <= ACK_RANGE && progress >= -ACK_RANGE;
	return progress >= -(0xffff << slot_scale(slot)) && !after(seen->ack, READ(slot->edge));
}

/*
 * Does a segment, which is believed, tell more than that data passes? Without payload it does. With payload, what it says
 * must be new: its checksum is worth a look.
 */
static __always_inline bool slot_tells(struct slot *slot, const struct seen *seen)
{
	__u32 edge = seen->ack + ((__u32)seen->window << slot_scale(slot));

	return !seen->payload || seen->flags & (TCP_FIN | TCP_URG) || seen->sack ||
	       seen->window != READ(slot->window) || after(seen->ack, READ(slot->ack)) ||
	       (slot_has(slot, SLOT_SCALED) && after(edge, READ(slot->edge)));
}

/* ... or, if it passes as it came, does its sender hear what it did not know? */
static __always_inline bool slot_passes_on(struct slot *slot, const struct seen *seen)
{
	return slot_tells(slot, seen) || after(seen->ack, READ(slot->tx));
}

static __always_inline void slot_note(struct slot *slot, const struct seen *seen)
{
	bool behind = after(READ(slot->nxt), seen->seq);

	/* Spares others the line of memory when there is nothing to write. */
	if (READ(slot->doubts))
		WRITE(slot->doubts, 0);
	if (seen_end(seen) != seen->seq)
		advance(&slot->nxt, seen_end(seen));
	if (seen->has_ts)
		advance(&slot->ts, seen->ts);
	advance(&slot->ack, seen->ack);
	if (slot_has(slot, SLOT_SCALED))
		advance(&slot->edge, seen->ack + ((__u32)seen->window << slot_scale(slot)));
	if (!behind && READ(slot->window) != seen->window)
		WRITE(slot->window, seen->window);
}

static __always_inline void slot_note_passed(struct slot *slot, const struct seen *seen)
{
	slot_note(slot, seen);
	advance(&slot->tx, seen->ack);
	if (slot_has(slot, SLOT_SCALED))
		advance(&slot->sent, seen->ack + ((__u32)seen->window << slot_scale(slot)));
	if (seen->flags & TCP_FIN)
		WRITE(slot->ended, 1);
}

static __always_inline __u32 div_ceil(__u32 value, __u32 scale)
{
	return (value + (1U << scale) - 1) >> scale;
}

static __always_inline __u32 ahead_of(__u32 edge, __u32 ack)
{
	__s32 ahead = edge - ack;

	return ahead > 0 ? ahead : 0;
}

/* `weir_core::ack::window::fit`. */
static __always_inline __u16 fit(__u32 ack, __u32 scale, __u32 goal, __u32 own)
{
	__u32 field = div_ceil(ahead_of(goal, ack), scale), most = ahead_of(own, ack) >> scale;

	if (field > most)
		field = most;
	return field < 0xffff ? field : 0xffff;
}

static __always_inline __u16 slot_bounded(struct slot *slot, const struct seen *seen)
{
	__u32 scale = slot_scale(slot), width = READ(slot->width), sent = READ(slot->sent);
	__u32 own = seen->ack + ((__u32)seen->window << scale), goal = seen->ack + width;

	if (!slot_has(slot, SLOT_SCALED | SLOT_SIZED) || !width || !seen->window)
		return seen->window;
	return fit(seen->ack, scale, after(sent, goal) ? sent : goal, own);
}

static __always_inline void slot_bypass(struct slot *slot, const struct seen *seen, struct action *to)
{
	__u16 window;

	to->act = ACT_PASS;
	if (!(seen->flags & TCP_ACK) || !slot_believes(slot, seen))
		return;
	slot_note(slot, seen);
	advance(&slot->tx, seen->ack);
	if (seen->flags & TCP_FIN)
		WRITE(slot->ended, 1);
	window = slot_bounded(slot, seen);
	if (slot_has(slot, SLOT_SCALED))
		advance(&slot->sent, seen->ack + ((__u32)window << slot_scale(slot)));
	if (window == seen->window)
		return;
	to->act = ACT_SET_BACK;
	to->ack = seen->ack;
	to->window = window;
	to->report = false;
}

static __always_inline __u16 slot_window_of(struct slot *slot, const struct seen *seen, __u32 ack)
{
	__u32 scale = slot_scale(slot), own = seen->ack + ((__u32)seen->window << scale);
	__u16 field;

	if (slot_has(slot, SLOT_SIZED))
		return fit(ack, scale, READ(slot->sent), own);
	field = fit(ack, scale, own, own);
	advance(&slot->sent, ack + ((__u32)field << scale));
	return field;
}

static __always_inline void slot_set_back(struct slot *slot, const struct seen *seen, __u32 ack, bool report,
					  struct action *to)
{
	__u16 window = seen->window;

	if (slot_has(slot, SLOT_SCALED) && window)
		window = slot_window_of(slot, seen, ack);
	if (ack == seen->ack && window == seen->window) {
		to->act = ACT_PASS;
		return;
	}
	to->act = ACT_SET_BACK;
	to->ack = ack;
	to->window = window;
	to->report = report;
}

/* The return value makes the exchange a full barrier; `Slot::grant` has the other one. */
static __always_inline void slot_take(struct slot *slot, __u64 at)
{
	__sync_lock_test_and_set(&slot->waits, (__u32)at | 1);
	if (READ(slot->grant))
		WRITE(slot->grant, 0);
}

static __always_inline bool slot_grants(struct slot *slot, const struct seen *seen)
{
	__u32 to = READ(slot->grant);

	return to && seen->plain && (seen->flags & ~TCP_PSH) == TCP_ACK && seen->window && READ(slot->window) &&
	       seen->seq == READ(slot->nxt) && after(seen->ack, READ(slot->tx)) && !after(seen->ack, to);
}

/* `Slot::doubt` */
static __always_inline void slot_doubt(struct slot *slot, struct action *to)
{
	to->act = __sync_fetch_and_add(&slot->doubts, 1) % DOUBT_SAMPLE == 0 ? ACT_COPY : ACT_PASS;
	to->doubted = true;
}

/* `Slot::believed` */
static __always_inline void slot_believed(struct slot *slot, const struct seen *seen, struct action *to)
{
	__u32 tx, nxt;
	bool opens, unknown, progress, probe;

	to->act = ACT_PASS;
	tx = READ(slot->tx);
	nxt = READ(slot->nxt);
	progress = after(seen->ack, tx);
	probe = seen->seq == nxt - 1;
	if (after(nxt, seen->seq) && !after(seen_end(seen), nxt) && (probe || !seen_is_pure(seen))) {
		if (seen->has_ts && seen_end(seen) == nxt)
			advance(&slot->ts, seen->ts);
		slot_set_back(slot, seen, progress ? tx : seen->ack, false, to);
		return;
	}
	if (seen->flags & TCP_FIN && !READ(slot->ended)) {
		slot_note_passed(slot, seen);
		to->act = ACT_COPY;
		return;
	}
	if (slot_grants(slot, seen)) {
		to->granted = true;
		slot_bypass(slot, seen, to);
		return;
	}
	if (seen_is_pure(seen)) {
		slot_note(slot, seen);
		to->act = ACT_TAKE;
		return;
	}
	opens = !READ(slot->window) && seen->window;
	unknown = progress && !slot_has(slot, SLOT_SCALED);
	if (seen->sack || !seen->window || opens || unknown) {
		slot_bypass(slot, seen, to);
		to->report = true;
		if (to->act != ACT_SET_BACK)
			to->act = ACT_COPY;
		return;
	}
	slot_note(slot, seen);
	tx = READ(slot->tx);
	progress = after(seen->ack, tx);
	slot_set_back(slot, seen, progress ? tx : seen->ack, progress, to);
}

/* Of a RST. */
static __always_inline bool slot_takes_reset(struct slot *slot, const struct seen *seen)
{
	return seen->seq == READ(slot->nxt) && after(READ(slot->ack), READ(slot->tx));
}

struct stamped {
	__u32 seq;
	__u32 ts;
	__u16 window;
};

/* False: something newer has left. */
static __always_inline bool slot_stamp(struct slot *slot, __u32 ack, __u16 window, struct stamped *to)
{
	__u32 tx = READ(slot->tx);
	__u16 field = window;

	if (after(tx, ack) || (READ(slot->ended) && !after(ack, tx)))
		return false;
	advance(&slot->tx, ack);
	if (slot_has(slot, SLOT_SCALED) && window) {
		__u32 scale = slot_scale(slot), sent = READ(slot->sent);
		bool kept = !slot_has(slot, SLOT_SIZED) && window == READ(slot->window) &&
			    !after(READ(slot->ack), ack);

		if (!kept && after(sent, ack + ((__u32)field << scale))) {
			__u16 fits = fit(ack, scale, sent, READ(slot->edge));

			if (fits > field)
				field = fits;
		}
		advance(&slot->sent, ack + ((__u32)field << scale));
	}
	to->seq = READ(slot->nxt);
	to->ts = READ(slot->ts);
	to->window = field;
	return true;
}

#endif
