package choreo

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/partition/aptitude"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// TestScenarios runs testdata/scenarios/*.txt. Each is a story about one
// instance at a few partners. Nothing is delivered and no job ends unless the
// story says so. Commands:
//
//	workflow                  reads the definition
//	start at=P PART=P…        creates the instance; succession=(P,…) unless the
//	     [data=value…]        initiator is followed by the others by name
//	     [mechanism=M]        by what its work is distributed
//	     [transfer=D]         in place of the definition's; people are warned at twice as much
//	complete P TASK [data=value…]   the task succeeds at P: its job, or a person's word
//	begin P TASK              a person at P begins it, without a worklist
//	fail P TASK [reason=…]    the task, or its try, fails at P
//	lost P TASK [reason=…]    its job at P cannot run: nobody has the content of a file that it reads
//	reject P TASK [reason=…]  P passes a task that it has not started on, to whom takes names
//	leave P                   P gives on what it holds and has not begun; says what stays
//	cancel P
//	deliver [from=P] [to=P]   hands over the letters that are under way now
//	drop [from=P] [to=P]      loses them
//	stabilize [work]          delivers until there is nothing left; work: jobs end well, too
//	meet P P                  the two connect and compare what they have
//	crash P [window]          P dies and starts again with what it had persisted
//	wrong P D                 the wall clock of P is ahead by D from now on, or behind if D is negative
//	die P, rise P             P dies, and starts again later
//	backup P, restore P [incarnation=N]   copies P's disk; puts the copy back
//	lose-disk P incarnation=N P starts with an empty disk
//	gone P…, back P…          what the partner list says of them; absent P…: as they announced
//	evict P…                  likewise
//	write-off P at=P          by order
//	lacks P…, has P…          P has no role any more; has it again
//	takes TASK P              whom the partner list offers for a contingency, or to perform
//	                          a person's task; none: nobody
//	advance D                 time passes
//	gap P D                   P did not run for a while: it judges nothing for D, or until it has heard
//	lie P KIND SLOT [first]   P says something of the attempt in charge of a slot, or of its
//	     [to=P] [shows=ROLE]  first, that it may not say: whether it counts. Kinds are start,
//	                          success, done, ready, trigger, called-off, verdict, lost, assign, pass;
//	                          write-off names a partner, and shows=P its eviction
//	show P                    tasks as P knows them
//	partitions P              partitions as P knows them
//	jobs P                    what runs at P
//	history P                 the data states, as P knows them
//	recover P METHOD [steps=N]      the one who answers orders a step of recovery, at P
//	     [until=N] [data=value…]
//	facts P, owed P
//	built P                   what every start built upon, as P knows
//	flood P from=P chains=N   somebody who takes part tells P of N chains of its own that nobody else has
//	declined P                what P did not take in since the last time
//	messages                  who told whom what since the last time, with the reason
//	same                      whether all have the same state
//	person, removed, select, lock, release, bring, order, asks, again, forge,
//	items, kept               people's work: see claims_test.go
//	deadlines P [wrong=D]     how much time P thinks is left, whose wall clock is ahead by D;
//	     [told]               told: it knows by how much
//	unsettled P               why P must keep the facts of the instance if it has ended, when those
//	     [evicted=(P,…)]      partners are waited for no longer
//
// Run with -rewrite to record, and review the difference.
func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata/scenarios", func(t *testing.T, path string) {
		s := &story{t: t, backups: map[workflow.PartnerID][]Stored{}, grants: map[string]granted{}}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			s.t, s.d = t, d
			return s.run()
		})
	})
}

// story is one scenario file at work.
type story struct {
	t       *testing.T
	d       *datadriven.TestData
	w       *mesh
	told    []string
	backups map[workflow.PartnerID][]Stored
	floods  int                       // chains that liars opened
	grants  map[string]granted        // by person and task, what the person had last
	last    *fact.Claim               // the last word of a person
	said    *fact.Claim               // the last that was not brought yet
	brought map[string]worklist.Basis // by person and task, what the person brought last
}

