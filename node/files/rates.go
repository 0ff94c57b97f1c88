package files

import (
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// maxRates is of how many partners it is kept how quickly files come from them; of more those are forgotten from
// whom nothing came for longest.
const maxRates = 256

// rates are how quickly files came lately, in bytes a second: from each partner, and all together.
type rates struct {
	all linkRate // of a rate of 0: none came yet
	of  map[workflow.PartnerID]linkRate
}

// linkRate is how quickly files came from one partner, and when (Awake) one did last.
type linkRate struct {
	rate int64
	last time.Duration
}

// note adds that so many bytes came from a partner in such a time.
func (r *rates) note(from workflow.PartnerID, bytes int64, span, now time.Duration) {
	r.all = linkRate{measured(r.all.rate, bytes, span), now}
	if r.of == nil {
		r.of = map[workflow.PartnerID]linkRate{}
	}
	was, known := r.of[from]
	if !known && len(r.of) >= maxRates {
		oldest := from
		for p, x := range r.of {
			if oldest == from || x.last < r.of[oldest].last {
				oldest = p
			}
		}
		delete(r.of, oldest)
	}
	r.of[from] = linkRate{measured(was.rate, bytes, span), now}
}

// smoothing is the weight of the measurements before.
const smoothing = 4

// measured is a rate in bytes a second after so many bytes came in such a time; 0 stands for none yet.
func measured(rate, bytes int64, span time.Duration) int64 {
	if bytes <= 0 || span <= 0 {
		return rate
	}
	now := max(int64(float64(bytes)/span.Seconds()), 1)
	if rate == 0 {
		return now
	}
	if now < rate { // what a byte takes is averaged: a link that became slow is not hidden by how fast it was
		slower := smoothing / ((smoothing-1)/float64(rate) + 1/float64(now))
		return max(int64(slower), 1)
	}
	return max(rate+(now-rate)/smoothing, 1)
}

const (
	// underWayFrom is for how long a chunk has to be waited for before that says how quickly it comes.
	underWayFrom = time.Second
	// unseen is what may have come of it all the same.
	unseen = 32 << 10
)

// underWay is a rate while a chunk is waited for of which so many bytes came in such a time: what that says counts as
// soon as it is less, or nothing else is known.
func underWay(rate, bytes int64, span time.Duration) int64 {
	if span < underWayFrom {
		return rate
	}
	now := max(int64(float64(bytes+unseen)/span.Seconds()), 1)
	if rate == 0 {
		return now
	}
	return min(rate, now)
}

// Rate is how many bytes a second came of files lately, from whomever, and how long ago the last did; 0: none came yet.
func (t *Topic) Rate() (rate int64, ago time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.rates.all.rate, t.in.Clock.Now().Awake - t.rates.all.last
}

// RateFrom is Rate of what one partner gave, or is giving.
func (t *Topic) RateFrom(p workflow.PartnerID) (rate int64, ago time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now, x := t.in.Clock.Now().Awake, t.rates.of[p]
	in := t.intakes[p]
	if in == nil || in.waiting == 0 {
		return x.rate, now - x.last
	}
	last := max(x.last, in.at)
	if last == 0 {
		last = in.wait.since
	}
	return underWay(x.rate, in.bytes-in.wait.had, now-in.wait.since), now - last
}
