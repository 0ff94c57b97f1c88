package web

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/mutirao-mesh/mutirao/partition/aptitude"
	"github.com/mutirao-mesh/mutirao/partition/study"
)

// studies are those of the published scenarios, with the default seed. Each is made when
// somebody first asks for it, one at a time, and kept: it says the same each time, and takes
// seconds of a processor.
type studies struct {
	mu   sync.Mutex
	made map[string]*study.Report
}

// of is the study of a published scenario; nil: there is none of that name.
func (s *studies) of(name string) (*study.Report, error) {
	scenario := study.Builtin(name)
	if scenario == nil {
		return nil, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.made[name]; r != nil {
		return r, nil
	}
	r, err := study.RunAll(scenario, aptitude.Mechanisms(), study.DefaultSeed)
	if err != nil {
		return nil, err
	}
	if s.made == nil {
		s.made = map[string]*study.Report{}
	}
	s.made[name] = r
	return r, nil
}

// chart is a drawing of a study.
type chart struct{ Name, Title string }

// reached is what a mechanism reached in a study.
type reached struct {
	Mechanism           aptitude.Mechanism
	Time, Each, Quality string
}

// study answers: how do the mechanisms that give out work compare, and what of what was
// published comes out?
func (p *Page) study(ctx context.Context, r *http.Request) (view, error) {
	name := cmp.Or(r.PathValue("scenario"), study.Builtins()[0])
	report, err := p.studies.of(name)
	if report == nil {
		return view{}, cmp.Or[error](err, &missing{r.URL.Path})
	}
	lang := languageOf(ctx)
	var others []link
	for _, b := range study.Builtins() {
		others = append(others, link{Name: b, URL: "/study/" + b, Current: b == name})
	}
	var means []reached
	for _, m := range report.Mechanisms {
		mean := func(of *study.Measure, digits int) string {
			text := fmt.Sprintf("%.*f ± %.*f", digits, of.Means[m].Mean, digits, of.Means[m].Margin)
			return strings.ReplaceAll(text, ".", lang.comma)
		}
		means = append(means, reached{m, mean(&report.Time, 1), mean(&report.InstanceTime, 1), mean(&report.Quality, 4)})
	}
	var differ []study.Cell
	for _, c := range report.Published.Cells {
		if !c.Same() {
			differ = append(differ, c)
		}
	}
	claims := slices.Clone(report.Published.Claims)
	for i := range claims {
		claims[i].Found = lang.found(claims[i].Found)
	}
	return view{template: "study", title: "study.title", data: struct {
		Scenario  string
		Others    []link
		Report    *study.Report
		Tally     study.Tally
		Means     []reached
		Differ    []study.Cell
		Claims    []study.Claim
		Published []chart
		Charts    []chart
	}{
		name, others, report, report.Published.Older.Plus(report.Published.Family), means, differ, claims,
		[]chart{
			{"time-published", lang.say("study.chart.published", lang.say("study.time"))},
			{"quality-published", lang.say("study.chart.published", lang.say("study.quality"))},
		}, lang.studyCharts(report),
	}}, nil
}

// found is what was found about a claim of the source.
func (l *language) found(text string) string {
	each := strings.Split(text, "; ")
	for i := range each {
		each[i] = l.reason(each[i])
	}
	if text = strings.Join(each, "; "); l.comma != "." {
		text = strings.ReplaceAll(afterNumber.ReplaceAllString(text, "$1; "), ".", l.comma)
	}
	return text
}

// afterNumber is where one number of several ends: a comma would be taken for that of the number.
var afterNumber = regexp.MustCompile(`([0-9]), `)

// studyCharts are those of means: by load, in each condition, and against the mean.
func (l *language) studyCharts(r *study.Report) (cs []chart) {
	for _, of := range []chart{
		{"time", l.say("study.time")}, {"quality", l.say("study.quality")}, {"instance-time", l.say("study.each")},
	} {
		cs = append(cs, chart{of.Name, l.say("study.chart.load", of.Title)},
			chart{of.Name + "-mean", l.say("study.chart.mean", of.Title)})
		for _, at := range r.ByLoad {
			cs = append(cs, chart{fmt.Sprintf("%s-load-%v", of.Name, at.Load),
				l.say("study.chart.condition", of.Title, l.number(at.Load))})
		}
	}
	return cs
}

// studyChart serves a chart of a study.
func (p *Page) studyChart(w http.ResponseWriter, r *http.Request) {
	report, err := p.studies.of(r.PathValue("scenario"))
	if report != nil {
		for _, c := range report.ChartsIn(languageOf(r.Context()).code) {
			if c.Name+".svg" == r.PathValue("chart") {
				p.picture(w, r, c.SVG, nil)
				return
			}
		}
	}
	p.picture(w, r, nil, cmp.Or[error](err, &missing{r.URL.Path}))
}
