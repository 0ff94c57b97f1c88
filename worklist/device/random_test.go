package device

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mutirao-mesh/mutirao/worklist"
)

const disk = 1000

// session is a random session: a user, a link, and a holder that grants, takes away and
// acknowledges, at any moment; and crashes.
type session struct {
	t     *testing.T
	seed  uint64
	rnd   *rand.Rand
	d     *Device
	saved State
	held  map[worklist.Item]worklist.Mode // as the holder has it
	acked map[worklist.Item]bool
	done  map[worklist.Item]bool
	now   time.Duration
}

func (s *session) moment() worklist.Moment {
	return worklist.Moment{Boot: s.now, Wall: start.Add(s.now)}
}

func (s *session) some() worklist.Item { return item(string(rune('a' + s.rnd.IntN(5)))) }

// happen has one thing happen.
func (s *session) happen() {
	i := s.some()
	switch s.rnd.IntN(14) {
	case 0:
		out, _ := s.d.Ask([]worklist.Mode{worklist.Select, worklist.Lock}[s.rnd.IntN(2)], i)
		s.out(out, nil)
	case 1:
		if j := s.d.Jobs[i]; j != nil && j.Asked != "" {
			s.held[i] = j.Asked
			if s.rnd.IntN(2) == 0 && s.d.Link.reaches() {
				s.out(s.d.Granted(i, j.Asked, worklist.ID{1}, s.moment()), nil)
			}
		}
	case 2:
		s.update()
	case 3:
		s.out(s.d.Open(i, s.rnd.IntN(2) == 0))
	case 4:
		was := len(s.d.Outbox)
		out, err := s.d.Finish(i, s.rnd.IntN(3) == 0, int64(s.rnd.IntN(30)), s.moment())
		if s.out(out, err); err == nil {
			s.done[i] = true
			if len(s.d.Outbox) != was+1 {
				s.t.Errorf("seed %d: the result of %s is not in the outbox", s.seed, i.Slot)
			}
		}
	case 5:
		s.out(s.d.Disconnect(time.Duration(s.rnd.IntN(100))*time.Second, s.moment()))
	case 6:
		s.out(s.d.Accept(s.moment()))
	case 7:
		if id := PieceID([]string{"x", "y", "z"}[s.rnd.IntN(3)]); s.d.Pieces[id] != nil && s.d.Link.reaches() {
			p := s.d.Pieces[id]
			s.out(s.d.Got(id, min(p.Here+int64(1+s.rnd.IntN(200)), p.Here+s.d.Free), s.moment()), nil)
		}
	case 8:
		s.out(s.d.Lost(), nil)
	case 9:
		s.out(s.d.Return(s.moment()))
	case 10:
		s.d = Load(s.saved)
		s.saved = s.d.Save()
	case 11:
		s.acknowledge()
	case 12:
		delete(s.held, i) // it went to somebody else
	case 13:
		s.now += time.Duration(s.rnd.IntN(60)) * time.Hour
		s.d.Measure(int64(s.rnd.IntN(1000)), time.Second)
	}
}

// update tells the device how its items stand.
func (s *session) update() {
	if !s.d.Link.reaches() {
		return
	}
	var jobs []Job
	for n := range 5 {
		i := item(string(rune('a' + n)))
		if s.acked[i] {
			continue
		}
		j := Job{Item: i, Offline: n != 3, Ready: true, Needs: [][]PieceID{{"x"}, {"x", "y"}, {"z"}, nil, nil}[n]}
		if n == 4 {
			j.After, j.Ready = []worklist.Item{item("a")}, s.acked[item("a")]
		}
		if j.Mode = s.held[i]; j.Mode != "" {
			j.Grant, j.Lease = worklist.ID{1}, worklist.DefaultLease(j.Mode)
		}
		jobs = append(jobs, j)
	}
	for _, id := range []PieceID{"x", "y", "z"} {
		if s.d.Pieces[id] == nil {
			s.d.Learn(id, Piece{Size: 150})
		}
	}
	s.out(s.d.Update(jobs, true), nil)
}

// acknowledge has the receiver take one thing from the outbox.
func (s *session) acknowledge() {
	if len(s.d.Outbox) == 0 || !s.d.Link.reaches() {
		return
	}
	p := s.d.InOutbox()[0]
	s.acked[p.Item] = true
	s.out(s.d.Acknowledged(p.ParcelID), nil)
}

// out carries effects out: what is remembered is saved first.
func (s *session) out(x Effects, err error) {
	if err != nil {
		return
	}
	if x.Save {
		s.saved = s.d.Save()
	} else if len(x.Fetch)+len(x.Remove)+len(x.Send) > 0 || x.Active != nil || x.Cut {
		s.t.Errorf("seed %d: something is done before it is remembered: %+v", s.seed, x)
	}
	for _, f := range x.Fetch {
		if p := s.d.Pieces[f.Piece]; p == nil || f.From != p.Here {
			s.t.Errorf("seed %d: %s is fetched from %d, and is here up to another place", s.seed, f.Piece, f.From)
		}
	}
	for _, p := range x.Send {
		if p.From != p.Parcel.Sent {
			s.t.Errorf("seed %d: the result of %s is sent from %d, not %d", s.seed, p.Parcel.Item.Slot, p.From, p.Parcel.Sent)
		}
	}
}

