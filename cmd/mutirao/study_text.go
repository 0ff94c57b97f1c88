package main

import (
	"fmt"
	"io"

	"github.com/mutirao-mesh/mutirao/partition/aptitude"
	"github.com/mutirao-mesh/mutirao/partition/study"
)

// studyWidth is how wide the texts of a study are.
const studyWidth = 80

// studyText prints a report. Columns are mechanisms by their numbers, so that
// tables fit on a terminal.
type studyText struct {
	u *ui
	w io.Writer
	r *study.Report
}

// printStudy prints the tables of a report, beside the published ones if the
// scenario is theirs.
func printStudy(u *ui, w io.Writer, r *study.Report) {
	t := studyText{u, w, r}
	t.para("", "Scenario %s, seed %d: %d simulations of %s under %s.", r.Scenario, r.Seed, r.Simulations,
		plural(len(r.ByCondition), "condition"), plural(len(r.Mechanisms), "mechanism"))
	t.means()
	t.loads("Time", "%.1f ± %.1f", timeOf)
	t.loads("Time per instance", "%.1f ± %.1f", instanceTimeOf)
	t.loads("Quality", "%.4f ± %.4f", qualityOf)
	if u.verbose {
		t.conditions("Time", "%.1f", timeOf)
		t.conditions("Time per instance", "%.1f", instanceTimeOf)
		t.conditions("Quality", "%.3f", qualityOf)
	}
	fmt.Fprintln(w)
	t.para("", "Row against column: + significantly better, - worse, = no significant difference (paired t-test, 95 %%).")
	if p := r.Published; p != nil && len(p.Unknown) > 0 {
		t.para("", "After a slash: as published; * where that differs, ? where it is not known.")
	} else if p != nil {
		t.para("", "After a slash: as published; * where that differs.")
	}
	t.signs("Time", "time", &r.Time)
	t.signs("Quality", "quality", &r.Quality)
	t.published()
	t.instances()
}

func timeOf(m *study.Measures) *study.Measure         { return &m.Time }
func instanceTimeOf(m *study.Measures) *study.Measure { return &m.InstanceTime }
func qualityOf(m *study.Measures) *study.Measure      { return &m.Quality }

// para prints a sentence, broken into lines that begin with the indent.
func (t *studyText) para(indent, format string, args ...any) {
	for _, line := range wrap(fmt.Sprintf(format, args...), studyWidth-len(indent)) {
		fmt.Fprintln(t.w, indent+line)
	}
}

// table prints a table below its title.
func (t *studyText) table(title string, tab *table) {
	fmt.Fprintf(t.w, "\n%s\n", title)
	tab.write(t.u, t.w, "  ")
}

// means prints what was measured over all conditions.
func (t *studyText) means() {
	tab := table{head: []string{"", "MECHANISM", "TIME", "PER INSTANCE", "QUALITY"}}
	for i, mech := range t.r.Mechanisms {
		time, each, q := t.r.Time.Means[mech], t.r.InstanceTime.Means[mech], t.r.Quality.Means[mech]
		tab.add(fmt.Sprint(i+1), string(mech), fmt.Sprintf("%.1f ± %.1f", time.Mean, time.Margin),
			fmt.Sprintf("%.1f ± %.1f", each.Mean, each.Margin), fmt.Sprintf("%.4f ± %.4f", q.Mean, q.Margin))
	}
	t.table("Means over all conditions, with 95 % confidence intervals", &tab)
	t.para("  ", "Time is when the last instance finished, and per instance from its arrival to its end (less is better). "+
		"Quality is Q_total (more is better).")
	if p := t.r.Published; p != nil && len(p.Cells) > 0 {
		t.para("  ", "The published means are not known here, so that they are not compared.")
	}
}

// loads prints a measure at each load, a few of them beside each other.
func (t *studyText) loads(title, format string, of func(*study.Measures) *study.Measure) {
	const beside = 3
	for rest := t.r.ByLoad; len(rest) > 0; rest = rest[min(beside, len(rest)):] {
		tab := table{head: []string{"", "MECHANISM"}}
		for i := range rest[:min(beside, len(rest))] {
			tab.head = append(tab.head, fmt.Sprintf("LOAD %v", rest[i].Load))
		}
		for i, mech := range t.r.Mechanisms {
			row := []string{fmt.Sprint(i + 1), string(mech)}
			for j := range rest[:min(beside, len(rest))] {
				s := of(&rest[j].Measures).Means[mech]
				row = append(row, fmt.Sprintf(format, s.Mean, s.Margin))
			}
			tab.add(row...)
		}
		t.table(title+" by load", &tab)
	}
}

// conditions prints the means of a measure in each condition.
func (t *studyText) conditions(title, format string, of func(*study.Measures) *study.Measure) {
	tab := table{head: append([]string{"CONDITION"}, t.numbers()...)}
	for i := range t.r.ByCondition {
		c := &t.r.ByCondition[i]
		row := []string{fmt.Sprint(c.Load, c.TaskVariability, c.ResourceVariability)}
		if t.r.Together {
			row[0] = fmt.Sprint(c.TaskVariability, c.ResourceVariability)
		}
		for _, mech := range t.r.Mechanisms {
			row = append(row, fmt.Sprintf(format, of(&c.Measures).Means[mech].Mean))
		}
		tab.add(row...)
	}
	what := "load, variability of tasks and of resources"
	if t.r.Together {
		what = "variability of tasks and of resources"
	}
	t.table(title+" by condition: "+what, &tab)
}

