package device

import (
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/worklist"
)

// Learn takes in of which size a piece is, and how much of it is here.
func (d *Device) Learn(id PieceID, p Piece) { d.Pieces[id] = &p }

// lacking is how many bytes an item still needs.
func (d *Device) lacking(j *Job) (n int64) {
	for _, id := range j.Needs {
		if p := d.Pieces[id]; p != nil {
			n += p.Size - p.Here
		}
	}
	return n
}

// wanted are the pieces that some items, in the order of the worklist, still need, in the
// order in which they are to be fetched: for locked items first; each once. Only items that
// may be done offline are fetched.
func (d *Device) wanted(jobs []*Job, lockedOnly bool) (out []PieceID) {
	slices.SortStableFunc(jobs, func(x, y *Job) int { return one(y.Mode == worklist.Lock) - one(x.Mode == worklist.Lock) })
	seen := map[PieceID]bool{}
	for _, j := range jobs {
		d.steps++
		if !j.Offline || j.Taken != "" || j.Run == Done || lockedOnly && j.Mode != worklist.Lock {
			continue
		}
		for _, id := range j.Needs {
			if p := d.Pieces[id]; p != nil && p.Here < p.Size && !seen[id] {
				seen[id] = true
				out = append(out, id)
			}
		}
	}
	return out
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

// volume is how many bytes pieces lack.
func (d *Device) volume(ids []PieceID) (n int64) {
	for _, id := range ids {
		n += d.Pieces[id].Size - d.Pieces[id].Here
	}
	return n
}

// fetch asks for what some items need now: while leaving what locked ones do; else, with
// prefetching, all in its order. What does not fit on the disk is left out.
func (d *Device) fetch(out *Effects, jobs ...*Job) {
	if !d.fetches() {
		return
	}
	room := d.Free
	for _, id := range d.wanted(jobs, d.Plan != nil) {
		p := d.Pieces[id]
		if room -= p.Size - p.Here; room < 0 {
			d.cramped = true
			return
		}
		out.Fetch = append(out.Fetch, Fetching{Piece: id, From: p.Here, Spare: d.Plan == nil})
	}
}

// fetches reports whether anything is fetched now.
func (d *Device) fetches() bool {
	return d.Link.reaches() && d.Link != Returning && (d.Plan != nil || d.Setting.Prefetch)
}

// fetchAll is fetch for all items.
func (d *Device) fetchAll(out *Effects) {
	if d.fetches() {
		d.cramped = false
		d.fetch(out, d.inOrder()...)
	}
}

// Got notes up to where a piece is here, verified and durable.
func (d *Device) Got(id PieceID, upTo int64, now worklist.Moment) Effects {
	p := d.Pieces[id]
	if p == nil || upTo <= p.Here {
		return Effects{}
	}
	upTo = min(upTo, p.Size)
	d.Free -= upTo - p.Here
	p.Here = upTo
	out := Effects{Save: true}
	if d.Plan != nil && p.Here == p.Size && d.Plan.missing[id] {
		if delete(d.Plan.missing, id); len(d.Plan.missing) == 0 {
			d.advance(&out, now)
		}
	}
	return out
}

// Corrupt notes that a piece was not what its hash says from a place on: it is fetched
// again from there.
func (d *Device) Corrupt(id PieceID, from int64) Effects {
	p := d.Pieces[id]
	if p == nil || from < 0 || from >= p.Here {
		return Effects{}
	}
	d.Free += p.Here - from
	p.Here = from
	out := Effects{Save: true}
	if d.Link.reaches() {
		out.Fetch = []Fetching{{Piece: id, From: from, Spare: d.Plan == nil}}
	}
	if d.Plan != nil {
		d.Plan.missing[id] = true
	}
	return out
}

// drop removes the data that no item needs any more; applications stay.
func (d *Device) drop(out *Effects) {
	for id := range d.loose {
		d.steps++
		if p := d.Pieces[id]; p != nil && d.uses[id] == 0 && !p.Application {
			d.Free += p.Here
			delete(d.Pieces, id)
			delete(d.uses, id)
			out.Remove = append(out.Remove, id)
		}
	}
	clear(d.loose)
	slices.Sort(out.Remove)
}

// smoothing is the weight of one measurement.
const smoothing = 4

// Measure takes in that so many bytes came or went in such a time while the link was busy.
func (d *Device) Measure(bytes int64, span time.Duration) {
	if bytes <= 0 || span <= 0 {
		return
	}
	rate := int64(float64(bytes) / span.Seconds())
	if d.Rate == 0 {
		d.Rate = rate
		return
	}
	d.Rate += (rate - d.Rate) / smoothing
}

// takes is how long so many bytes take; for ever where the link was not measured.
func (d *Device) takes(bytes int64) time.Duration {
	switch {
	case bytes == 0:
		return 0
	case d.Rate <= 0:
		return 1<<63 - 1
	}
	return time.Duration(float64(bytes) / float64(d.Rate) * float64(time.Second)).Round(time.Second)
}