func (s *story) run() string {
	if s.d.Cmd == "workflow" {
		def, err := workflow.Parse("workflow.yaml", []byte(s.d.Input))
		if err != nil {
			s.d.Fatalf(s.t, "%v", err)
		}
		s.w = newMesh(s.t, def)
		for _, arg := range s.d.CmdArgs {
			for _, p := range arg.Vals {
				s.w.prompt[workflow.PartnerID(p)] = true
			}
		}
		s.w.sent = s.hear
		return ""
	}
	s.w.t = s.t
	for _, commands := range []map[string]func() string{s.commands(), s.peoplesCommands()} {
		if fn := commands[s.d.Cmd]; fn != nil {
			return fn()
		}
	}
	s.d.Fatalf(s.t, "unknown command %s", s.d.Cmd)
	return ""
}

func (s *story) commands() map[string]func() string {
	return map[string]func() string{
		"start":      s.start,
		"complete":   func() string { return s.finish(Result{Outputs: s.values(2)}) },
		"fail":       func() string { return s.finish(Result{Failed: true, Reason: s.arg("reason")}) },
		"begin":      s.begin,
		"lost":       func() string { return s.finish(Result{Failed: true, Lost: true, Reason: s.arg("reason")}) },
		"reject":     s.reject,
		"leave":      s.leave,
		"cancel":     s.cancel,
		"deliver":    func() string { return s.mail(s.w.deliver) },
		"drop":       func() string { return s.mail(func(letter) {}) },
		"stabilize":  func() string { s.w.stabilize(s.d.HasArg("work")); return "" },
		"meet":       func() string { s.w.meet(s.who(0), s.who(1)); return "" },
		"crash":      func() string { s.w.crash(s.node(0)); return "" },
		"wrong":      s.wrong,
		"die":        s.die,
		"rise":       func() string { s.w.paused[s.who(0)] = false; s.w.reload(s.node(0)); return "" },
		"backup":     func() string { s.backups[s.who(0)] = s.node(0).backup(); return "" },
		"restore":    func() string { s.w.restore(s.node(0), s.backups[s.who(0)], s.incarnation()); return "" },
		"lose-disk":  func() string { s.w.restore(s.node(0), nil, s.incarnation()); return "" },
		"gone":       func() string { return s.list(true, false) },
		"absent":     func() string { return s.list(false, true) },
		"back":       func() string { return s.list(false, false) },
		"evict":      s.evict,
		"write-off":  s.writeOff,
		"takes":      s.takes,
		"lacks":      func() string { return s.roles(true) },
		"has":        func() string { return s.roles(false) },
		"advance":    s.advance,
		"gap":        s.gap,
		"lie":        s.lie,
		"show":       s.show,
		"partitions": s.partitions,
		"jobs":       s.jobs,
		"history":    s.history,
		"recover":    s.recover,
		"facts":      s.facts,
		"owed":       s.owed,
		"messages":   s.messages,
		"same":       s.same,
		"built":      s.built,
		"flood":      s.flood,
		"declined":   s.declined,
		"unsettled":  s.unsettled,
	}
}

// built lists the starts that count with what they built upon; what a start names
// itself, as it knew of several attempts, is marked.
func (s *story) built() string {
	var b strings.Builder
	m := s.node(0).m
	for _, e := range m.log.Order() {
		start := e.Fact.Body.Start
		if start == nil || !e.Counted {
			continue
		}
		var on []string
		a := m.state.Attempts()[start.Attempt]
		for from := range m.state.BuiltOn(a, e) {
			text := fmt.Sprintf("%s.%d", from.Task.Name, from.Depth)
			if slices.ContainsFunc(start.Consumed,
				func(c fact.Consumption) bool { return c.Slot == from.Slot.Task.Name }) {
				text += " (named)"
			}
			on = append(on, text)
		}
		if len(on) == 0 {
			on = []string{"nothing"}
		}
		fmt.Fprintf(&b, "%s.%d upon %s\n", a.Task.Name, a.Depth, strings.Join(on, ", "))
	}
	return b.String()
}

