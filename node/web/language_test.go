package web

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
	"github.com/mutirao-mesh/mutirao/workflow"
)

func TestChoosingALanguage(t *testing.T) {
	tests := []struct {
		name, query, cookie, accept, want string
	}{
		{"nothing is known", "", "", "", "en"},
		{"Brazil", "", "", "pt-BR,pt;q=0.9,en;q=0.8", "pt-BR"},
		{"Portugal", "", "", "pt-PT", "pt-BR"},
		{"English before Portuguese", "", "", "fr, pt;q=0.5, en-GB;q=0.7", "en"},
		{"none of ours", "", "", "fr,de", "en"},
		{"anything but Portuguese", "", "", "pt;q=0", "en"},
		{"nonsense", "", "", ";;q=x,,=", "en"},
		{"chosen before", "", "pt-BR", "en", "pt-BR"},
		{"chosen now", "en", "pt-BR", "pt", "en"},
		{"a choice that there is not", "xx", "pt-BR", "en", "pt-BR"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := httptest.NewRequestWithContext(t.Context(), "GET", "/?lang="+tt.query, nil)
			r.Header.Set("Accept-Language", tt.accept)
			if tt.cookie != "" {
				r.AddCookie(&http.Cookie{Name: languageCookie, Value: tt.cookie})
			}
			w := httptest.NewRecorder()
			if got := choose(w, r).code; got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			if remembered := len(w.Result().Cookies()) > 0; remembered != (tt.name == "chosen now") {
				t.Errorf("remembered: %v", remembered)
			}
		})
	}
}

func TestTimesAndNumbers(t *testing.T) {
	en, pt := languages()[0], languages()[1]
	now := time.Date(2025, 6, 2, 9, 0, 0, 0, time.Local)
	for got, want := range map[string]string{
		en.moment(now.Add(-time.Hour), now):       "08:00:00",
		en.moment(now.Add(-10*time.Hour), now):    "2025-06-01 23:00:00",
		pt.moment(now.Add(-10*time.Hour), now):    "01/06/2025 23:00:00",
		en.ago(-time.Second):                      "0 s ago",
		en.ago(59 * time.Second):                  "59 s ago",
		pt.ago(90 * time.Minute):                  "há 1 h",
		pt.ago(59 * time.Minute):                  "há 59 min",
		pt.ago(48 * time.Hour):                    "há 2 d",
		en.number(0.72549):                        "0.725",
		pt.number(0.72549):                        "0,725",
		value([]any{"a", 1.0, nil}):               `["a",1,null]`,
		value("a <b>"):                            "a <b>",
		value(nil):                                "–",
		en.word("task", "made up"):                "made up",
		pt.word("verdict", "below the threshold"): "abaixo do limiar",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// Data are written as their reader writes them: numbers, moments, yes and no.
func TestDataAsTheReaderWritesThem(t *testing.T) {
	at := time.Date(2024, 2, 29, 13, 4, 31, 0, time.Local)
	en, pt := languages()[0], languages()[1]
	for _, tt := range []struct {
		v      any
		en, pt string
	}{
		{1.5, "1.5", "1,5"}, {int64(12), "12", "12"}, {true, "Yes", "Sim"}, {false, "No", "Não"}, {nil, "–", "–"},
		{at.UTC().Format(time.RFC3339), "2024-02-29 13:04:31", "29/02/2024 13:04:31"}, {"1.5", "1.5", "1.5"},
		{[]any{1.5, true}, "[1.5,true]", "[1.5,true]"},
		{[]any{"<b>", "a & b"}, `["<b>","a & b"]`, `["<b>","a & b"]`},
	} {
		if got := [2]string{en.value(tt.v), pt.value(tt.v)}; got != [2]string{tt.en, tt.pt} {
			t.Errorf("%v is %q", tt.v, got)
		}
	}
	for text, want := range map[string]string{"completed": "concluída", "span is due in 9m": "o prazo de span termina em 9 min"} {
		if got := pt.reason(text); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// Whoever decides about an instance is named as it is: nobody beside who answers for it, where no role does.
func TestWhoDecidesIsSaid(t *testing.T) {
	in := &api.Instance{Responsible: "ana"}
	for _, tt := range []struct {
		d        *api.Deciding
		who, say string
	}{
		{nil, "bia", "ana decides, or whoever has the role of the administrators."}, {&api.Deciding{}, "bia", "ana decides."},
		{&api.Deciding{Administrators: "chief"}, "bia", "ana decides, or whoever has role chief."},
		{&api.Deciding{}, "ana", "You decide."}, {&api.Deciding{Administrators: "chief"}, "ana", "You decide, or whoever has role chief."},
	} {
		if got := languages()[0].deciders(in, tt.d, httpapi.Session{Name: tt.who}); got != tt.say {
			t.Errorf("%s is told %q, want %q", tt.who, got, tt.say)
		}
	}
	in.ResponsibleGone = true
	for state, say := range map[workflow.InstanceState]string{ // to cancel it is named where that can be done
		workflow.InstanceBlocked: "ana, who answered for it, is not here any more: nobody decides, but each partner that takes part may cancel it.",
		workflow.InstanceFailed:  "ana, who answered for it, is not here any more: nobody decides, so it stays as it is.",
	} {
		if in.State = state; languages()[0].deciders(in, nil, httpapi.Session{}) != say {
			t.Errorf("of one that is %s is told %q, want %q", state, languages()[0].deciders(in, nil, httpapi.Session{}), say)
		}
	}
}
