package aptitude

// Quality accumulates the quality metric of finished work (spec, Quality
// metric). The zero value is ready to use.
type Quality struct {
	Actual float64 // Q_actual: Σ suitability × conformance of those who did it
	Ideal  float64 // Q_ideal: Σ of the best suitability × conformance to be had
}

// Add counts one task that was done with quality actual where the best
// resource would have given best.
func (q *Quality) Add(actual, best float64) {
	q.Actual += actual
	q.Ideal += best
}

// Total is Q_total, in [0, 1]: Q_actual / Q_ideal, and 1 when there was no work.
func (q Quality) Total() float64 {
	if q.Ideal == 0 {
		return 1
	}
	return q.Actual / q.Ideal
}

// BestQuality is the greatest suitability × conformance that any of the
// resources has for the item, whatever their load: the item's part of Q_ideal.
func BestQuality(it Item, resources []Resource) float64 {
	best := 0.0
	for i := range resources {
		r := &resources[i]
		best = max(best, r.Suitability[it.Task]*Conformance(it.Violations[r.ID]))
	}
	return best
}