func (s *story) flood() string {
	m, n := s.node(0).m, 0
	if _, err := fmt.Sscan(s.arg("chains"), &n); err != nil {
		s.d.Fatalf(s.t, "%v", err)
	}
	liar := workflow.PartnerID(s.arg("from"))
	s.floods += n
	if _, err := m.Receive(liar, flood(s.t, m, liar, s.floods-n, n)); err != nil {
		return err.Error()
	}
	s.w.step(s.node(0))
	return fmt.Sprintf("%d chains of %s are here", len(m.log.ByAuthor()[liar]), liar)
}

func (s *story) declined() string {
	var out []string
	for _, d := range s.node(0).m.Declined() {
		out = append(out, fmt.Sprintf("%d facts of %s: %s", d.Facts, d.Author, d.Why))
	}
	return strings.Join(out, "\n")
}

func (s *story) unsettled() string {
	a, _ := s.d.Arg("evicted")
	return s.node(0).m.Unsettled(func(p workflow.PartnerID) bool { return slices.Contains(a.Vals, string(p)) })
}

// who is the partner that the i-th argument names.
func (s *story) who(i int) workflow.PartnerID { return workflow.PartnerID(s.d.CmdArgs[i].Key) }

func (s *story) node(i int) *node { return s.w.node(s.who(i)) }

func (s *story) arg(key string) string {
	if a, ok := s.d.Arg(key); ok {
		return strings.Join(a.Vals, ",")
	}
	return ""
}

func (s *story) incarnation() fact.Incarnation {
	n := s.node(0)
	if a, ok := s.d.Arg("incarnation"); ok {
		return fact.Incarnation{a.Vals[0][0] - '0'}
	}
	return n.inc
}

// values are the arguments from the i-th on that name data.
func (s *story) values(from int) map[workflow.DataName]workflow.Value {
	out := map[workflow.DataName]workflow.Value{}
	for _, a := range s.d.CmdArgs[min(from, len(s.d.CmdArgs)):] {
		data := s.data()
		i := slices.IndexFunc(data, func(d workflow.DataDecl) bool { return string(d.Name) == a.Key })
		if i < 0 {
			continue
		}
		text := strings.Join(a.Vals, ",")
		if text == "null" {
			out[data[i].Name] = nil
			continue
		}
		free := data[i] // whether it is within the limits is for the machine to say
		free.Enum, free.Min, free.Max = nil, nil, nil
		v, err := workflow.ParseValue(&free, text)
		if err != nil {
			s.d.Fatalf(s.t, "%v", err)
		}
		out[data[i].Name] = v
	}
	return out
}

// data are those that the node knows to which a command is given, which an amendment may have added.
func (s *story) data() []workflow.DataDecl {
	if len(s.d.CmdArgs) > 0 {
		if n := s.w.nodes[workflow.PartnerID(s.d.CmdArgs[0].Key)]; n != nil && n.m != nil {
			return n.m.Definition().Data
		}
	}
	return s.w.def.Data
}

func (s *story) start() string {
	at := map[workflow.PartitionName]workflow.PartnerID{}
	initiator := workflow.PartnerID(s.arg("at"))
	succession := []workflow.PartnerID{initiator}
	for _, p := range s.w.plan.Partitions() {
		at[p.Name] = workflow.PartnerID(s.arg(string(p.Name)))
		succession = append(succession, at[p.Name])
	}
	slices.Sort(succession[1:])
	if a, ok := s.d.Arg("succession"); ok {
		succession = nil
		for _, v := range a.Vals {
			succession = append(succession, workflow.PartnerID(v))
		}
	}
	g := s.w.genesis(at, unique(succession)...)
	g.Input = s.values(0)
	if m, u := s.arg("mechanism"), s.arg("responsible"); m != "" || u != "" {
		s.w.annex = &fact.Annex{Mechanism: aptitude.Mechanism(m), Responsible: worklist.User(u)}
	}
	if left := s.arg("transfer"); left != "" {
		s.w.annex = cmp.Or(s.w.annex, &fact.Annex{})
		var err error
		if s.w.annex.Transfer, err = time.ParseDuration(left); err != nil {
			return err.Error()
		}
		s.w.annex.Warnings = []time.Duration{2 * s.w.annex.Transfer}
	}
	if err := s.w.start(initiator, g); err != nil {
		return err.Error()
	}
	return ""
}

