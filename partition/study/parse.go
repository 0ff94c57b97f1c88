package study

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/mutirao-mesh/mutirao/partition/aptitude"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// MaxSize is the greatest size of a scenario file, in bytes.
const MaxSize = 1 << 20

// maxWork bounds a study: simulated tasks per mechanism.
const maxWork = 100_000_000

// Parse reads a scenario file (docs/study.md, Scenario files). name is the
// file's name, for messages; open reads the file that a process: key names,
// and may be nil when there is none. The error is
// [workflow.Errors]: all mistakes at once, each with its place and what would
// have to change.
func Parse(name string, src []byte, open func(name string) ([]byte, error)) (*Scenario, error) {
	p := &scenarioParser{reader: reader{file: name}, open: open, scenario: defaults(name)}
	if len(src) > MaxSize {
		p.at(nil, "", "the file has more than %d bytes, which are the most that is read", MaxSize)
	} else if doc := p.document(src); doc != nil {
		p.read(doc)
	}
	if len(p.problems) > 0 {
		slices.SortStableFunc(p.problems, func(a, b workflow.Problem) int {
			return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
		})
		return nil, p.problems
	}
	return p.scenario, nil
}

// defaults is a scenario of which nothing is said yet; the numbers are those
// of the published study.
func defaults(file string) *Scenario {
	base := path.Base(strings.ReplaceAll(file, `\`, "/"))
	return &Scenario{
		Name:     strings.TrimSuffix(base, path.Ext(base)),
		MeanTime: 10, Instances: 20, Repetitions: 20,
		Loads:               []float64{0.2, 0.6, 1.0},
		TaskVariability:     []float64{0.2, 0.8, 1.4},
		ResourceVariability: []float64{0.2, 0.8, 1.4},
		Urgency:             aptitude.Urgency{Initial: aptitude.DefaultUrgency},
		Patience:            5,
		Shares:              KeptShares,
	}
}

// scenarioParser builds a scenario, section by section.
type scenarioParser struct {
	reader
	open     func(string) ([]byte, error)
	scenario *Scenario

	tasks []taskSource
	graph bool // some task says after
}

// scenarioKeys are the keys of a scenario file, each with what takes it in.
// Tasks come first and resources second whatever the file's order, since
// later ones refer to earlier ones.
var scenarioKeys = []struct {
	name string
	take func(*scenarioParser, ast.Node)
}{
	{"mean-time", func(p *scenarioParser, n ast.Node) { p.set(&p.scenario.MeanTime, n, "mean-time", positive) }},
	{"process", (*scenarioParser).takeProcess},
	{"tasks", (*scenarioParser).takeTasks},
	{"resources", (*scenarioParser).takeResources},
	{"critical-path", func(p *scenarioParser, n ast.Node) { p.scenario.CriticalPath = p.boolean(n, "critical-path") }},
	{"resources-per-role", func(p *scenarioParser, n ast.Node) {
		p.set(&p.scenario.ResourcesPerRole, n, "resources-per-role", positive)
	}},
	{"instances", func(p *scenarioParser, n ast.Node) { p.setCount(&p.scenario.Instances, n, "instances") }},
	{"repetitions", func(p *scenarioParser, n ast.Node) { p.setCount(&p.scenario.Repetitions, n, "repetitions") }},
	{"arrivals", (*scenarioParser).takeArrivals},
	{"loads", func(p *scenarioParser, n ast.Node) { p.scenario.Loads = p.numbers(n, "loads", positive) }},
	{"task-variability", func(p *scenarioParser, n ast.Node) {
		p.scenario.TaskVariability = p.numbers(n, "task-variability", variation)
	}},
	{"resource-variability", func(p *scenarioParser, n ast.Node) {
		p.scenario.ResourceVariability = p.numbers(n, "resource-variability", variation)
	}},
	{"urgency", func(p *scenarioParser, n ast.Node) { p.set(&p.scenario.Urgency.Initial, n, "urgency", fraction) }},
	{"urgency-growth", func(p *scenarioParser, n ast.Node) {
		p.set(&p.scenario.Urgency.Growth, n, "urgency-growth", unit)
	}},
	{"dispatching", (*scenarioParser).takeDispatching},
	{"due-factor", func(p *scenarioParser, n ast.Node) { p.set(&p.scenario.DueFactor, n, "due-factor", positive) }},
	{"relax", func(p *scenarioParser, n ast.Node) { p.scenario.Relax = p.boolean(n, "relax") }},
	{"compensate-violations", func(p *scenarioParser, n ast.Node) {
		p.scenario.Compensate = p.boolean(n, "compensate-violations")
	}},
	{"shares", (*scenarioParser).takeShares},
	{"patience", func(p *scenarioParser, n ast.Node) { p.set(&p.scenario.Patience, n, "patience", positive) }},
	{"rejection", func(p *scenarioParser, n ast.Node) { p.set(&p.scenario.Rejection, n, "rejection", unit) }},
	{"name", func(p *scenarioParser, n ast.Node) { p.scenario.Name, _ = p.text(n, "name") }},
	{"doc", func(p *scenarioParser, n ast.Node) { p.text(n, "doc") }},
}

func (p *scenarioParser) read(doc ast.Node) {
	es := p.entries(doc, "a scenario")
	if len(p.problems) > 0 {
		return
	}
	at := make(map[string]entry, len(es))
	var known []string
	for _, k := range scenarioKeys {
		known = append(known, k.name)
	}
	for _, e := range es {
		at[e.name] = e
		if !slices.Contains(known, e.name) {
			p.unknown(e, "a scenario", known)
		}
	}
	for _, k := range scenarioKeys {
		if e, ok := at[k.name]; ok {
			k.take(p, e.node)
		}
	}
	p.together(doc, at)
}

// together checks what no section can check alone, and completes the scenario.
func (p *scenarioParser) together(doc ast.Node, at map[string]entry) {
	_, tasks := at["tasks"]
	_, process := at["process"]
	switch {
	case tasks && process:
		p.fail(at["process"].key, "keep one of them", "a scenario has either tasks or a process")
	case !tasks && !process:
		p.fail(doc, "add tasks: or process: FILE.lxpdl", "the scenario has no tasks")
	}
	if _, ok := at["resources"]; !ok {
		p.fail(doc, "add resources:", "the scenario has no resources")
	}
	if p.scenario.Dispatching == aptitude.EDD && p.scenario.DueFactor == 0 {
		p.fail(at["dispatching"].node, "add due-factor: 2, for instance", "dispatching edd needs due dates")
	}
	if p.scenario.Relax && p.scenario.DueFactor == 0 {
		p.fail(at["relax"].node, "add due-factor: 2, for instance", "relax needs due dates")
	}
	p.checkArrivals(at)
	if len(p.problems) > 0 {
		return
	}
	p.finishTasks()
	p.checkPerformers()
	if len(p.problems) > 0 {
		return
	}
	if p.scenario.ResourcesPerRole == 0 {
		p.scenario.ResourcesPerRole = p.scenario.resourcesPerRole()
	}
	if work := len(p.scenario.Trials()) * p.scenario.Instances * len(p.scenario.Tasks); work > maxWork {
		p.fail(doc, "lower instances or repetitions, or vary less",
			"the study has %d tasks to simulate per mechanism: at most %d are accepted", work, maxWork)
	}
}

func (p *scenarioParser) set(to *float64, n ast.Node, what string, b bounds) {
	if x, ok := p.number(n, what, b); ok {
		*to = x
	}
}

func (p *scenarioParser) setCount(to *int, n ast.Node, what string) {
	if x, ok := p.number(n, what, count); ok {
		*to = int(x)
	}
}

func (p *scenarioParser) takeDispatching(n ast.Node) {
	s, ok := p.text(n, "dispatching")
	if !ok {
		return
	}
	d, err := aptitude.ParseDispatching(s)
	if err != nil {
		p.fail(n, "", "%v", err)
	}
	p.scenario.Dispatching = d
}

// arrivals are the ways in which instances come.
var arrivals = map[string]bool{"poisson": false, "together": true}

func (p *scenarioParser) takeArrivals(n ast.Node) {
	way, ok := p.text(n, "arrivals")
	if !ok {
		return
	}
	if p.scenario.Together, ok = arrivals[way]; !ok {
		p.fail(n, "write together, or poisson, which is the default", "there are no arrivals %q", way)
	}
}

func (p *scenarioParser) takeShares(n ast.Node) {
	rule, ok := p.text(n, "shares")
	switch of := Shares(rule); {
	case !ok:
	case of == KeptShares, of == RenewedShares, of == EarlierShares:
		p.scenario.Shares = of
	default:
		p.fail(n, "write renewed, earlier, or kept, which is the default", "there are no shares %q", rule)
	}
}

// checkArrivals makes sure that a load is stated only where instances come one
// after the other.
func (p *scenarioParser) checkArrivals(at map[string]entry) {
	if !p.scenario.Together {
		return
	}
	if loads, ok := at["loads"]; ok {
		p.fail(loads.key, "remove loads", "instances that arrive together have no load")
	}
	p.scenario.Loads = []float64{1}
}
