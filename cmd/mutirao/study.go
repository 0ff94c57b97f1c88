package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/partition/aptitude"
	"github.com/mutirao-mesh/mutirao/partition/study"
)

func newStudyCommand() *cobra.Command {
	var names []string
	var seed uint64
	var dir string
	cmd := &cobra.Command{
		Use:   "study [SCENARIO]",
		Short: "° Compare the mechanisms that hand out work, by simulation",
		Long: `Simulates a scenario under each mechanism and compares the time they took and
the quality they reached, in pairs. SCENARIO is a YAML file; without one it is
five, the published study. The same seed gives the same bytes.`,
		Example: `  mutirao study
  mutirao study hospital.yaml --svg charts
  mutirao study --mechanism Sel-push --mechanism Sel-push-pull --seed 7 -o json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			scenario, err := readScenario(cmd.InOrStdin(), args)
			if err != nil {
				return err
			}
			mechanisms, err := studyMechanisms(names)
			if err != nil {
				return err
			}
			return runStudy(cmd.Context(), uiOf(cmd), scenario, mechanisms, seed, dir)
		},
	}
	cmd.Flags().StringArrayVar(&names, "mechanism", nil, "a `mechanism` to study, may be repeated (default: the published eight)")
	cmd.Flags().Uint64Var(&seed, "seed", study.DefaultSeed, "the `number` from which all chance comes")
	cmd.Flags().StringVar(&dir, "svg", "", "draw the charts, and one run under each mechanism, into this `folder`")
	return cmd
}

// readScenario reads the scenario file that the arguments name, if any. A
// process that it names is looked for beside it.
func readScenario(stdin io.Reader, args []string) (*study.Scenario, error) {
	if len(args) == 0 || args[0] == "five" {
		return study.Five(), nil
	}
	src, err := readSource(stdin, args[0])
	if err != nil {
		return nil, err
	}
	return study.Parse(args[0], src, func(name string) ([]byte, error) {
		if !filepath.IsAbs(name) {
			name = filepath.Join(filepath.Dir(args[0]), name)
		}
		return os.ReadFile(name)
	})
}

// studyMechanisms are those named, each once; the published eight when none is.
func studyMechanisms(names []string) ([]aptitude.Mechanism, error) {
	if len(names) == 0 {
		return aptitude.Mechanisms(), nil
	}
	var ms []aptitude.Mechanism
	for _, name := range names {
		m, err := aptitude.ParseMechanism(name)
		if err != nil {
			return nil, usagef("--mechanism: %v", err)
		}
		if !slices.Contains(ms, m) {
			ms = append(ms, m)
		}
	}
	return ms, nil
}

func runStudy(ctx context.Context, u *ui, s *study.Scenario, mechanisms []aptitude.Mechanism, seed uint64, dir string) error {
	results, err := runTrials(ctx, s, mechanisms, seed)
	if err != nil {
		return fmt.Errorf("study %s: %w", s.Name, err)
	}
	report := study.Summarize(s, mechanisms, seed, results)
	if dir != "" {
		if err := drawStudy(s, report, dir); err != nil {
			return fmt.Errorf("draw the charts: %w", err)
		}
		u.note("charts are in %s", dir)
	}
	return u.result(report, func(w io.Writer) { printStudy(u, w, report, isPublished(s)) })
}

// runTrials runs every trial, on all processors. Results stand in the order of
// the trials, so that they do not depend on who ran what when.
func runTrials(ctx context.Context, s *study.Scenario, mechanisms []aptitude.Mechanism, seed uint64) ([][]study.Result, error) {
	trials := s.Trials()
	results := make([][]study.Result, len(trials))
	errs := make([]error, len(trials))
	var next atomic.Int64
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(trials) {
					return
				}
				results[i], errs[i] = study.Run(s, trials[i], mechanisms, seed)
			}
		})
	}
	workers.Wait()
	for _, err := range append([]error{ctx.Err()}, errs...) {
		if err != nil {
			return nil, err
		}
	}
	return results, nil
}

// drawStudy writes the charts of the report, and those of one run under each
// mechanism.
func drawStudy(s *study.Scenario, r *study.Report, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	charts := map[string][]byte{"time": r.TimeChart(), "quality": r.QualityChart()}
	example := s.Example()
	for _, m := range r.Mechanisms {
		_, work, err := study.Trace(s, example, m, r.Seed)
		if err != nil {
			return err
		}
		name := strings.ToLower(string(m))
		charts["gantt-"+name] = s.Gantt(m, example, work)
		charts["allocation-"+name] = s.AllocationChart(m, example, work)
	}
	for name, svg := range charts {
		if err := os.WriteFile(filepath.Join(dir, name+".svg"), svg, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// printStudy prints the tables of a report, beside the published ones if the
// scenario is theirs.
func printStudy(u *ui, w io.Writer, r *study.Report, published bool) {
	var time, quality signs
	if published {
		time, quality = publishedTime, publishedQuality
	}
	fmt.Fprintf(w, "Scenario %s, seed %d: %d simulations of %s under %s.\n",
		r.Scenario, r.Seed, r.Simulations, plural(r.Conditions, "condition"), plural(len(r.Mechanisms), "mechanism"))
	fmt.Fprint(w, "\nTime until the last instance finished (less is better): mean ± 95 % confidence\n")
	printMeans(u, w, r, &r.Time, "%.1f ± %.1f")
	fmt.Fprint(w, "\nQuality, Q_total (more is better): mean ± 95 % confidence\n")
	printMeans(u, w, r, &r.Quality, "%.4f ± %.4f")
	fmt.Fprint(w, "\nTime, row against column: + better, - worse, = no significant difference (paired t-test, 95 %)\n")
	if published {
		fmt.Fprint(w, "Obtained/published; * where they differ\n")
	}
	printSigns(u, w, r, &r.Time, time)
	fmt.Fprint(w, "\nQuality, row against column\n")
	printSigns(u, w, r, &r.Quality, quality)
	if same, all := agreement(r); published && all > 0 {
		fmt.Fprintf(w, "\n%d of the %d published cells against Push, Pull, Typical, Receptive and Selective came out as published.\n", same, all)
	}
}

func printMeans(u *ui, w io.Writer, r *study.Report, m *study.Measure, format string) {
	t := table{head: []string{"MECHANISM", "ALL LOADS"}}
	for _, load := range r.Loads {
		t.head = append(t.head, fmt.Sprintf("LOAD %v", load))
	}
	for _, mech := range r.Mechanisms {
		row := []string{string(mech)}
		for _, s := range append([]study.Summary{m.Overall[mech]}, m.ByLoad[mech]...) {
			row = append(row, fmt.Sprintf(format, s.Mean, s.Margin))
		}
		t.add(row...)
	}
	t.write(u, w, "  ")
}

// signs is a published table: rows of signs, in the order of columns.
type signs map[aptitude.Mechanism]string

// The published tables (docs/study.md, What came out), for display only: columns are the
// mechanisms without Sel-push, in their order; a blank is a cell that the
// source leaves out.
var (
	publishedTime = signs{
		aptitude.SelPush:         "+---+-=",
		aptitude.SelPush10:       "+-=-+ +",
		aptitude.SelPushFlowtime: "+---+  ",
	}
	publishedQuality = signs{
		aptitude.SelPush:         "-++++++",
		aptitude.SelPush10:       "-+++= +",
		aptitude.SelPushFlowtime: "-+++-  ",
	}
	publishedColumns = []aptitude.Mechanism{
		aptitude.Push, aptitude.Pull, aptitude.Typical, aptitude.Receptive, aptitude.Selective,
		aptitude.SelPush10, aptitude.SelPushFlowtime,
	}
)

// isPublished reports whether the source has tables for this scenario. A file of
// the same name may say something else.
func isPublished(s *study.Scenario) bool { return reflect.DeepEqual(s, study.Five()) }

func (s signs) at(row, column aptitude.Mechanism) string {
	i := slices.Index(publishedColumns, column)
	if i < 0 || i >= len(s[row]) {
		return ""
	}
	return strings.TrimSpace(s[row][i : i+1])
}

// printSigns prints what was obtained and, after a slash, what was published;
// where they differ the cell is marked.
func printSigns(u *ui, w io.Writer, r *study.Report, m *study.Measure, published signs) {
	t := table{head: []string{"ROW"}}
	for _, column := range r.Mechanisms {
		t.head = append(t.head, string(column))
	}
	for _, row := range r.Mechanisms {
		cells := []string{string(row)}
		for _, column := range r.Mechanisms {
			cells = append(cells, cell(string(m.Test[row][column]), published.at(row, column)))
		}
		t.add(cells...)
	}
	t.write(u, w, "  ")
}

// cell is one cell of a sign table.
func cell(obtained, published string) string {
	switch published {
	case "":
		return obtained
	case obtained:
		return obtained + "/" + published
	}
	return obtained + "/" + published + " *"
}

// agreement counts the published cells against the first five mechanisms that
// came out alike.
func agreement(r *study.Report) (same, all int) {
	count := func(m *study.Measure, published signs) {
		for row := range published {
			for _, column := range publishedColumns[:5] {
				if obtained, ok := m.Test[row][column]; ok {
					all++
					if string(obtained) == published.at(row, column) {
						same++
					}
				}
			}
		}
	}
	count(&r.Time, publishedTime)
	count(&r.Quality, publishedQuality)
	return same, all
}