func unique(ps []workflow.PartnerID) []workflow.PartnerID {
	var out []workflow.PartnerID
	for _, p := range ps {
		if !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}

// finish ends a task: its job if it has one, else by a person's word.
func (s *story) finish(res Result) string {
	n, task := s.node(0), workflow.TaskName(s.d.CmdArgs[1].Key)
	if id, runs := n.jobOf(task); runs {
		s.w.end(n, id, res)
		return ""
	}
	if n.m == nil {
		return "the instance is not known there"
	}
	err := n.m.Finish(task, res, s.w.moment(), s.w)
	s.w.step(n)
	if err != nil {
		return err.Error()
	}
	return ""
}

// begin has a person begin a task at its holder.
func (s *story) begin() string {
	n := s.node(0)
	err := n.m.Begin(workflow.TaskName(s.d.CmdArgs[1].Key), s.w.moment(), s.w)
	s.w.step(n)
	if err != nil {
		return err.Error()
	}
	return ""
}

// lie has a node say what a correct one does not.
func (s *story) lie() string {
	n, kind, of := s.node(0), s.d.CmdArgs[1].Key, s.d.CmdArgs[2].Key
	to := workflow.PartnerID(s.arg("to"))
	var b fact.Body
	if kind == "write-off" {
		b.WriteOff = &fact.WriteOff{Partner: workflow.PartnerID(of)}
		if p := s.arg("shows"); p != "" {
			b.WriteOff.Eviction = []byte("evicted " + p)
		}
	} else {
		sl := n.m.state.BySlot()[workflow.TaskName(of)]
		a := sl.Current
		if s.d.HasArg("first") {
			a = sl.Attempts[0]
		}
		b = s.lieAbout(kind, a, to)
		b.Credentials = []byte(s.arg("shows"))
	}
	s.w.lies = true
	e, err := n.m.deciding(s.w.moment(), nil).append(b)
	if err != nil {
		return err.Error()
	}
	s.w.step(n)
	if e = n.m.log.ByID()[e.ID]; !e.Counted {
		return "does not count: " + e.Why
	}
	return "counts"
}

func (s *story) lieAbout(kind string, a *state.Attempt, to workflow.PartnerID) (b fact.Body) {
	t := a.Task
	switch kind {
	case "start":
		b.Start = &fact.Start{Attempt: a.ID, Try: 1}
	case "success":
		b.Success = &fact.Success{Attempt: a.ID, Try: 1}
	case "done":
		b.Start, b.Success = &fact.Start{Attempt: a.ID, Try: 1}, &fact.Success{Attempt: a.ID, Try: 1}
	case "ready", "trigger":
		b.Ready = &fact.ReadyBody{Attempt: a.ID, Trigger: kind == "trigger"}
	case "called-off":
		b.CalledOff = &fact.CalledOff{Attempt: a.ID}
	case "verdict", "lost":
		act := fact.Action{Attempt: a.ID, Kind: cmp.Or(t.OnFailure, workflow.FailBlock), Task: t.Contingency,
			Partner: to}
		b.Verdict = &fact.Verdict{Cause: fact.CauseTimeout, Actions: []fact.Action{act}}
		if kind == "lost" {
			b.Verdict.Cause = fact.CauseLost
		}
	case "release":
		b.Verdict = &fact.Verdict{Cause: fact.CauseReported,
			Actions: []fact.Action{{Attempt: a.ID, Kind: workflow.FailRelease}}}
	case "assign":
		b.Assign = &fact.Assign{After: a.ID, Task: t.Contingency, Partner: to}
		for _, r := range a.Rulings {
			b.Assign.Verdict = r.At.ID
		}
	case "pass":
		b.Assign = &fact.Assign{After: a.ID, Task: t.Name, Partner: to}
	default:
		s.d.Fatalf(s.t, "nobody can lie by a %s", kind)
	}
	return b
}

func (s *story) reject() string {
	n := s.node(0)
	c, err := n.m.Reject(workflow.TaskName(s.d.CmdArgs[1].Key), s.arg("reason"), s.w.moment(), s.w)
	s.w.step(n)
	if err != nil {
		return err.Error()
	}
	return "passed on to " + string(c.Partner)
}

func (s *story) leave() string {
	n := s.node(0)
	given, stays := n.m.GiveOn(string(n.id)+" leaves", s.w.moment(), s.w)
	s.w.step(n)
	var b strings.Builder
	for _, g := range given {
		fmt.Fprintf(&b, "%s to %s\n", g.Task, g.To.Partner)
	}
	for _, x := range stays {
		fmt.Fprintf(&b, "%s stays, %s: %v\n", x.Task, x.State, x.Why)
	}
	return b.String()
}

func (s *story) cancel() string {
	n := s.node(0)
	err := n.m.Cancel(s.arg("reason"), s.w.moment())
	s.w.step(n)
	if err != nil {
		return err.Error()
	}
	return ""
}

// mail does something with the letters that are under way and chosen.
func (s *story) mail(do func(letter)) string {
	from, to := s.arg("from"), s.arg("to")
	var chosen, rest []letter
	for _, l := range s.w.mail {
		if (from == "" || from == string(l.from)) && (to == "" || to == string(l.to)) {
			chosen = append(chosen, l)
		} else {
			rest = append(rest, l)
		}
	}
	s.w.mail = rest
	for _, l := range chosen {
		do(l)
	}
	return ""
}

func (s *story) die() string {
	s.w.die(s.node(0))
	return ""
}

func (s *story) wrong() string {
	d, err := time.ParseDuration(s.d.CmdArgs[1].Key)
	if err != nil {
		s.d.Fatalf(s.t, "%v", err)
	}
	s.node(0).wrong = d
	return ""
}

func (s *story) list(gone, absent bool) string {
	for i := range s.d.CmdArgs {
		s.w.gone[s.who(i)], s.w.absent[s.who(i)] = gone, absent
	}
	for _, id := range s.w.names() {
		s.w.step(s.w.nodes[id])
	}
	return ""
}

func (s *story) evict() string {
	for i := range s.d.CmdArgs {
		s.w.evicted[s.who(i)] = true
	}
	return s.list(true, false)
}

func (s *story) writeOff() string {
	n := s.w.node(workflow.PartnerID(s.arg("at")))
	err := n.m.WriteOff(s.who(0), s.w.moment())
	s.w.step(n)
	if err != nil {
		return err.Error()
	}
	return ""
}

func (s *story) roles(lacking bool) string {
	for i := range s.d.CmdArgs {
		s.w.lacking[s.who(i)] = lacking
	}
	for _, id := range s.w.names() {
		s.w.step(s.w.nodes[id])
	}
	return ""
}

func (s *story) takes() string {
	p := s.who(1)
	if p == "none" {
		p = ""
	}
	s.w.takers[workflow.TaskName(s.d.CmdArgs[0].Key)] = p
	for _, id := range s.w.names() {
		s.w.step(s.w.nodes[id])
	}
	return ""
}

func (s *story) advance() string {
	d, err := workflow.ParseDuration(s.d.CmdArgs[0].Key)
	if err != nil {
		return err.Error()
	}
	s.w.advance(d)
	return ""
}

func (s *story) gap() string {
	d, err := workflow.ParseDuration(s.d.CmdArgs[1].Key)
	if err != nil {
		return err.Error()
	}
	s.node(0).m.Gap(s.w.moment().Boot + d)
	return ""
}

func (s *story) show() string {
	n := s.node(0)
	if n.m == nil {
		return "it does not know the instance"
	}
	snap := n.m.Snapshot()
	var b strings.Builder
	tw := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, t := range snap.Tasks {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\n", t.Task.Name, t.Partner, t.State, strings.Join(remarks(t), "; "))
	}
	tw.Flush()
	fmt.Fprintf(&b, "instance: %s\n", snap.State)
	for _, d := range s.data() {
		if v, ok := snap.Data[d.Name]; ok {
			fmt.Fprintf(&b, "data: %s = %s\n", d.Name, spell(v))
		}
		if c := snap.Conflicts[d.Name]; len(c) > 0 {
			fmt.Fprintf(&b, "conflict: %s was also written by somebody who did not know of it: %v\n", d.Name, c)
		}
	}
	for _, i := range snap.Incidents {
		fmt.Fprintf(&b, "incident: %s %s%s%s\n", i.What, i.Task, i.Who, i.User)
	}
	return trimmed(b.String())
}

// joined names partners, one after the other.
func joined(ids []workflow.PartnerID) string {
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = string(id)
	}
	return strings.Join(names, ", ")
}

