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

#define CLOCK_SLACK (1 << 10)
#define CLOCK_WITNESSES 3
#define CLOCK_NEAR (1 << 20)
#define CLOCK_BEHIND 8
#define CLOCK_OVERTAKEN 96
#define CLOCK_FAST_SHIFT 10
#define CLOCK_BEHIND_UNIT (1U << 8)
#define CLOCK_FAST (1U << 16)

#define LAST_ENDED (1U << 16)
#define LAST_OWN (1U << 17)

#define TCP_PSH 0x08
#define TCP_ACK 0x10
#define TCP_URG 0x20

/* Another CPU may change any field at any time: each is read once, here. */
#define READ(place) (*(volatile __u32 *)&(place))
#define READ16(place) (*(volatile __u16 *)&(place))
#define READ64(place) (*(volatile __u64 *)&(place))
#define WRITE(place, value) (*(volatile __u32 *)&(place) = (value))
#define WRITE64(place, value) (*(volatile __u64 *)&(place) = (value))

/*
 * What is read behind it is read after what is read in front of it. Programs have no such barrier; loads keep
 * their order on x86, and elsewhere an atomic addition that returns a value is a full barrier.
 */
#if defined(WEIR_ORDERED_LOADS)
#define READ_BARRIER(slot) asm volatile("" ::: "memory")
#else
#define READ_BARRIER(slot) ((void)__sync_fetch_and_add(&(slot)->taken, 0))
#endif

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

/* `Numbers`, with the tag under which they were read. */
struct numbers_of {
	__u32 tag;
	__u32 flags;
	__u32 tx;
	__u32 sent;
	__u32 ack;
	__u32 edge;
	__u32 nxt;
	__u32 turn;
	__u16 window;
	bool ended;
	bool own;
};

static __always_inline bool after(__u32 a, __u32 b)
{
	return (__s32)(a - b) > 0;
}

static __always_inline __u32 newest(__u32 a, __u32 b)
{
	return after(a, b) ? a : b;
}

static __always_inline __u64 pair(__u32 high, __u32 low)
{
	return (__u64)high << 32 | low;
}

/*
 * What follows is verified once, for all that call it: the loops are among many ways through each of them
 * otherwise. A word stays as it is if the slot is opened meanwhile: the tag is looked at behind the word, and
 * the exchange fails if that is another one then.
 */

/* `Slot::tell`, and `Slot::say` if `said`. */
__noinline int push_pair(struct slot *slot, __u32 tag, bool said, __u32 ack, __u32 edge)
{
	__u64 *word, old, new, now;

	if (!slot)
		return 0;
	word = said ? &slot->hooks.said : &slot->hooks.told;
	old = READ64(*word);
	for (int i = 0; i < ATTEMPTS; i++) {
		new = pair(newest(edge, old >> 32), newest(ack, old));
		if (new == old)
			return 1;
		READ_BARRIER(slot);
		if (READ(slot->tag) != tag)
			return 0;
		now = __sync_val_compare_and_swap(word, old, new);
		if (now == old)
			return 1;
		old = now;
	}
	return 0;
}

/* `Slot::pass` */
__noinline int push_next(struct slot *slot, __u32 tag, __u32 turn, __u32 nxt)
{
	__u64 old, new, now;

	if (!slot)
		return 0;
	old = READ64(slot->hooks.next);
	for (int i = 0; i < ATTEMPTS; i++) {
		__u32 then = old >> 32;

		if (then == turn)
			new = pair(turn, newest(nxt, old));
		else if (after(turn, then))
			new = pair(turn, newest(nxt, READ64(slot->gateway.next)));
		else
			return 0;
		if (new == old)
			return 1;
		READ_BARRIER(slot);
		if (READ(slot->tag) != tag)
			return 0;
		now = __sync_val_compare_and_swap(&slot->hooks.next, old, new);
		if (now == old)
			return 1;
		old = now;
	}
	return 0;
}

