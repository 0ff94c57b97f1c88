package web

import (
	"slices"
	"strings"
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
		i := slices.IndexFunc(languages(), func(l *language) bool { return l.code == code })
		if got := languages()[i].sentences(in, time.Now()); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", code, got, want)
		}
	}
}

// What is with a partner that is away as it announced is not said to wait for somebody to begin it: nobody can, until
// that one is back, and it is said whose word helps.
func TestSentencesSayWhoIsAway(t *testing.T) {
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.Local)
	away := &api.Absence{Partner: "jetty", Since: now.Add(-time.Hour), Until: now.Add(3 * time.Hour)}
	in := &api.Instance{State: workflow.InstanceRunning, Responsible: "ana", Tasks: []api.Task{
		{Name: "load", State: workflow.Ready, Partner: "jetty", Away: away},
		{Name: "cook", State: workflow.Ready, Partner: "jetty", ClaimedBy: "bia", Away: away},
		{Name: "pump", State: workflow.Running, Partner: "jetty", Away: away},
	}}
	for code, want := range map[string][]string{
		"en": {"bia has cook. jetty is away as announced until about 15:00, and what comes of it is known here then.",
			"jetty is at work on pump. jetty is away as announced until about 15:00, and what comes of it is known here then.",
			"load waits for jetty, who has it and is away as announced until about 15:00: nobody can begin it before.",
			"If that is too late, ana, who answers for it, can cancel it."},
		"pt-BR": {"bia está com cook. jetty está ausente, como anunciou, até por volta de 15:00; só então se sabe aqui o que resultou.",
			"jetty está fazendo pump. jetty está ausente, como anunciou, até por volta de 15:00; só então se sabe aqui o que resultou.",
			"load espera por jetty, que a tem e está ausente, como anunciou, até por volta de 15:00: antes disso ninguém pode começar.",
			"Se for tarde demais, ana, que responde por ela, pode cancelar."},
	} {
		i := slices.IndexFunc(languages(), func(l *language) bool { return l.code == code })
		if got := languages()[i].sentences(in, now); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", code, got, want)
		}
	}
	in.Responsible = "jetty"
	if got := languages()[0].sentences(in, now); len(got) != 3 {
		t.Errorf("who answers for it is away, too: %q", got)
	}
	in.Responsible, in.ResponsibleGone = "ana", true
	if got := languages()[0].sentences(in, now); len(got) != 3 {
		t.Errorf("who answers for it is not there any more: %q", got)
	}
}

// Of what is kept for one person it is said for whom: nobody else can begin it meanwhile.
func TestSentencesSayForWhomItIsKept(t *testing.T) {
	f := brigade()
	f.OnShow = func(string) (*api.Instance, error) {
		in := fireCall()
		in.Tasks = []api.Task{{Name: "m1", State: workflow.Ready, Role: "crew", Partner: "station", KeptFor: "bia"}}
		return in, nil
	}
	for lang, want := range map[string][]string{
		"en":    {"\nm1 waits for bia to begin it, at station.\n", "\nm1 ready station · kept for bia\n"},
		"pt-BR": {"\nm1 espera que bia comece, em station.\n", "\nm1 pronta station · guardada para bia\n"},
	} {
		text := prose(get(t, newPage(f), "/instances/"+id, lang).Body.String())
		for _, says := range want {
			if !strings.Contains(text, says) {
				t.Errorf("%s: want %q\n%s", lang, says, text)
			}
		}
	}
}