// partitions shows the partitions as a node knows them.
func (s *story) partitions() string {
	var b strings.Builder
	tw := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, p := range s.node(0).m.Snapshot().Partitions {
		fmt.Fprintf(tw, "%s\t%s\t%s\n", p.Name, joined(p.Now), p.State)
	}
	tw.Flush()
	return b.String()
}

// trimmed has no spaces at the ends of lines.
func trimmed(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " ")
	}
	return strings.Join(lines, "\n")
}

func remarks(t state.TaskView) []string {
	var out []string
	if t.Attempt > 1 {
		out = append(out, fmt.Sprintf("attempt %d", t.Attempt))
	}
	if t.ContingencyOf != "" {
		out = append(out, "stands in for "+string(t.ContingencyOf))
	}
	if t.ReplacedBy != "" {
		out = append(out, "replaced by "+string(t.ReplacedBy))
	}
	if t.TriggerFired {
		out = append(out, "its emergency trigger fired")
	}
	if t.PresumedBy != "" {
		out = append(out, "it goes on here; presumed to have failed by "+string(t.PresumedBy))
	}
	if t.Reason != "" {
		out = append(out, t.Reason)
	}
	for _, x := range t.Superseded {
		text := fmt.Sprintf("superseded: %s at %s, attempt %d", x.Task, x.Partner, x.Attempt)
		if x.Compensation != state.NotCompensated {
			text += ", compensation " + string(x.Compensation)
		}
		out = append(out, text)
	}
	return out
}

