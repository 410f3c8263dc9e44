/* SPDX-License-Identifier: GPL-2.0 OR MIT OR Apache-2.0 */
/*
 * Analysis of a chirp: pathChirp's excursions (Ribeiro et al. 2003, section 3), in gaps instead of rates,
 * over ACKs instead of packets. An ACK of several packets is one sample: the time of its last packet, and the
 * mean of the gaps before it. So delayed ACKs only make chirps coarser.
 */
#ifndef WEIR_CHIRP_ANALYSIS_H
#define WEIR_CHIRP_ANALYSIS_H

/*
 * Least length of an excursion that is no noise (pathChirp's L). An excursion ends when delay falls to its
 * maximum divided by F = 8/5.
 */
#define CHIRP_EXCURSION 5
#define CHIRP_F_NUM 8
#define CHIRP_F_DEN 5

/* Least rise of delay that counts. */
CHIRP_FN u32 chirp_noise(const struct chirp *c)
{
	return c->gap / 8;
}

/*
 * Returns the gap at which delay sets in. Packets sent `gap` apart met `rise` more delay from one to the
 * next, so the path let them out gap + rise apart. Noise must not make the result longer than the gap before,
 * which made no delay.
 */
CHIRP_FN u32 chirp_onset(const struct chirp *c, u32 gap, u32 rise, u32 before)
{
	u64 most;

	/* Where delay varies by itself, a rise says little. */
	if (chirp_rule(c, CHIRP_PLAIN) || c->jitter > c->gap / 2)
		return gap;
	most = (u64)before + chirp_noise(c);
	if ((u64)gap + rise < most)
		most = (u64)gap + rise;
	return most > gap ? (u32)most : gap;
}

/* Returns whether gaps fell at the real departures, except for a quarter of them. */
CHIRP_FN int chirp_falls(struct chirp *c)
{
	volatile struct chirp_count *count = &c->count;
	u32 noise = chirp_noise(c), i;

	count->wrong = 0;
	for (i = 2; i < CHIRP_LONGEST; i++) {
		if (i >= c->samples)
			break;
		if (c->sample[i].gap > c->sample[i - 1].gap + noise)
			count->wrong++;
	}
	return 4 * count->wrong <= c->samples;
}

/* Counts the next sample, with the round-trip time and the gap of the sample before. */
CHIRP_FN void chirp_vote(struct chirp *c, const struct chirp_sample *now, u32 before, u32 gap_before)
{
	volatile struct chirp_count *count = &c->count;
	u32 over = now->rtt > count->begin ? now->rtt - count->begin : 0;
	u32 fall = before > now->rtt ? before - now->rtt : 0;

	c->jitter = (u32)((15ull * c->jitter + fall) / 16);
	if (count->length && (u64)over * CHIRP_F_NUM <= (u64)count->most * CHIRP_F_DEN) {
		if (count->length >= CHIRP_EXCURSION) {
			count->votes += count->rising;
			count->voted += count->risen;
		}
		count->length = 0;
	}
	if (count->length) {
		count->length++;
		if (over > count->most)
			count->most = over;
		if (now->rtt > before) {
			count->rising += now->gap;
			count->risen++;
		}
	} else if (now->rtt > before && now->rtt - before > chirp_noise(c)) {
		count->length = 1;
		count->begin = before;
		count->most = now->rtt - before;
		count->onset = chirp_onset(c, now->gap, (now->rtt - before) / chirp_max(now->packets, 1), gap_before);
		count->rising = count->onset;
		count->risen = 1;
	}
}

