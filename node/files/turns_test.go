package files_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/node/files"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Whatever partners do, and in whichever order, the turns that are counted as taken, lent and vain are those that are,
// at each second; and when nobody wants a file any more, or the node stops, none is left, and nothing runs.
func TestTurnsAreCountedAsTheyAre(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { newStorm(t, seed).run() })
		})
	}
}

// storm is what chance does to a node that wants files.
type storm struct {
	t        *testing.T
	r        *rand.Rand
	honest   *site
	taker    *site
	partners []workflow.PartnerID
	files    []workflow.File
	cancels  []context.CancelFunc
	waits    int  // those that were not told yet
	steady   bool // partners are slow, and seldom mute
	told     chan error
}

func newStorm(t *testing.T, seed uint64) *storm {
	s := &storm{t: t, r: rand.New(rand.NewPCG(seed, 1)), told: make(chan error, 4096)}
	s.steady = seed%2 == 1
	s.honest, s.taker = siteThatTakes(t)
	s.taker.link.takes = time.Duration(s.r.IntN(3)) * time.Second
	s.taker.link.quickSums = s.r.IntN(2) == 0
	s.taker.link.fades = "p0"
	empty := nothing(t)
	for i := range 16 {
		p := workflow.PartnerID(fmt.Sprint("p", i))
		s.partners = append(s.partners, p)
		s.slows(p)
		if s.taker.link.to[p] = s.honest.Topic; i%4 == 3 {
			s.taker.link.to[p] = empty
		}
	}
	for i := range 30 {
		f, _ := s.honest.put(t, []int{100, files.Piece, files.Piece, files.Piece, files.Chunk}[i%5]+i)
		s.files = append(s.files, f)
	}
	for _, r := range named(24) { // nobody has these
		s.files = append(s.files, r.File)
	}
	return s
}

func (s *storm) run() {
	for range 150 {
		s.event()
		time.Sleep(time.Duration(s.r.IntN(6000)) * time.Millisecond)
		if err := s.taker.AuditTurns(); err != nil {
			s.t.Fatal(err)
		}
	}
	if s.r.IntN(2) == 0 {
		s.taker.Stop()
	}
	for i := range members {
		s.taker.ahead(byte(i), s.member(i), nil, nil)
	}
	for _, cancel := range s.cancels {
		cancel()
	}
	for ; s.waits > 0; s.waits-- {
		if err := <-s.told; err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, files.ErrLost) &&
			err.Error() != "the node is stopping" {
			s.t.Errorf("a file ended with %v", err)
		}
	}
	time.Sleep(time.Hour)
	if err := s.taker.AuditTurns(); err != nil {
		s.t.Error(err)
	}
	if words := s.taker.Left(); words != "" {
		s.t.Errorf("nobody wants a file, and %s", words)
	}
}

const members = 8

// member is who began an instance; empty: this node.
func (s *storm) member(instance int) workflow.PartnerID {
	if instance == 0 {
		return ""
	}
	return workflow.PartnerID(fmt.Sprint("member", instance%6))
}

// slows has a partner give so many bytes a second.
func (s *storm) slows(p workflow.PartnerID) {
	rates := []int{0, 1, 900, 3000, 8000, 50_000}
	if s.steady {
		rates = rates[3:5]
	}
	s.taker.link.speed(p, rates[s.r.IntN(len(rates))])
}

// event is one thing that happens.
func (s *storm) event() {
	p := s.partners[s.r.IntN(len(s.partners))]
	switch s.r.IntN(8) {
	case 0, 1:
		s.taker.link.hang(p, s.r.IntN(10) < map[bool]int{false: 5, true: 1}[s.steady])
	case 2:
		s.slows(p)
	case 3:
		s.taker.link.cut(p, s.r.IntN(3) == 0)
	case 4, 5: // the tasks of an instance are about to read others
		var refs []files.Ref
		for range s.r.IntN(30) {
			n := s.r.IntN(len(s.files))
			refs = append(refs, files.Ref{Item: workflow.DataName(fmt.Sprint("f", n)), File: s.files[n]})
		}
		i := s.r.IntN(members)
		s.taker.ahead(byte(i), s.member(i), refs, nil, s.some()...)
	case 6: // somebody waits for one
		w := want(s.files[s.r.IntN(len(s.files))], s.some()...)
		w.By, w.Asked = s.member(s.r.IntN(members)), s.r.IntN(3) == 0
		ctx, cancel := context.WithCancel(s.t.Context())
		s.cancels = append(s.cancels, cancel)
		switch over, err := s.taker.Seek(ctx, w, func(err error) { s.told <- err }); {
		case !over:
			s.waits++
		case err != nil:
			s.t.Errorf("it is not sought: %v", err)
		}
	case 7: // somebody waits no more
		if len(s.cancels) > 0 {
			s.cancels[s.r.IntN(len(s.cancels))]()
		}
	}
}

// some are partners that may have a file.
func (s *storm) some() (from []workflow.PartnerID) {
	for range 1 + s.r.IntN(8) {
		from = append(from, s.partners[s.r.IntN(len(s.partners))])
	}
	return from
}