func (s *story) jobs() string {
	n, out := s.node(0), ""
	for _, id := range n.running() {
		j := n.jobs[id]
		out += fmt.Sprintf("%s, attempt %s, try %d", j.Task.Name, s.attempt(n.m, id), j.Try)
		if s.d.HasArg("given") {
			for _, d := range slices.Sorted(maps.Keys(j.Input)) {
				out += fmt.Sprintf(", %s=%v", d, j.Input[d])
			}
		}
		out += "\n"
	}
	return out
}

// attempt names an attempt without its hash.
func (s *story) attempt(m *Machine, id fact.AttemptID) string {
	if a := m.state.Attempts()[id]; a != nil {
		undo := ""
		if a.Undoes != nil {
			undo = "undo "
		}
		if a.Fired != nil {
			return fmt.Sprintf("%s%s in %s.%d", undo, id.Slot, a.Slot.Task.Name, a.Fired.Flow.Depth)
		}
		return fmt.Sprintf("%s%s.%d", undo, a.Slot.Task.Name, a.Depth)
	}
	return string(id.Slot) + ".?"
}

func (s *story) facts() string {
	m, out := s.node(0).m, ""
	for _, v := range m.Facts() {
		out += fmt.Sprintf("%3d %s.%d %s", v.Time, v.Fact.Chain.Author, v.Fact.Seq, s.describe(m, v.Fact))
		if v.Fact.Chain.Incarnation != (fact.Incarnation{1}) {
			out += fmt.Sprintf(" (incarnation %d)", v.Fact.Chain.Incarnation[0])
		}
		if !v.Counted {
			out += " (does not count)"
		}
		if v.Superseded {
			out += " (superseded)"
		}
		out += "\n"
	}
	return out
}

