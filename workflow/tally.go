package workflow

// Tally counts findings by their truth, those by failure among them apart, and leaves
// out what was dropped. So what an "and" or "or" of many comes to follows from each that
// changes, without reading the others.
type Tally struct{ all, byFailure [True + 1]int32 }

// Count counts a finding by times.
func (t *Tally) Count(f Finding, by int32) {
	if f.Dropped {
		return
	}
	t.all[f.Truth] += by
	if f.ByFailure {
		t.byFailure[f.Truth] += by
	}
}

// Of is what the op of the findings comes to: OpAnd the least, OpOr the greatest;
// dropped: there are none.
func (t *Tally) Of(op Op) Finding {
	for truth := Impossible; truth <= True; truth++ {
		at := truth
		if op == OpOr {
			at = True - truth
		}
		if t.all[at] > 0 {
			return Finding{Truth: at, ByFailure: t.byFailure[at] > 0}
		}
	}
	return Finding{Dropped: true}
}