/* `Slot::set_clock`; `back`: whatever is known by now. */
__noinline int push_clock(struct slot *slot, __u32 tag, __u32 at, __u32 ts, bool back)
{
	__u64 old, new, now;

	if (!slot)
		return 0;
	old = READ64(slot->hooks.clock);
	for (int i = 0; i < ATTEMPTS; i++) {
		if (!back && after(old, ts))
			return 0;
		new = pair(at, ts);
		if (new == old)
			return 1;
		READ_BARRIER(slot);
		if (READ(slot->tag) != tag)
			return 0;
		now = __sync_val_compare_and_swap(&slot->hooks.clock, old, new);
		if (now == old)
			return 1;
		old = now;
	}
	return 0;
}

/* `Slot::note_last`; a window above 0xffff is none. */
__noinline int push_last(struct slot *slot, __u32 tag, __u32 window, bool ended)
{
	__u32 old, new, now;

	if (!slot)
		return 0;
	old = READ(slot->last);
	for (int i = 0; i < ATTEMPTS; i++) {
		__u32 kept = old & LAST_OWN ? old : READ(slot->first);

		new = LAST_OWN | (kept & LAST_ENDED) | (window > 0xffff ? kept & 0xffff : window);
		if (ended)
			new |= LAST_ENDED;
		if (new == old)
			return 1;
		READ_BARRIER(slot);
		if (READ(slot->tag) != tag)
			return 0;
		now = __sync_val_compare_and_swap(&slot->last, old, new);
		if (now == old)
			return 1;
		old = now;
	}
	return 0;
}

/* `Slot::clock`: the newest TSval, and above it when it came. */
static __always_inline __u64 slot_clock(struct slot *slot)
{
	bool own = READ(slot->last) & LAST_OWN;
	__u64 ours, theirs;

	READ_BARRIER(slot);
	ours = READ64(slot->hooks.clock);
	if (own)
		return ours;
	theirs = READ64(slot->gateway.clock);
	return after(theirs, ours) ? theirs : ours;
}

static __always_inline __u32 clock_elapsed(__u32 now, __u32 then)
{
	return after(now, then) ? now - then : 0;
}

static __always_inline __u32 clock_bound(__u32 elapsed, bool fast)
{
	__u32 ticks = (elapsed < 1U << 29 ? elapsed : 1U << 29) * 2 + CLOCK_SLACK;
	__u32 shift = fast ? CLOCK_FAST_SHIFT : 0;

	return ticks > (1U << 30) >> shift ? 1U << 30 : ticks << shift;
}

/* `Slot::doubt_ts` */
__noinline int doubt_ts(struct slot *slot, __u32 tag, __u32 ts, __u32 at, bool summed)
{
	__u32 since, now, witnesses, fast, count;
	__u64 clock;

	if (!slot)
		return 0;
	clock = slot_clock(slot);
	now = clock;
	since = clock >> 32;
	witnesses = READ(slot->witnesses);
	fast = witnesses & CLOCK_FAST;
	if (ts == now) {
		WRITE(slot->witnesses, fast);
	} else if (after(ts, now)) {
		count = ts - READ(slot->candidate) <= CLOCK_NEAR ? witnesses % CLOCK_BEHIND_UNIT + 1 : 1;
		WRITE(slot->candidate, ts);
		if (count < CLOCK_WITNESSES) {
			WRITE(slot->witnesses, fast | count);
			return 0;
		}
		if (ts - now <= clock_bound(clock_elapsed(at, since), true))
			fast = CLOCK_FAST;
		WRITE(slot->witnesses, fast);
		push_clock(slot, tag, at, ts, false);
	} else if (summed) {
		count = witnesses / CLOCK_BEHIND_UNIT % 256 + 1;
		if (count > CLOCK_BEHIND)
			count = CLOCK_BEHIND;
		if (count == 1)
			WRITE(slot->behind_since, at);
		if (count < CLOCK_BEHIND || clock_elapsed(at, READ(slot->behind_since)) < CLOCK_OVERTAKEN) {
			WRITE(slot->witnesses, fast | count * CLOCK_BEHIND_UNIT);
			return 0;
		}
		WRITE(slot->witnesses, 0);
		push_clock(slot, tag, at, ts, true);
	}
	return 0;
}