// describe says in a few words what a fact tells.
func (s *story) describe(m *Machine, f *fact.Fact) string {
	b := &f.Body
	switch {
	case b.Ready != nil:
		return "ready " + s.attempt(m, b.Ready.Attempt)
	case b.Start != nil && b.Success != nil:
		return "done " + s.attempt(m, b.Start.Attempt)
	case b.Start != nil:
		return "start " + s.attempt(m, b.Start.Attempt)
	case b.Success != nil:
		return "success " + s.attempt(m, b.Success.Attempt)
	case b.TryFailed != nil:
		return fmt.Sprintf("try %d failed %s", b.TryFailed.Try, s.attempt(m, b.TryFailed.Attempt))
	case b.CalledOff != nil:
		return "called-off " + s.attempt(m, b.CalledOff.Attempt)
	case b.Verdict != nil:
		out := "verdict " + string(b.Verdict.Cause)
		for _, a := range b.Verdict.Actions {
			out += fmt.Sprintf(" %s:%s", s.attempt(m, a.Attempt), a.Kind)
			if a.Task != "" {
				out += fmt.Sprintf(" %s at %s", a.Task, a.Partner)
			}
		}
		return out
	case b.WriteOff != nil:
		return fmt.Sprintf("write-off %s", b.WriteOff.Partner)
	case b.Claim != nil:
		body, _ := b.Claim.Read()
		who, _ := m.state.SpeakerOf(b.Claim)
		kind, about := strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%T", body), "worklist.")), "the instance"
		if ids := b.Claim.About(); len(ids) > 0 {
			about = s.attempt(m, ids[0])
		}
		switch x := body.(type) {
		case worklist.Reserve:
			about = fmt.Sprintf("%v for %s", x.Resources, s.attempt(m, fact.AttemptIDOf(x.Item)))
		case worklist.Keep:
			about = string(x.Partition)
		}
		if o, orders := body.(worklist.Order); orders {
			kind += " " + o.What
		}
		return strings.TrimSpace(fmt.Sprintf("claim %s %s %s", kind, about, who.User))
	case b.Assign != nil && b.Annex != nil && b.Annex.Offered:
		return fmt.Sprintf("offer %s to %s", b.Assign.Task, b.Assign.Partner)
	case b.Assign != nil:
		return fmt.Sprintf("assign %s at %s", b.Assign.Task, b.Assign.Partner)
	}
	return b.Kind()
}

func (s *story) owed() string {
	m, out := s.node(0).m, ""
	for _, p := range m.Participants() {
		if p != m.self && m.Owes(p) {
			own := m.log.Index()[m.chain].Strands[0]
			e := own.Number(m.peer(p).owed.At(own.Place))
			out += fmt.Sprintf("%s: all up to %s\n", p, s.describe(m, e.Fact))
		}
	}
	return out
}

// hear notes a letter for messages.
func (s *story) hear(l letter, b *Bundle) {
	m := s.w.node(l.from).m
	var what []string
	for _, o := range b.Facts {
		text := s.describe(m, o.e.Fact)
		if p := o.e.Fact.Chain.Author; p != l.from {
			text = string(p) + "'s " + text
		}
		what = append(what, text)
	}
	s.told = append(s.told, fmt.Sprintf("%s to %s: %s (%s)", l.from, l.to, strings.Join(what, ", "),
		strings.Join(s.reasons(m, l.to, b), "; ")))
}