/* Returns the mean of the votes of a chirp of two samples or more. */
CHIRP_FN u32 chirp_votes(struct chirp *c)
{
	volatile struct chirp_count *count = &c->count;
	u32 n = chirp_min(c->samples, CHIRP_LONGEST), last, i;

	count->votes = 0;
	count->voted = 0;
	count->length = 0;
	count->begin = 0;
	for (i = 1; i < CHIRP_LONGEST; i++) {
		if (i >= n)
			break;
		chirp_vote(c, &c->sample[i], c->sample[i - 1].rtt, i > 1 ? c->sample[i - 1].gap : 2 * c->sample[i].gap);
	}
	last = count->length ? count->onset : c->sample[(n - 1) & (CHIRP_LONGEST - 1)].gap;
	return (u32)((count->votes + (u64)(n - 1 - count->voted) * last) / chirp_max(n - 1, 1));
}

/* Returns the weight of an estimate as a shift: a half, and less when many chirps are in flight. */
CHIRP_FN u32 chirp_smoothing(const struct chirp *c)
{
	u32 flying = c->tail - c->head;

	if (chirp_rule(c, CHIRP_FIXED) || flying < 64)
		return 1;
	return flying < 256 ? 2 : 3;
}

/* Adds an estimate. A window lets at least two packets leave in a round trip. */
CHIRP_FN void chirp_estimate(struct chirp *c, u32 estimate)
{
	u32 shift = chirp_smoothing(c), error;

	estimate = chirp_clamp_gap(c->srtt ? chirp_min(estimate, c->srtt / 2) : estimate);
	error = estimate > c->gap ? estimate - c->gap : c->gap - estimate;
	if (estimate > c->gap)
		c->gap = chirp_clamp_gap((u64)c->gap + (error >> shift));
	else
		c->gap = chirp_clamp_gap(c->gap - (error >> shift));
	c->deviation = (u32)(((u64)c->deviation + error) / 2);
	c->chirps++;
}

/*
 * Concludes a chirp with the samples collected so far. Where no delay set in, the path has room for its
 * smallest gap and perhaps for more. If the host kept even that gap longer than the estimate, the chirp tells
 * nothing.
 */
CHIRP_PART chirp_conclude(struct chirp *c)
{
	u32 votes = 0;
	int tells = 0;

	if (CHIRP_ABSENT(c))
		return 0;
	if (chirp_thinned(c)) {
		votes = c->delivers;
		tells = c->met_queue;
	} else if (c->samples >= 3 && 2 * c->covered >= c->measures && chirp_falls(c)) {
		votes = chirp_votes(c);
		tells = !chirp_rule(c, CHIRP_BRIEF) || votes <= c->gap || c->count.voted || c->count.length;
	}
	if (tells)
		chirp_estimate(c, votes);
	else if (c->collecting && !chirp_thinned(c))
		c->unusable++;
	c->collecting = 0;
	c->samples = 0;
	c->covered = 0;
	return 0;
}

/* Collects a sample: an ACK's newest packet is `r`, and its round trip took `rtt`. */
CHIRP_FN void chirp_collect(struct chirp *c, const struct chirp_record *r, u32 rtt)
{
	u32 i, behind;

	if (c->collecting && c->collecting != r->chirp)
		chirp_conclude(c);
	if (!r->chirp)
		return;
	if (!c->collecting) {
		c->queue = (u32)(((u64)c->queue + chirp_over(c, rtt)) / 2);
		c->collecting = r->chirp;
		c->measures = r->of;
	}
	i = c->samples;
	behind = i && r->index > c->sample_index ? (u32)(r->index - c->sample_index) : 1u;
	if (i < CHIRP_LONGEST) {
		c->sample[i & (CHIRP_LONGEST - 1)].gap = i ? (r->sent - c->sample_sent) / behind : 0;
		c->sample[i & (CHIRP_LONGEST - 1)].packets = behind;
		c->sample[i & (CHIRP_LONGEST - 1)].rtt = rtt;
		c->samples = (u8)(i + 1);
		c->covered = (u8)(c->covered + behind);
	}
	c->sample_sent = r->sent;
	c->sample_index = r->index;
	if (r->index + 1u >= r->of)
		chirp_conclude(c);
}

#endif