// check looks at what must always be so.
func (s *session) check() {
	used := s.d.Free
	for id, p := range s.d.Pieces {
		used += p.Here
		if p.Here > p.Size {
			s.t.Errorf("seed %d: more of %s is here than there is", s.seed, id)
		}
	}
	for _, p := range s.d.Outbox {
		used += p.Size
	}
	if used != disk || s.d.Free < 0 {
		s.t.Errorf("seed %d: %d bytes of %d are accounted for, %d free", s.seed, used, disk, s.d.Free)
	}
	for i := range s.done {
		if !s.acked[i] && !s.d.inOutbox(i) {
			s.t.Errorf("seed %d: the work on %s is lost", s.seed, i.Slot)
		}
	}
	for i, j := range s.d.Jobs {
		ok, _ := s.d.Enabled(i)
		if ok && !s.d.Link.reaches() && (j.Mode != worklist.Lock || !s.d.here(j)) {
			s.t.Errorf("seed %d: %s can be worked on while %s", s.seed, i.Slot, s.d.Link)
		}
		if ok && j.Taken != "" {
			s.t.Errorf("seed %d: %s can be worked on, and is not the user's", s.seed, i.Slot)
		}
		if j.Run == Remote && !s.d.Link.reaches() {
			s.t.Errorf("seed %d: %s runs on remote data while %s", s.seed, i.Slot, s.d.Link)
		}
	}
	if s.rnd.IntN(50) > 0 {
		return
	}
	if diff := cmp.Diff(s.d.Save(), of(s.d.Save()).Save(), cmp.AllowUnexported(Plan{})); diff != "" {
		s.t.Errorf("seed %d: what is saved is not what is loaded:\n%s", s.seed, diff)
	}
}

// settle has everything heal: then the device is connected, and nothing is in the outbox.
func (s *session) settle() {
	if !s.d.Link.reaches() {
		s.out(s.d.Return(s.moment()))
	}
	if s.d.Link == Leaving {
		s.out(s.d.Stay(), nil)
	}
	s.update()
	for range 10 {
		s.acknowledge()
	}
	s.update()
	if s.d.Link != Connected || len(s.d.Outbox) > 0 {
		s.t.Errorf("seed %d: all is well, and the device is %s with %d in the outbox", s.seed, s.d.Link, len(s.d.Outbox))
	}
}

// TestSessions: whatever happens when, no work is lost, nothing is fetched twice, offline
// only what is locked and here can be worked on, and in the end all is in step.
func TestSessions(t *testing.T) {
	for seed := range uint64(500) {
		s := &session{t: t, seed: seed, rnd: rand.New(rand.NewPCG(seed, 17)), d: New("davi"), held: map[worklist.Item]worklist.Mode{}, acked: map[worklist.Item]bool{}, done: map[worklist.Item]bool{}}
		s.d.Free, s.d.Rate, s.d.Setting.Prefetch = disk, int64(s.rnd.IntN(20)), s.rnd.IntN(2) == 0
		s.saved = s.d.Save()
		s.update()
		for range 60 {
			s.happen()
			s.check()
		}
		s.settle()
		s.check()
		if t.Failed() {
			return
		}
	}
}

// many makes a device with n items, each with a piece of its own.
func many(n int) (*Device, []Job) {
	d := New("davi")
	d.Free, d.Rate, d.Setting.Prefetch = 1<<40, 1000, true
	jobs := make([]Job, n)
	for k := range jobs {
		id := PieceID(fmt.Sprint("p", k))
		d.Learn(id, Piece{Size: 10})
		jobs[k] = Job{Item: item(fmt.Sprint("i", k)), Offline: true, Ready: true, Mode: worklist.Lock, Grant: worklist.ID{1}, Needs: []PieceID{id}}
	}
	return d, jobs
}

// TestStepsOfLeaving: to leave with n items, do them and come back costs about n steps, and
// what happens to one of them costs the same however many there are.
func TestStepsOfLeaving(t *testing.T) {
	var each []float64
	for _, n := range []int{100, 1000, 10_000} {
		d, jobs := many(n)
		d.Update(jobs, true)
		now := worklist.Moment{Wall: start}
		if _, err := d.Disconnect(time.Hour, now); err != nil {
			t.Fatal(err)
		}
		for _, j := range jobs {
			d.Got(j.Needs[0], 10, now)
		}
		if d.Link != Away {
			t.Fatalf("%d items: %s", n, d.Link)
		}
		for _, j := range jobs {
			if _, err := d.Finish(j.Item, false, 1, now); err != nil {
				t.Fatal(err)
			}
		}
		d.Setting.Prefetch = false
		if _, err := d.Return(now); err != nil {
			t.Fatal(err)
		}
		for _, j := range slices.Backward(jobs) {
			d.Acknowledged(ParcelID{j.Item, "result"})
		}
		each = append(each, float64(d.steps)/float64(n))
	}
	t.Logf("steps for each item: %.1f", each)
	if each[1] > 1.5*each[0] || each[2] > 1.5*each[0] {
		t.Errorf("%.1f steps for each item", each)
	}
}
