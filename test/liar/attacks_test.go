//go:build linux

package liar_test

import (
	"flag"
	"fmt"
	"strings"
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
			if !*whole { // each has its own victims, and waits for them; of whole ones it is told what they take
				t.Parallel()
			}
			v := newVictims(t)
			id := v.begins()
			l := v.liar(id)
			if prepare := before[a.Name]; prepare != nil {
				prepare(v, size)
			}
			stood := v.standing()
			m := measure(v.ana)
			begun := time.Now()
			a.Do(t.Context(), l, size)
			if why := counted[a.Name]; why != "" {
				testnode.Within(t, time.Minute, "ana counts "+why, func() bool {
					if v.refusals("mal")[why] > 0 {
						return true
					}
					if a.Name == "news" {
						l.News()
					}
					return false
				})
			}
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
				if picture, err := v.ana.API.Diagram(t.Context(), in.ID, "svg"); err != nil || len(picture) > 4<<20 {
					t.Errorf("ana draws instance %s of those that she lists in %d bytes: %v", in.ID, len(picture), err)
				}
			}
			v.add(testliar.Tomorrow) // which she lists, as before those that are not hers
			v.clockIsRight()
			u := m.ends()
			t.Logf("ana refused of mal: %v", v.refusals("mal"))
			t.Logf("%s: %d frames in %s; ana used %s", a.Says, l.Sent, time.Since(begun).Round(time.Second), u)
			if u.anon > maxAnon {
				t.Errorf("%d MiB anonymous memory, at most %d", u.anon, maxAnon)
			}
			if now := v.standing(); now != stood {
				t.Errorf("ana's store had incarnation %s and her vote counted: %v; now %s, %v",
					stood.incarnation, stood.votes, now.incarnation, now.votes)
			}
			v.holds()
		})
	}
}

// before is what the victims do before an attack.
var before = map[string]func(v *victims, size int){
	"reports": func(v *victims, _ int) { // only a coordinator is told
		if _, err := v.ana.API.Elect(v.t.Context(), api.ElectRequest{}); err != nil {
			v.t.Fatal(err)
		}
	},
	"greetings": func(v *victims, size int) { // what answers a greeting is as long as the list
		for i := range 480 * size / testliar.Whole {
			v.add(fmt.Sprintf("workflow: listed-%d\ndoc: %s\ntasks:\n  a: {}\n", i, strings.Repeat("x", 2000)))
		}
	},
}

// counted is as what some attacks must show in what ana refused: they did arrive.
var counted = map[string]string{
	"removals": "definition", "greetings": "greetings-too-fast", "news": "news-malformed", "garbage": "frame-malformed",
	"files": "file-forged", "words": "words-of-others",
}

// clockIsRight checks that ana's doctor blames her clock for nobody's word.
func (v *victims) clockIsRight() {
	v.t.Helper()
	d, err := v.ana.API.Doctor(v.t.Context())
	if err != nil {
		v.t.Fatal(err)
	}
	for _, f := range d.Findings {
		if f.Check == "clock" && (f.State == api.FindingWrong || strings.Contains(f.What, "this clock is")) {
			v.t.Errorf("ana's doctor takes her clock for wrong: %s", f.What)
		}
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

// idles waits until ana has dealt with what it was sent: for a second it uses little and
// refuses nothing more.
func (v *victims) idles() {
	for end := time.Now().Add(3 * time.Minute); time.Now().Before(end); {
		before, refused := cpuOf(v.ana.Process.Pid), v.refused()
		<-time.After(time.Second)
		if cpuOf(v.ana.Process.Pid)-before < 300*time.Millisecond && v.refused() == refused {
			return
		}
	}
	v.t.Error("ana is still busy three minutes later")
}
