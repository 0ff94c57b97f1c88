package main

// driven is the first seed whose instances are driven by their data (sim.Driven).
const driven = 50_000_000

// ofFlows are mutants of data states (docs/design.md, Data states). They are run from that seed on.
var ofFlows = []mutant{
	{name: "flow-all-histories", what: "what a lost holder went on to do is in the history, too", patches: []patch{{
		"choreo/state/line.go", `			if next == nil || s.log.Knew(next, e) {
`, `			if next == nil || next != e {
`}}},
	{name: "flow-not-in-line", what: "a state need not know the one before", tested: true, patches: []patch{{
		"choreo/state/line.go", `		if f.Line.last != nil && !s.log.Knew(e, f.Line.last) {
			s.passOver(e)
`, `		if f.Line.last != nil && f.Line.last == e {
			s.passOver(e)
`}}},
	{name: "flow-not-begun-again", what: "whoever takes over does not begin what is pending once more", patches: []patch{{
		"choreo/state/line.go", `			f.Line.Board.HandOver()
			holder = of
`, `			holder = of
`}, {
		"choreo/state/line.go", `	if holder != end {
		f.Line.Board.HandOver()
	}
`, ``}}},
	{name: "flow-passed-over", what: "what ended and does not count is not begun once more", tested: true, patches: []patch{{
		"dataflow/board.go", `	if p := b.pending[job.Task]; p != nil && p.Job == job {
		p.Job = Job{}
		b.due`, `	if p := b.pending[job.Task]; p != nil && p.Job == job && job == (Job{}) {
		p.Job = Job{}
		b.due`}}},
	{name: "flow-untaken-ran", what: "what nobody had taken ran beside what brought a state", tested: true, patches: []patch{{
		"dataflow/board.go", `	if !waits {
`, `	if !waits || p.from == 0 {
`}}},
	{name: "flow-takings-unheard", what: "whom a transition was given is not in the line", patches: []patch{{
		"choreo/state/flow.go", `	if i >= 0 && of[i].Partner == e.Fact.Chain.Author {
`, `	if i >= 0 && of[i].Partner != e.Fact.Chain.Author {
`}}},
	{name: "flow-of-others", what: "anybody fires what somebody else holds", patches: []patch{{
		"choreo/state/flow.go", `	case a.Partner != e.Fact.Chain.Author:
		return nil, "its author does not hold the flow"
`, ``}}},
	{name: "flow-loss-not-undone", what: "what is in no history that counts stays as it is", patches: []patch{{
		"choreo/state/line.go", `		s.flow.lost[a] = true
`, ``}}},
	{name: "flow-undone-early", what: "what lost is undone before all know of it", patches: []patch{{
		"choreo/state/compensate.go", `func (s *State) settledFlow(job *Attempt) bool {
	f := s.flow
`, `func (s *State) settledFlow(job *Attempt) bool {
	if job != nil {
		return true
	}
	f := s.flow
`}}},
	{name: "flow-line-unknown", what: "a fork is folded although the history is not known yet", patches: []patch{{
		"choreo/state/overall.go", `s.flow == nil || s.flow.Line == nil || s.Overall()`, `s.flow == nil || s.Overall()`}}},
	{name: "flow-without-end", what: "a trigger fires more often than it may", patches: []patch{{
		"dataflow/board.go", `return !t.Disabled && (t.RepeatTimes == 0 || b.ran[i] < t.RepeatTimes)`,
		`return !t.Disabled && (t.RepeatTimes >= 0 || b.ran[i] < t.RepeatTimes)`}}},
	{name: "flow-undoing-for-ever", what: "nothing calls off a compensation that does not end", patches: []patch{{
		"dataflow/recover.go", `	case b.recovery != nil && x.Method != MethodForward:
`, `	case b.recovery != nil:
`}}},
	{name: "flow-not-fired", what: "what a state fires is not begun while something runs", patches: []patch{{
		"choreo/flows.go", `	case len(b.Due()) > 0:
`, `	case len(b.Due()) > 0 && len(b.Due()) == len(b.Pending()):
`}}},
	{name: "flow-recovered-by-anybody", what: "anybody recovers an instance", patches: []patch{{
		"choreo/state/claims.go", `	} else if Decides(body) {
`, `	} else if Decides(body) && !recovers(body) {
`}}},
}
