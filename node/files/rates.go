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
	return max(rate+(now-rate)/smoothing, 1)
}

// Rate is how many bytes a second came of files lately, from whomever, and how long ago the last did; 0: none came yet.
func (t *Topic) Rate() (rate int64, ago time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.rates.all.rate, t.in.Clock.Now().Awake - t.rates.all.last
}

// RateFrom is Rate of what one partner gave.
func (t *Topic) RateFrom(p workflow.PartnerID) (rate int64, ago time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	x := t.rates.of[p]
	return x.rate, t.in.Clock.Now().Awake - x.last
}
