package web

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
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
	en, pt := languages[0], languages[1]
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