// reasons are the lines of the table in route.go that call for a letter.
func (s *story) reasons(m *Machine, to workflow.PartnerID, b *Bundle) []string {
	var out []string
	add := func(r string) {
		if !slices.Contains(out, r) {
			out = append(out, r)
		}
	}
	for _, o := range b.Facts {
		if o.e.Fact.Chain != m.chain {
			continue
		}
		switch f := &o.e.Fact.Body; {
		case f.Genesis != nil || f.Verdict != nil || f.Assign != nil || f.Cancel != nil || f.Seen != nil ||
			f.WriteOff != nil || f.Claim != nil && !reserves(f.Claim):
			add("a " + f.Kind() + " goes to everybody")
		case f.Claim != nil:
			add("units, for whoever waits for them and those who judge")
		case f.Success != nil && m.state.Attempts()[f.Success.Attempt] != nil:
			s.reasonsOfSuccess(m, to, m.state.Attempts()[f.Success.Attempt], add)
		}
	}
	for _, g := range m.state.Genesis().Assign {
		if len(out) == 0 && g.Partner == m.self && m.ended[g.Partition] {
			add(string(g.Partition) + " has ended")
		}
	}
	for _, o := range b.Facts {
		f := &o.e.Fact.Body
		if len(out) > 0 || f.Start == nil ||
			slices.ContainsFunc(m.begun,
				func(x begun) bool { return x.start.Fact.Body.Start.Attempt == f.Start.Attempt }) {
			continue
		}
		if a := m.state.Attempts()[f.Start.Attempt]; a != nil && a.Runs() && // nil: a fork took it away
			(m.state.Awaiting(a)[to] || m.looking(Moment{}, s.w).judges()[0] == to) {
			add(string(a.Task.Name) + " still runs")
		}
	}
	if len(out) == 0 {
		add("asked for, or compared")
	}
	return out
}

func (s *story) reasonsOfSuccess(m *Machine, to workflow.PartnerID, a *state.Attempt, add func(string)) {
	if len(a.Slot.Attempts) > 1 || a.Undoes != nil {
		add("a success of one of several attempts goes to everybody")
		return
	}
	elsewhere := false
	for _, d := range a.Slot.Dependents {
		elsewhere = elsewhere || d.Current.Partner != m.self
		if d.Current.Partner == to {
			add(string(d.Task.Name) + " waits for " + string(a.Task.Name))
		}
	}
	var readers []*state.Slot
	for _, it := range a.Slot.Writes {
		readers = append(readers, it.Askers...)
	}
	slices.SortFunc(readers, func(x, y *state.Slot) int { return x.Place - y.Place })
	for _, d := range readers {
		elsewhere = elsewhere || d.Current.Partner != m.self
		if d.Current.Partner == to {
			add(string(d.Task.Name) + " waits for data of " + string(a.Task.Name))
		}
	}
	if elsewhere && slices.Contains(m.looking(Moment{}, s.w).guardians(), to) {
		add("guardian or next, of " + string(a.Task.Name))
	}
	for _, part := range m.state.Plan().EmergencyListeners(a.Slot.Task.Name) {
		if m.state.Holders()[part] == to {
			add("an emergency task there is armed by " + string(a.Task.Name))
		}
	}
}

func (s *story) messages() string {
	out := strings.Join(s.told, "\n")
	s.told = nil
	return out
}

func (s *story) same() string {
	if err := s.w.sameEverywhere(); err != nil {
		return err.Error()
	}
	return "yes"
}

// reserves reports whether a claim gives units of resources out.
func reserves(c *fact.Claim) bool {
	_, ok := c.Body().(worklist.Reserve)
	return ok
}
