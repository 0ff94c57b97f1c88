//go:build linux

package liar_test

import (
	"flag"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/internal/test/testliar"
	"github.com/mutirao-mesh/mutirao/internal/test/testnode"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

var whole = flag.Bool("whole", false, "attack at full size, as docs/security.md tells; else at a tenth")

// maxAnon is how much anonymous memory a small device may have to give, in MiB.
const maxAnon = 100

// Whatever a lying member sends, the victim keeps within its means, and works.
func TestAttacks(t *testing.T) {
	size := testliar.Whole / 10
	if *whole {
		size = testliar.Whole
	}
	for _, a := range testliar.Attacks {
		t.Run(a.Name, func(t *testing.T) {
			v := newVictims(t)
			id := v.begins()
			l := v.liar(id)
			if a.Name == "reports" { // only a coordinator is told
				if _, err := v.ana.API.Elect(t.Context(), api.ElectRequest{}); err != nil {
					t.Fatal(err)
				}
			}
			before := v.standing()
			m := measure(v.ana)
			begun := time.Now()
			a.Do(t.Context(), l, size)
			v.idles()
			if _, err := v.ana.API.Show(t.Context(), id); err != nil {
				t.Errorf("ana cannot show her instance: %v", err)
			}
			list, err := v.ana.API.Instances(t.Context(), true)
			if err != nil {
				t.Errorf("ana cannot list instances: %v", err)
			}
			for _, in := range list[:min(len(list), 20)] {
				if _, err := v.ana.API.Show(t.Context(), in.ID); err != nil {
					t.Errorf("ana cannot show instance %s of those that she lists: %v", in.ID, err)
				}
			}
			u := m.ends()
			t.Logf("ana refused of mal: %v", v.refusals("mal"))
			t.Logf("%s: %d frames in %s; ana used %s", a.Says, l.Sent, time.Since(begun).Round(time.Second), u)
			if u.anon > maxAnon {
				t.Errorf("%d MiB anonymous memory, at most %d", u.anon, maxAnon)
			}
			if now := v.standing(); now != before {
				t.Errorf("ana's store had incarnation %s and her vote counted: %v; now %s, %v",
					before.incarnation, before.votes, now.incarnation, now.votes)
			}
			v.holds()
		})
	}
}

// liar is mal, which takes part in an instance and was told so.
func (v *victims) liar(instance string) *testliar.Liar {
	v.t.Helper()
	l := v.liarOf(v.malFolder)
	id, err := workflow.ParseInstanceID(instance)
	if err != nil {
		v.t.Fatal(err)
	}
	testnode.Within(v.t, time.Minute, "the liar is told of its instance", func() bool { return len(l.Knows(id)) > 0 })
	l.About(id)
	return l
}

// liarOf is the member of a folder, with ana as its victim.
func (v *victims) liarOf(folder string) *testliar.Liar {
	v.t.Helper()
	l, err := testliar.New(folder)
	if err != nil {
		v.t.Fatal(err)
	}
	v.t.Cleanup(func() {
		if err := l.Close(); err != nil {
			v.t.Error(err)
		}
	})
	st, err := v.ana.API.Status(v.t.Context())
	if err != nil {
		v.t.Fatal(err)
	}
	if err := l.Aim(st.ID, st.Addresses); err != nil {
		v.t.Fatal(err)
	}
	return l
}

// standing is what a mere claim must not change of ana.
type standing struct {
	incarnation string
	votes       bool
}

func (v *victims) standing() (s standing) {
	v.t.Helper()
	st, err := v.ana.API.Status(v.t.Context())
	if err != nil {
		v.t.Fatal(err)
	}
	e, err := v.ana.API.Electorate(v.t.Context())
	if err != nil {
		v.t.Fatal(err)
	}
	s.incarnation = st.Incarnation
	for _, x := range e.Voters {
		s.votes = s.votes || x.Name == "ana" && x.Current
	}
	return s
}

// idles waits until ana has dealt with what it was sent: it uses little for a while.
func (v *victims) idles() {
	for end := time.Now().Add(3 * time.Minute); time.Now().Before(end); {
		before := cpuOf(v.ana.Process.Pid)
		<-time.After(time.Second)
		if cpuOf(v.ana.Process.Pid)-before < 300*time.Millisecond {
			return
		}
	}
	v.t.Error("ana is still busy three minutes later")
}