/* `Slot::note_ts` */
static __always_inline void slot_note_ts(struct slot *slot, __u32 tag, const struct seen *seen, bool summed)
{
	__u64 clock = slot_clock(slot);
	__u32 witnesses = READ(slot->witnesses);
	__s32 ahead = seen->ts - (__u32)clock;

	if (ahead > 0 && (__u32)ahead <= clock_bound(clock_elapsed(seen->at, clock >> 32), witnesses & CLOCK_FAST)) {
		push_clock(slot, tag, seen->at, seen->ts, false);
		if (witnesses & ~CLOCK_FAST)
			WRITE(slot->witnesses, witnesses & CLOCK_FAST);
	} else if (ahead || witnesses & ~CLOCK_FAST) {
		doubt_ts(slot, tag, seen->ts, seen->at, summed);
	}
}

/*
 * Number and edge of the hooks' word, or of the gateway's where that is ahead, unless the hooks' is their
 * own.
 */
static __always_inline __u64 newest_pair(bool own, __u64 ours, __u64 theirs)
{
	return own ? ours : pair(newest(ours >> 32, theirs >> 32), newest(ours, theirs));
}

static __always_inline __u32 newest_next(bool own, __u64 ours, __u64 theirs)
{
	if (ours >> 32 != theirs >> 32)
		return theirs;
	return own ? (__u32)ours : newest(ours, theirs);
}

/* `Slot::numbers`. False: they are of another use, or of two. */
static __always_inline bool slot_read(struct slot *slot, __u32 tag, struct numbers_of *n)
{
	__u32 last = READ(slot->last), first = READ(slot->first);
	bool own = last & LAST_OWN;
	__u64 told, said, next;

	READ_BARRIER(slot);
	told = newest_pair(own, READ64(slot->hooks.told), READ64(slot->gateway.told));
	said = newest_pair(own, READ64(slot->hooks.said), READ64(slot->gateway.said));
	next = READ64(slot->gateway.next);
	n->tag = tag;
	n->flags = READ(slot->flags);
	n->tx = told;
	n->sent = told >> 32;
	n->ack = said;
	n->edge = said >> 32;
	n->turn = next >> 32;
	n->nxt = newest_next(own, READ64(slot->hooks.next), next);
	n->window = own ? last : first;
	n->own = own;
	n->ended = (last | first) & LAST_ENDED;
	READ_BARRIER(slot);
	return READ(slot->tag) == tag;
}

static __always_inline bool has(const struct numbers_of *n, __u32 flags)
{
	return (n->flags & flags) == flags;
}

