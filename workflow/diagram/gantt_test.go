package diagram_test

import (
	"encoding/xml"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/workflow/diagram"
)

// A chart has a row for each task, those first that began first, is well-formed whatever names are, and keeps
// every bar on its scale, whatever the clocks of partners say. How each stands is said in a column of its own, which
// neither bars nor the marks of the hours cross.
func TestGantt(t *testing.T) {
	at := func(s int) time.Time { return time.Date(2026, 7, 1, 8, 0, s, 0, time.UTC) }
	c := diagram.Chart{Title: "w@1 <script>", From: at(0), To: at(60), Bars: []diagram.Bar{
		{Name: "waits", State: workflow.NotReady},
		{Name: "second", Who: "bea & co", State: workflow.Running, Begin: at(30)},
		{Name: "first", Who: "ana", State: workflow.Succeeded, Begin: at(0), End: at(30), Others: []time.Time{at(20)}},
		{Name: "early", State: workflow.Failed, End: at(-100)},
		{Name: "late", State: workflow.Aborted, Begin: at(50), End: at(900)},
	}}
	for language, want := range map[string]string{"": "RUNNING · bea &amp; co",
		diagram.English: "running · bea &amp; co", diagram.Portuguese: "em execução · bea &amp; co"} {
		c.Language = language
		svg := string(diagram.Gantt(c))
		if !strings.Contains(svg, want) || strings.Contains(svg, "<script>") {
			t.Errorf("want %q, and no markup of others, in\n%s", want, svg)
		}
		if day := map[string]string{"": "2026-07-01 08:00:00", diagram.English: "2026-07-01 08:00:00", diagram.Portuguese: "01/07/2026 08:00:00"}[language]; !strings.Contains(svg, day) {
			t.Errorf("in language %q the day is not written as %s", language, day)
		}
		last := -1
		for _, name := range []string{">early<", ">first<", ">second<", ">late<", ">waits<"} {
			i := strings.Index(svg, name)
			if i <= last {
				t.Errorf("%s is not in its place", name)
			}
			last = i
		}
		for d := xml.NewDecoder(strings.NewReader(svg)); ; {
			tok, err := d.Token()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if e, ok := tok.(xml.StartElement); ok && e.Name.Local == "rect" {
				for _, a := range e.Attr {
					if a.Name.Local == "x" && (a.Value < "200" || len(a.Value) != 3) {
						t.Errorf("a bar at %s", a.Value)
					}
				}
			}
		}
	}
	for i, end := range []int{60, 60, 35} { // bars in different places
		c.Bars[i] = diagram.Bar{Name: "n", Who: strings.Repeat("w", 3+9*i), State: workflow.Succeeded, Begin: at(5 + i), End: at(end)}
	}
	svg := string(diagram.Gantt(c))
	beside := regexp.MustCompile(`<text class="detail" x="(\d+)" y="\d+">[^<]+ · ?[^<]*</text></g>`).FindAllStringSubmatch(svg, -1)
	for _, m := range beside {
		if m[1] != beside[0][1] {
			t.Errorf("how the tasks stand is not said in one column:\n%s", svg)
		}
	}
	if len(beside) != 3 {
		t.Errorf("it is said of %d tasks who had them, want 3:\n%s", len(beside), svg)
	}
	if svg := string(diagram.Gantt(diagram.Chart{Title: "empty", From: at(0), To: at(0)})); !strings.HasSuffix(svg, "</svg>\n") {
		t.Error("an instance that has just begun cannot be drawn")
	}
}

// Times are by the clocks of the chart's zone, whose hours and days the scale counts, and say which that is.
func TestGanttZone(t *testing.T) {
	from := time.Date(2026, 7, 1, 20, 45, 0, 0, time.UTC)
	for _, c := range []struct {
		zone *time.Location
		span time.Duration
		want []string
	}{
		{nil, 6 * time.Hour, []string{">2026-07-01 20:45:00 UTC<", ">21:00<", ">00:00<", "– 2026-07-02 02:45:00 UTC"}},
		{time.FixedZone("", 5*3600+1800), 6 * time.Hour, []string{">2026-07-02 02:15:00 +05:30<", ">03:00<", ">08:00<"}},
		{time.FixedZone("", -3*3600), 72 * time.Hour, []string{">2026-07-01 17:45:00 -03:00<", ">00:00<", ">12:00<"}},
		{time.FixedZone("", -3*3600), 144 * time.Hour, []string{">2026-07-02<", ">2026-07-07<"}},
	} {
		svg := string(diagram.Gantt(diagram.Chart{Title: "w", From: from, To: from.Add(c.span), Zone: c.zone,
			Bars: []diagram.Bar{{Name: "a", State: workflow.Succeeded, Begin: from, End: from.Add(c.span)}}}))
		for _, want := range c.want {
			if !strings.Contains(svg, want) {
				t.Errorf("in zone %v: want %q in\n%s", c.zone, want, svg)
			}
		}
		if strings.Contains(svg, ">2026-07-01<") {
			t.Errorf("in zone %v a day begins before the chart does:\n%s", c.zone, svg)
		}
	}
}