// numbers are those of the mechanisms.
func (t *studyText) numbers() []string {
	var ns []string
	for i := range t.r.Mechanisms {
		ns = append(ns, fmt.Sprint(i+1))
	}
	return ns
}

// signs prints what was obtained and, after a slash, what was published; where
// they differ the cell is marked.
func (t *studyText) signs(title, measure string, m *study.Measure) {
	tab := table{head: append([]string{"", "ROW"}, t.numbers()...)}
	for i, row := range t.r.Mechanisms {
		cells := []string{fmt.Sprint(i + 1), string(row)}
		for _, column := range t.r.Mechanisms {
			cells = append(cells, t.cell(measure, m, row, column))
		}
		tab.add(cells...)
	}
	t.table(title, &tab)
}

func (t *studyText) cell(measure string, m *study.Measure, row, column aptitude.Mechanism) string {
	obtained := string(m.Test[row][column])
	if t.r.Published == nil {
		return obtained
	}
	c, ok := t.r.Published.At(measure, row, column)
	switch {
	case !ok && t.r.Published.Lacks(measure, row, column):
		return obtained + "/?"
	case !ok:
		return obtained
	case c.Same():
		return obtained + "/" + string(c.Published)
	}
	return obtained + "/" + string(c.Published) + "*"
}

// published says what came out as published, and what did not.
func (t *studyText) published() {
	p := t.r.Published
	if p == nil || len(p.Cells) == 0 {
		return
	}
	fmt.Fprintln(t.w)
	t.para("", "%d of the %d published cells against the older mechanisms came out as published%s.",
		p.Older.Same, p.Older.Cells, t.ofFamily())
	for _, c := range p.Cells {
		if !c.Same() {
			fmt.Fprintf(t.w, "  not: %s of %s against %s: %s, published %s\n", c.Measure, c.Row, c.Column, c.Obtained,
				c.Published)
		}
	}
	if n := len(p.Unknown); n > 0 {
		t.para("", "%s more within the Sel-push family cannot be compared: they were computed here, and their published signs are not known.",
			plural(n, "cell"))
		for _, c := range p.Unknown {
			fmt.Fprintf(t.w, "  here: %s of %s against %s: %s, published not known\n", c.Measure, c.Row, c.Column, c.Obtained)
		}
	}
	if len(p.Claims) > 0 {
		fmt.Fprintln(t.w, "\nWhat the source says besides:")
	}
	for _, c := range p.Claims {
		verdict := "does not come out: "
		if c.Holds {
			verdict = "comes out: "
		}
		t.para("  ", "%s%s.", verdict, c.Claim)
		t.para("    ", "Found: %s.", c.Found)
	}
}

// ofFamily says how the cells of the Sel-push family among itself came out, if
// any are known.
func (t *studyText) ofFamily() string {
	f := t.r.Published.Family
	if f.Cells == 0 {
		return ""
	}
	return fmt.Sprintf(", and %d of the %d within the Sel-push family", f.Same, f.Cells)
}

// instances prints time and quality of each instance of one run.
func (t *studyText) instances() {
	if t.r.Run == nil {
		return
	}
	fmt.Fprintln(t.w)
	t.para("", "One run, instance by instance: %s.", t.r.Run.Trial)
	t.instanceTable("Time from arrival to end",
		func(i *study.InstanceRun) string { return fmt.Sprintf("%.1f", i.Time) })
	t.instanceTable("Quality", func(i *study.InstanceRun) string { return fmt.Sprintf("%.3f", i.Quality) })
}

func (t *studyText) instanceTable(title string, value func(*study.InstanceRun) string) {
	runs := t.r.Run.Runs
	tab := table{head: append([]string{"", "ARRIVED"}, t.numbers()...)}
	for i := range runs[0].Instances {
		row := []string{fmt.Sprint(i + 1), fmt.Sprintf("%.1f", runs[0].Instances[i].Arrived)}
		for j := range runs {
			row = append(row, value(&runs[j].Instances[i]))
		}
		tab.add(row...)
	}
	t.table(title, &tab)
}

// print says of each published scenario what came out, and what did not.
func (p *publishedStudies) print(u *ui, w io.Writer) {
	for _, r := range p.Scenarios {
		t := studyText{u, w, r}
		fmt.Fprintf(w, "%s\n", u.paint(bold, "Scenario "+r.Scenario))
		t.means()
		t.published()
		fmt.Fprintln(w)
	}
	t := studyText{u, w, nil}
	t.para("", "In all, seed %d: %d of %d published cells came out as published.", p.Seed, p.Same, p.Cells)
	if p.Unknown > 0 {
		t.para("", "The source has %d. %d cannot be compared, as their signs are not known here: those within the Sel-push family in three and selective. What was computed for them is above.",
			study.PublishedCells, p.Unknown)
	}
}