static __always_inline __u32 scale_of(const struct numbers_of *n)
{
	__u32 scale = n->flags >> SLOT_SCALE_SHIFT;

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

static __always_inline bool slot_believes(const struct numbers_of *n, const struct seen *seen)
{
	__s32 ahead = seen->seq - n->nxt, progress;

	if (ahead > SEQ_AHEAD || ahead < -(seen_is_pure(seen) ? PURE_BEHIND : SEQ_BEHIND))
		return false;
	progress = seen->ack - n->tx;
	/* As `unsigned_abs`: the most negative number is far, too. */
	if (!has(n, SLOT_SCALED))
		return progress <= ACK_RANGE && progress >= -ACK_RANGE;
	return progress >= -(0xffff << scale_of(n)) && !after(seen->ack, n->edge);
}

/* The right edge of an acknowledgement; where it is not known one that moves nothing. */
static __always_inline __u32 edge_of(const struct numbers_of *n, __u32 ack, __u32 window, __u32 known)
{
	return has(n, SLOT_SCALED) ? ack + (window << scale_of(n)) : known;
}

/*
 * Does a segment, which is believed, tell more than that data passes? Without payload it does. With payload,
 * what it says must be new: its checksum is worth a look.
 */
static __always_inline bool slot_tells(const struct numbers_of *n, const struct seen *seen)
{
	return !seen->payload || seen->flags & (TCP_FIN | TCP_URG) || seen->sack || seen->window != n->window ||
	       after(seen->ack, n->ack) || after(edge_of(n, seen->ack, seen->window, n->edge), n->edge);
}

/* ... or, if it passes as it came, does its sender hear what it did not know? */
static __always_inline bool slot_passes_on(const struct numbers_of *n, const struct seen *seen)
{
	return slot_tells(n, seen) || after(seen->ack, n->tx);
}

/* `Slot::begin_own` */
__noinline int begin_own(struct slot *slot, const struct numbers_of *n)
{
	__u64 clock;

	if (!slot || !n)
		return 0;
	clock = slot_clock(slot);
	push_pair(slot, n->tag, false, n->tx, n->sent);
	push_pair(slot, n->tag, true, n->ack, n->edge);
	push_next(slot, n->tag, n->turn, n->nxt);
	push_clock(slot, n->tag, clock >> 32, clock, false);
	push_last(slot, n->tag, 1U << 16, false);
	return 1;
}

static __always_inline void slot_tell(struct slot *slot, const struct numbers_of *n, __u32 ack, __u32 edge)
{
	if (after(ack, n->tx) || after(edge, n->sent))
		push_pair(slot, n->tag, false, ack, edge);
}

static __always_inline void slot_note(struct slot *slot, const struct numbers_of *n, const struct seen *seen,
				      bool ended)
{
	__u32 window = after(n->nxt, seen->seq) ? n->window : seen->window;
	__u32 edge = edge_of(n, seen->ack, seen->window, n->edge);

	/* Spares others the line of memory when there is nothing to write. */
	if (READ(slot->doubts))
		WRITE(slot->doubts, 0);
	if (!n->own)
		begin_own(slot, n);
	if (seen_end(seen) != seen->seq && after(seen_end(seen), n->nxt))
		push_next(slot, n->tag, n->turn, seen_end(seen));
	if (seen->has_ts)
		slot_note_ts(slot, n->tag, seen, !seen->payload);
	if (after(seen->ack, n->ack) || after(edge, n->edge))
		push_pair(slot, n->tag, true, seen->ack, edge);
	if (window != n->window || ended)
		push_last(slot, n->tag, window != n->window ? window : 1U << 16, ended);
}

static __always_inline void slot_note_passed(struct slot *slot, const struct numbers_of *n,
					     const struct seen *seen)
{
	slot_note(slot, n, seen, seen->flags & TCP_FIN);
	slot_tell(slot, n, seen->ack, edge_of(n, seen->ack, seen->window, n->sent));
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

static __always_inline __u16 slot_bounded(const struct numbers_of *n, const struct seen *seen, __u32 width)
{
	__u32 scale = scale_of(n);
	__u32 own = seen->ack + ((__u32)seen->window << scale), goal = seen->ack + width;

	if (!has(n, SLOT_SCALED | SLOT_SIZED) || !width || !seen->window)
		return seen->window;
	return fit(seen->ack, scale, after(n->sent, goal) ? n->sent : goal, own);
}

/* `Slot::bypass` of what is believed; a window within `width`. */
static __always_inline void slot_bypass(struct slot *slot, const struct numbers_of *n, const struct seen *seen,
					__u32 width, struct action *to)
{
	__u16 window = slot_bounded(n, seen, width);

	to->act = ACT_PASS;
	slot_note(slot, n, seen, seen->flags & TCP_FIN);
	slot_tell(slot, n, seen->ack, edge_of(n, seen->ack, window, n->sent));
	if (window == seen->window)
		return;
	to->act = ACT_SET_BACK;
	to->ack = seen->ack;
	to->window = window;
	to->report = false;
}

static __always_inline __u16 slot_window_of(struct slot *slot, const struct numbers_of *n, const struct seen *seen,
					    __u32 ack)
{
	__u32 scale = scale_of(n), own = seen->ack + ((__u32)seen->window << scale);
	__u16 field;

	if (has(n, SLOT_SIZED))
		return fit(ack, scale, n->sent, own);
	field = fit(ack, scale, own, own);
	slot_tell(slot, n, n->tx, ack + ((__u32)field << scale));
	return field;
}

static __always_inline void slot_set_back(struct slot *slot, const struct numbers_of *n, const struct seen *seen,
					  __u32 ack, bool report, struct action *to)
{
	__u16 window = seen->window;

	if (has(n, SLOT_SCALED) && window)
		window = slot_window_of(slot, n, seen, ack);
	if (ack == seen->ack && window == seen->window) {
		to->act = ACT_PASS;
		return;
	}
	to->act = ACT_SET_BACK;
	to->ack = ack;
	to->window = window;
	to->report = report;
}

static __always_inline void slot_take(struct slot *slot)
{
	__sync_fetch_and_add(&slot->taken, 1);
}

static __always_inline bool slot_grants(struct slot *slot, const struct numbers_of *n, const struct seen *seen)
{
	__u64 grant = READ64(slot->grant);
	__u32 to = grant;

	return to && grant >> 32 == READ(slot->taken) && seen->plain && (seen->flags & ~TCP_PSH) == TCP_ACK &&
	       seen->window && n->window && seen->seq == n->nxt && after(seen->ack, n->tx) && !after(seen->ack, to);
}

/* `Slot::doubt` */
static __always_inline void slot_doubt(struct slot *slot, struct action *to)
{
	to->act = __sync_fetch_and_add(&slot->doubts, 1) % DOUBT_SAMPLE == 0 ? ACT_COPY : ACT_PASS;
	to->doubted = true;
}

/* `Slot::believed` */
static __always_inline void slot_believed(struct slot *slot, struct numbers_of *n, const struct seen *seen,
					  struct action *to)
{
	bool progress = after(seen->ack, n->tx), probe = seen->seq == n->nxt - 1, opens, unknown;
	__u64 told;

	to->act = ACT_PASS;
	if (after(n->nxt, seen->seq) && !after(seen_end(seen), n->nxt) && (probe || !seen_is_pure(seen))) {
		if (seen->has_ts && seen_end(seen) == n->nxt)
			slot_note_ts(slot, n->tag, seen, false);
		slot_set_back(slot, n, seen, progress ? n->tx : seen->ack, false, to);
		return;
	}
	if (seen->flags & TCP_FIN && !n->ended) {
		slot_note_passed(slot, n, seen);
		to->act = ACT_COPY;
		return;
	}
	if (slot_grants(slot, n, seen)) {
		to->granted = true;
		slot_bypass(slot, n, seen, READ(slot->width), to);
		return;
	}
	if (seen_is_pure(seen)) {
		slot_note(slot, n, seen, false);
		to->act = ACT_TAKE;
		return;
	}
	opens = !n->window && seen->window;
	unknown = progress && !has(n, SLOT_SCALED);
	if (seen->sack || !seen->window || opens || unknown) {
		slot_bypass(slot, n, seen, READ(slot->width), to);
		to->report = true;
		if (to->act != ACT_SET_BACK)
			to->act = ACT_COPY;
		return;
	}
	slot_note(slot, n, seen, false);
	/* It is the hooks' own by now. */
	told = READ64(slot->hooks.told);
	n->tx = told;
	n->sent = told >> 32;
	progress = after(seen->ack, n->tx);
	slot_set_back(slot, n, seen, progress ? n->tx : seen->ack, progress, to);
}

/* Of a RST. */
static __always_inline bool slot_takes_reset(const struct numbers_of *n, const struct seen *seen)
{
	return seen->seq == n->nxt && after(n->ack, n->tx);
}

struct stamped {
	__u32 seq;
	__u32 ts;
	__u16 window;
};

/* False: something newer has left. */
static __always_inline bool slot_stamp(struct slot *slot, const struct numbers_of *n, __u32 ack, __u16 window,
				       struct stamped *to)
{
	__u32 edge = n->sent;
	__u16 field = window;

	if (after(n->tx, ack) || (n->ended && !after(ack, n->tx)))
		return false;
	if (has(n, SLOT_SCALED) && window) {
		__u32 scale = scale_of(n);
		bool kept = !has(n, SLOT_SIZED) && window == n->window && !after(n->ack, ack);

		if (!kept && after(n->sent, ack + ((__u32)field << scale))) {
			__u16 fits = fit(ack, scale, n->sent, n->edge);

			if (fits > field)
				field = fits;
		}
		edge = ack + ((__u32)field << scale);
	}
	slot_tell(slot, n, ack, edge);
	to->seq = newest_next(READ(slot->last) & LAST_OWN, READ64(slot->hooks.next), READ64(slot->gateway.next));
	to->ts = slot_clock(slot);
	to->window = field;
	return true;
}

#endif
