package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/partition/aptitude"
	"github.com/mutirao-mesh/mutirao/partition/study"
	"github.com/mutirao-mesh/mutirao/workflow"
)

func newStudyCommand() *cobra.Command {
	var names []string
	var st studyRun
	var published bool
	cmd := &cobra.Command{
		Use:   "study [SCENARIO]",
		Short: "° Compare the mechanisms that hand out work, by simulation",
		Long: `Simulates a scenario under each mechanism and compares the time they took and
the quality they reached, in pairs. SCENARIO is a YAML file, or one of the
published scenarios, which are built in: five (when none is named), three and
selective. Of these it says which published results come out, and which do not.
-v prints the means of every condition, too. The same seed gives the same bytes.`,
		Example: `  mutirao study
  mutirao study three -v
  mutirao study --published
  mutirao study hospital.yaml --svg charts --instances
  mutirao study --mechanism Sel-push --mechanism Sel-push-pull --seed 7 -o json`,
		Args: argumentsFrom(0, "SCENARIO"),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return study.Builtins(), cobra.ShellCompDirectiveDefault // or a file
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if st.mechanisms, err = studyMechanisms(names); err != nil {
				return err
			}
			if published {
				if len(args) > 0 {
					return usagef("--published runs the published scenarios, not %s: leave one of them out", args[0])
				}
				return st.runPublished(cmd.Context(), uiOf(cmd))
			}
			scenario, err := readScenario(cmd.InOrStdin(), args)
			if err != nil {
				return err
			}
			return st.runOne(cmd.Context(), uiOf(cmd), scenario)
		},
	}
	cmd.Flags().StringArrayVar(&names, "mechanism", nil,
		"a `mechanism` to study, may be repeated (default: the published eight)")
	cmd.Flags().BoolVar(&published, "published", false,
		"run all published scenarios, and compare what is known of the published results")
	cmd.Flags().BoolVar(&st.instances, "instances", false, "also give time and quality of each instance, of one run")
	cmd.Flags().Uint64Var(&st.seed, "seed", study.DefaultSeed, "the `number` from which all chance comes")
	cmd.Flags().StringVar(&st.dir, "svg", "", "draw the charts, and one run under each mechanism, into this `folder`")
	return cmd
}

// readScenario gives the scenario that the arguments name: a published one, or a
// file. A process that it names is looked for beside it.
func readScenario(stdin io.Reader, args []string) (*study.Scenario, error) {
	if len(args) == 0 {
		return study.Five(), nil
	}
	if s := study.Builtin(args[0]); s != nil {
		return s, nil
	}
	src, err := readSource(stdin, args[0])
	var missing *api.Error
	if errors.As(err, &missing) {
		names := study.Builtins()
		hint := "built in are " + strings.Join(names, ", ")
		if near := workflow.Nearest(args[0], names); near != "" {
			hint += "; did you mean " + near + "?"
		}
		return nil, missing.WithHint("%s", hint)
	}
	if err != nil {
		return nil, err
	}
	return study.Parse(args[0], src, func(name string) ([]byte, error) {
		if !filepath.IsAbs(name) {
			name = filepath.Join(filepath.Dir(args[0]), name)
		}
		return readSource(nil, name)
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

// studyRun is how a study is run.
type studyRun struct {
	mechanisms []aptitude.Mechanism
	seed       uint64
	dir        string // for charts; empty: none are drawn
	instances  bool   // one run is given instance by instance
}

func (st *studyRun) runOne(ctx context.Context, u *ui, s *study.Scenario) error {
	report, err := st.run(ctx, s, st.dir)
	if err != nil {
		return err
	}
	if st.dir != "" {
		u.note("charts are in %s", st.dir)
	}
	return u.result(report, func(w io.Writer) { printStudy(u, w, report) })
}

// runPublished runs all published scenarios.
func (st *studyRun) runPublished(ctx context.Context, u *ui) error {
	doc := publishedStudies{Seed: st.seed}
	for _, name := range study.Builtins() {
		dir := st.dir
		if dir != "" {
			dir = filepath.Join(dir, name)
		}
		report, err := st.run(ctx, study.Builtin(name), dir)
		if err != nil {
			return err
		}
		doc.Tally = doc.Tally.Plus(report.Published.Older).Plus(report.Published.Family)
		doc.Unknown += len(report.Published.Unknown)
		doc.Scenarios = append(doc.Scenarios, report)
	}
	if st.dir != "" {
		u.note("charts are in %s", st.dir)
	}
	return u.result(doc, func(w io.Writer) { doc.print(u, w) })
}

// publishedStudies are the studies of all published scenarios.
type publishedStudies struct {
	Seed uint64 `json:"seed"`
	study.Tally
	// Unknown is how many cells more the source has, whose signs are not known here.
	Unknown   int             `json:"unknown"`
	Scenarios []*study.Report `json:"scenarios"`
}

func (st *studyRun) run(ctx context.Context, s *study.Scenario, dir string) (*study.Report, error) {
	results, err := runTrials(ctx, s, st.mechanisms, st.seed)
	if err != nil {
		return nil, fmt.Errorf("study %s: %w", s.Name, err)
	}
	report := study.Summarize(s, st.mechanisms, st.seed, results)
	if st.instances {
		if report.Run, err = study.RunInstances(s, s.Example(), st.mechanisms, st.seed); err != nil {
			return nil, fmt.Errorf("study %s: %w", s.Name, err)
		}
	}
	if dir != "" {
		if err := drawStudy(s, report, dir); err != nil {
			return nil, fmt.Errorf("draw the charts: %w", err)
		}
	}
	return report, nil
}

// runTrials runs every trial, on all processors. Results stand in the order of
// the trials, so that they do not depend on who ran what when.
func runTrials(
	ctx context.Context, s *study.Scenario, mechanisms []aptitude.Mechanism, seed uint64,
) ([][]study.Result, error) {
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
	charts := append(r.Charts(), study.Chart{Name: "scheduling-graph", SVG: s.SchedulingGraph()})
	example := s.Example()
	for _, m := range r.Mechanisms {
		_, work, err := study.Trace(s, example, m, r.Seed)
		if err != nil {
			return err
		}
		name := strings.ToLower(string(m))
		charts = append(charts, study.Chart{Name: "gantt-" + name, SVG: s.Gantt(m, example, work)},
			study.Chart{Name: "allocation-" + name, SVG: s.AllocationChart(m, example, work)})
	}
	for _, c := range charts {
		if err := os.WriteFile(filepath.Join(dir, c.Name+".svg"), c.SVG, 0o644); err != nil {
			return err
		}
	}
	return nil
}
