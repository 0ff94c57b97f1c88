package web

import (
	"slices"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// What a person reads first of an instance: who has the work, or to whom it is offered.
func TestSentencesSayWhoHasTheWork(t *testing.T) {
	in := &api.Instance{State: workflow.InstanceRunning, Tasks: []api.Task{
		{Name: "weigh", State: workflow.Ready, Partner: "station", OfferedTo: []string{"ana", "rui"}},
		{Name: "cook", State: workflow.Running, Partner: "kitchen", ClaimedBy: "bia"},
		{Name: "load", State: workflow.Ready, Partner: "jetty"},
	}}
	for code, want := range map[string][]string{
		"en": {"bia has cook.", "weigh is offered to ana, rui, at station.",
			"load waits for somebody to begin it, at jetty."},
		"pt-BR": {"bia está com cook.", "weigh é oferecida a ana, rui, em station.",
			"load espera que alguém comece, em jetty."},
	} {
		i := slices.IndexFunc(languages, func(l *language) bool { return l.code == code })
		if got := languages[i].sentences(in, time.Now()); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", code, got, want)
		}
	}
}
