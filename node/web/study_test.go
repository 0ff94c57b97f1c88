package web

import (
	"html"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Each published scenario has a page, in which all that it leads to is there: among it a chart
// of each load, with a row for each of its conditions, and the published signs beside those
// found. What has no sign is said.
func TestStudyLeadsToItsCharts(t *testing.T) {
	p := newPage(brigade())
	link := regexp.MustCompile(`(?:href|src)="(/study/[^"]+)"`)
	for scenario, unknown := range map[string]bool{"five": false, "three": true, "selective": true} {
		page := get(t, p, "/study/"+scenario, "en").Body.String()
		var found []string
		for _, m := range link.FindAllStringSubmatch(page, -1) {
			found = append(found, html.UnescapeString(m[1]))
		}
		for _, name := range []string{
			"time-published", "quality-published", "time", "quality", "time-mean", "quality-mean", "time-load-0.2",
			"time-load-0.6", "time-load-1", "quality-load-0.2", "quality-load-0.6", "quality-load-1",
		} {
			if path := "/study/" + scenario + "/" + name + ".svg"; !slices.Contains(found, path) {
				t.Errorf("the page of %s does not lead to %s", scenario, path)
			}
		}
		for _, path := range found {
			w := get(t, p, path, "en")
			switch of := w.Header().Get("Content-Type"); {
			case w.Code != http.StatusOK:
				t.Errorf("%s: status %d", path, w.Code)
			case strings.HasSuffix(path, ".svg") && (of != "image/svg+xml" || !strings.Contains(w.Body.String(), "<svg ")):
				t.Errorf("%s is %s", path, of)
			case strings.Contains(path, "-load-") && strings.Count(w.Body.String(), "resources ") < 9:
				t.Errorf("%s does not have nine conditions", path)
			}
		}
		if said := strings.Contains(page, "is not known here: they are not compared"); said != unknown {
			t.Errorf("%s: that published signs are not known is said: %v, want %v", scenario, said, unknown)
		}
		if cells := strings.Count(page, `">not known here</td>`); cells != map[bool]int{true: 6}[unknown] {
			t.Errorf("%s: %d comparisons are shown whose published signs are not known", scenario, cells)
		}
	}
	for _, path := range []string{"/study/none", "/study/none/time.svg", "/study/five/none.svg", "/study/five/time"} {
		if w := get(t, p, path, "en"); w.Code != http.StatusNotFound {
			t.Errorf("%s: status %d, want 404", path, w.Code)
		}
	}
	for _, c := range p.studies.made["five"].Published.Claims {
		for _, l := range languages() {
			if word := l.word("claim", c.Key); word == c.Key || l == languages()[0] && word != c.Claim && "the "+c.Claim != word {
				t.Errorf("%s: claim %s (%s) is %q", l.code, c.Key, c.Claim, word)
			}
		}
	}
	for _, c := range p.studies.made["five"].Published.Claims {
		if found := languages()[1].found(c.Found); englishWords.MatchString(found) || strings.Contains(found, "0.") {
			t.Errorf("what was found about %s is %q in Portuguese", c.Key, found)
		}
	}
	if pt := get(t, p, "/study/five/time.svg", "pt-BR").Body.String(); !strings.Contains(pt, "Tempo até o fim") {
		t.Error("a chart is not in Portuguese")
	}
	if len(p.studies.made) != 3 {
		t.Errorf("%d studies are kept, want 3", len(p.studies.made))
	}
}
