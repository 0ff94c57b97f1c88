package web

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/dataflow"
	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/partition/aptitude"
	"github.com/mutirao-mesh/mutirao/partition/study"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist/device"
)

// methods are those of recovery.
var methods = []string{
	dataflow.MethodCompensate, dataflow.MethodOffer, dataflow.MethodRestart, dataflow.MethodBack,
	dataflow.MethodForward,
}

// worded are the values of the interface that have words of their own.
var worded = map[string][]string{
	"partner": values(membership.Active, membership.Unreachable, membership.Expired, membership.Left,
		membership.Evicted),
	"why": values(membership.GoingDown, membership.NoContact, membership.NotBack, membership.Silent, membership.InOrder,
		membership.Announced, membership.Overdue,
		membership.ForGood, membership.Removed,
		membership.Closed),
	"instance": values(workflow.InstanceRunning, workflow.InstanceSucceeded, workflow.InstanceFailed,
		workflow.InstanceBlocked, workflow.InstanceCancelled, workflow.InstanceInterrupted),
	"task": values(workflow.NotReady, workflow.Ready, workflow.Running, workflow.Succeeded,
		workflow.Failed, workflow.Aborted, workflow.Blocked, workflow.Skipped),
	"coordination": values(workflow.Choreography, workflow.Orchestration),
	"compensation": values(state.CompensationWaits, state.CompensationRuns, state.CompensationDone,
		state.CompensationFailed),
	"due": values(choreo.DueTimeout, choreo.DueTrigger, choreo.DueVerdict, choreo.DueDeadline, choreo.DueTransfer,
		"lease"),
	"need": values(choreo.NeedFailed, choreo.NeedBlocked, choreo.NeedNobody, choreo.NeedInterrupted, choreo.NeedOverdue,
		choreo.NeedGoesOn),
	"method": methods,
	"does":   methods,
	"step": values(dataflow.Initial, dataflow.JumpBack, dataflow.JumpForward, dataflow.Amendment, dataflow.Offer,
		dataflow.Restart),
	"datastatus": values(dataflow.Final, dataflow.Exception),
	"mark":       values(dataflow.Compensated, dataflow.Aborted, dataflow.Jumped, dataflow.Superseded),
	"unit":       spans,
	"item":       {api.ItemReady, api.ItemNotReady, api.ItemSelected, api.ItemLocked, api.ItemDone},
	"filter":     filterStates,
	"measure":    {"time", "quality"},
	"sign":       values(study.Better, study.Worse, study.Equal),
	"advice": values(device.Room, device.Wait, device.Open, device.Coming, device.Lock, device.Prefetch,
		device.Elsewhere),
	"claim": {"order-time", "order-quality", "headline", "mean-time", "mean-quality", "low-variation"},
	"verdict": values(aptitude.Chosen, aptitude.LessApt, aptitude.Offered, aptitude.NotDrawn, aptitude.NoCapacity,
		aptitude.BelowThreshold, aptitude.Rejecting, aptitude.Forbidden, aptitude.Absent),
}

func values[T ~string](vs ...T) []string {
	var out []string
	for _, v := range vs {
		out = append(out, string(v))
	}
	return out
}

// uses are how templates and code name a string.
var uses = []*regexp.Regexp{
	regexp.MustCompile(`\bt "([^"]+)"`),
	regexp.MustCompile(`\bsay\("([^"]+)"`),
	regexp.MustCompile(`\btitle: "([^"]+)"`),
	regexp.MustCompile(`\bCode: "([^"]+)"`),
	regexp.MustCompile(`"((?:note|form|wrong|contact)\.[a-z.]+)"`),
}

// used lists the keys of all strings that the page can show.
func used(t *testing.T) []string {
	t.Helper()
	keys := map[string]bool{}
	for family, vs := range worded {
		for _, v := range vs {
			keys["is."+family+"."+v] = true
		}
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	templates, err := fs.Glob(texts, "templates/*.html")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(files, templates...) {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, use := range uses {
			for _, m := range use.FindAllStringSubmatch(string(b), -1) {
				keys[m[1]] = true
			}
		}
	}
	for key := range languages()[0].text {
		if of, one := strings.CutSuffix(key, ofOne); one && keys[of] {
			keys[key] = true
		}
	}
	return slices.Sorted(maps.Keys(keys))
}

// What is told of one thing is in the singular.
func TestOneIsSaidInTheSingular(t *testing.T) {
	for i, want := range [][]string{
		{"1 more is not shown here.", "2 more are not shown here.", "1 more is under way.", "2 more are under way."},
		{"Mais 1 não aparece aqui.", "Mais 2 não aparecem aqui.", "Mais 1 em andamento.", "Mais 2 em andamento."},
	} {
		l := languages()[i]
		got := []string{l.say("home.more", 1), l.say("home.more", 2), l.say("tells.more", 1), l.say("tells.more", 2)}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", l.code, diff)
		}
	}
}

// Every language has every string that is used, and no other.
func TestEveryLanguageHasEveryString(t *testing.T) {
	want := used(t)
	if len(want) < 50 {
		t.Fatalf("only %d strings are used", len(want))
	}
	for _, l := range languages() {
		if diff := cmp.Diff(want, slices.Sorted(maps.Keys(l.text))); diff != "" {
			t.Errorf("%s: -used +there:\n%s", l.code, diff)
		}
		for key, text := range l.text {
			if strings.TrimSpace(text) == "" || strings.TrimSpace(text) != text {
				t.Errorf("%s: %s is %q", l.code, key, text)
			}
		}
	}
}

// The blanks in a string are the same in all languages.
func TestBlanksAgree(t *testing.T) {
	blank := regexp.MustCompile(`%[^ ]`)
	for key, text := range languages()[0].text {
		for _, l := range languages()[1:] {
			if diff := cmp.Diff(blank.FindAllString(text, -1), blank.FindAllString(l.text[key], -1)); diff != "" {
				t.Errorf("%s: %s", key, diff)
			}
		}
	}
}

// A translation that was forgotten is the same text in both.
func TestNothingIsLeftInEnglish(t *testing.T) {
	for key, text := range languages()[0].text {
		if languages()[1].text[key] == text {
			t.Errorf("%s is %q in both", key, text)
		}
	}
}
