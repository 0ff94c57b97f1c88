package partition_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/partition/aptitude"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// TestScenarios runs testdata/scenarios/*.txt. Each file is a story: a definition, its
// plan, and who takes what. Commands:
//
//	define            reads a definition; prints its warnings about the cut
//	plan              prints partitions, tasks and crossing edges
//	suggest [k=N]     prints a cut
//	partners          reads the partner list, a line each:
//	                  NAME [id=ID] [roles=A,B] [can=A,B] [runs=A,B] [load=X] [away]
//	                  [rested=X] [taken=X] [backlog=D] [says=TASK:X,…] [learned=TASK:X,…]
//	                  or NAME closed=WHY, with - for spaces: it takes no work
//	barred            prints which partitions hard constraints leave nobody for
//	droppable         prints which tasks the Optimizer may drop
//	candidates p=P    prints who can take a partition
//	assign [P=ID]… [self=ID]   prints who takes what
//	assign-tasks tasks=(A,B)   prints who takes the tasks together
//	distribute mechanism=M [rejected=ID] [P=ID]…   prints who takes what, and why
//	distribute-tasks mechanism=M tasks=(A,B)       likewise of tasks
//	find-performer mechanism=M|plain tasks=(A) [self=ID] [rejected=ID] [can-wait]   likewise of a person's task that is ready at self
//	entitled mechanism=M task=A [for=D] [left=D]   prints who sees a person's task that was offered for so long, with so much left
//
// Run with -rewrite to record, and review the difference.
func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata/scenarios", func(t *testing.T, path string) {
		s := &scenario{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			return s.run(t, d)
		})
	})
}

// elsewhere is the kind of work, a minute of it in all, of which partners have taken a share.
const elsewhere partition.Kind = 1

type scenario struct {
	def      *workflow.Definition
	plan     *partition.Plan
	partners []partition.Partner
	closed   []partition.Closed
}

func (s *scenario) run(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "define":
		def, err := workflow.Parse("workflow.yaml", []byte(d.Input))
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		s.def, s.plan = def, partition.New(def)
		return lines(partition.Check(s.plan))
	case "plan":
		return describe(s.plan)
	case "suggest":
		k := 0
		d.MaybeScanArgs(t, "k", &k)
		return describeCut(partition.Suggest(s.def, k))
	case "partners":
		s.partners, s.closed = readPartners(t, d)
		return ""
	case "candidates":
		var p string
		d.ScanArgs(t, "p", &p)
		return describeCandidates(partition.Candidates(s.plan, workflow.PartitionName(p), s.partners))
	case "assign":
		return s.assign(d)
	case "assign-tasks":
		return s.assignTasks(d)
	case "barred":
		return lines(partition.Barred(s.plan, s.partners))
	case "droppable":
		return table(func(row func(...any)) {
			for _, t := range s.def.Tasks {
				if ok, why := partition.Droppable(s.def, t); ok || why != "" {
					row(t.Name, ok, why)
				}
			}
		})
	case "distribute":
		return s.distribute(d)
	case "distribute-tasks":
		return s.distributeTasks(d, partition.DistributeTasks)
	case "find-performer":
		return s.distributeTasks(d, func(plan *partition.Plan, st partition.Situation,
			tasks ...workflow.TaskName) (partition.Choice, error) {
			return partition.FindPerformer(plan, st, tasks[0])
		})
	case "entitled":
		return s.entitled(t, d)
	}
	d.Fatalf(t, "unknown command %s", d.Cmd)
	return ""
}

func (s *scenario) entitled(t *testing.T, d *datadriven.TestData) string {
	st, _ := s.situation(d)
	var w partition.Waiting
	var task workflow.TaskName
	for _, arg := range d.CmdArgs {
		span := func() time.Duration {
			x, err := workflow.ParseDuration(arg.Vals[0])
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			return x
		}
		switch arg.Key {
		case "task":
			task = workflow.TaskName(arg.Vals[0])
		case "for":
			w.For = span()
			w.Offered = w.For
		case "left":
			w.Left, w.Ends = span(), true
		}
	}
	sight, err := partition.Entitled(s.plan, st, task, w)
	if err != nil {
		return "refused:\n" + err.Error()
	}
	return fmt.Sprintln(sight.May)
}

func lines[T fmt.Stringer](items []T) string {
	var b strings.Builder
	for _, item := range items {
		fmt.Fprintln(&b, item)
	}
	return b.String()
}

// table aligns columns that are parted by tabs.
func table(fn func(row func(cells ...any))) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fn(func(cells ...any) {
		for i, c := range cells {
			if i > 0 {
				fmt.Fprint(w, "\t")
			}
			fmt.Fprint(w, c)
		}
		fmt.Fprintln(w)
	})
	w.Flush()
	rows := strings.Split(b.String(), "\n")
	for i := range rows {
		rows[i] = strings.TrimRight(rows[i], " ")
	}
	return strings.Join(rows, "\n")
}

func describe(p *partition.Plan) string {
	partitions := table(func(row func(...any)) {
		row("partition", "tasks", "entry", "last", "timeout")
		for _, part := range p.Partitions() {
			timeout := span(part.Timeout, true)
			switch {
			case part.Timeout == 0:
				timeout = "none"
			case part.Declared:
				timeout += " (declared)"
			case part.FailsAtTaskLevel:
				timeout += " (of its task)"
			}
			row(part.Name, join(part.Tasks), join(part.Entry), join(part.Last), timeout)
		}
	})
	tasks := table(func(row func(...any)) {
		row("task", "partition", "immediate", "told", "emergency", "ready by", "ended by", "waits from")
		for _, name := range p.Definition().TopoOrder() {
			t := p.Definition().Task(name)
			immediate := "-"
			if p.ResponseImmediate(name) {
				immediate = "yes"
			}
			ready, readyOK := p.WorstCase(name)
			end, endOK := p.WorstEnd(name)
			from := "-"
			if t.TimeToWait > 0 {
				since, ok := p.WaitStart(name)
				if from = span(since, ok); !ok {
					from = span(since, true) + " or later"
				}
			}
			home := p.Home(name)
			if home == "" {
				home = "(anywhere)"
			}
			row(name, home, immediate, join(p.Listeners(name)), join(p.EmergencyListeners(name)), span(ready, readyOK),
				span(end, endOK), from)
		}
	})
	crossing := "crossing:"
	for _, e := range p.Crossing() {
		crossing += fmt.Sprintf(" %s->%s", e.From, e.To)
		if e.Kind != partition.Waits {
			crossing += fmt.Sprintf(" (%s)", e.Kind)
		}
	}
	return partitions + tasks + crossing + "\n"
}

func span(d time.Duration, known bool) string {
	if !known {
		return "never"
	}
	return workflow.FormatDuration(d)
}

func join[T ~string](names []T) string {
	if len(names) == 0 {
		return "-"
	}
	words := make([]string, len(names))
	for i, n := range names {
		words[i] = string(n)
	}
	return strings.Join(words, " ")
}

func describeCut(cut []workflow.PartitionDecl) string {
	var b strings.Builder
	for _, p := range cut {
		fmt.Fprintf(&b, "%s: %s\n", p.Name, join(p.Tasks))
	}
	return b.String()
}

func describeCandidates(candidates []partition.Candidate) string {
	return table(func(row func(...any)) {
		for _, c := range candidates {
			able := "no"
			if c.Able {
				able = "yes"
			}
			row(c.Partner, able, c.Why)
		}
	})
}

func describeChoice(c partition.Choice) string {
	return fmt.Sprintf("%s (%s): %s", c.Name, c.Partner, c.Why)
}

func (s *scenario) assign(d *datadriven.TestData) string {
	pins := make(map[workflow.PartitionName]workflow.PartnerID)
	var self workflow.PartnerID
	for _, arg := range d.CmdArgs {
		if arg.Key == "self" {
			self = workflow.PartnerID(arg.Vals[0])
			continue
		}
		pins[workflow.PartitionName(arg.Key)] = workflow.PartnerID(arg.Vals[0])
	}
	_, choices, err := partition.Assign(s.plan, s.partners, pins, self)
	if err != nil {
		return "refused:\n" + err.Error()
	}
	return table(func(row func(...any)) {
		for _, c := range choices {
			row(c.Partition, describeChoice(c))
		}
	})
}

func (s *scenario) assignTasks(d *datadriven.TestData) string {
	var tasks []workflow.TaskName
	for _, v := range d.CmdArgs[0].Vals {
		tasks = append(tasks, workflow.TaskName(v))
	}
	c, err := partition.AssignTasks(s.plan, s.partners, "", tasks...)
	if err != nil {
		return "refused:\n" + err.Error()
	}
	return describeChoice(c) + "\n"
}

// situation reads the arguments of a distribution; those left are pins.
func (s *scenario) situation(
	d *datadriven.TestData,
) (partition.Situation, map[workflow.PartitionName]workflow.PartnerID) {
	st := partition.Situation{
		Partners: s.partners, Closed: s.closed,
		InHand: map[partition.Kind]partition.InHand{elsewhere: {Ready: time.Minute, All: time.Minute}},
		Rand:   rand.New(rand.NewPCG(1, 1)), Data: map[workflow.DataName]workflow.Value{},
	}
	for _, x := range s.def.Data {
		st.Data[x.Name] = x.Default
	}
	pins := make(map[workflow.PartitionName]workflow.PartnerID)
	for _, arg := range d.CmdArgs {
		switch arg.Key {
		case "mechanism":
			if st.Mechanism = aptitude.Mechanism(arg.Vals[0]); arg.Vals[0] == "plain" {
				st.Mechanism = partition.PlainRule
			}
		case "self":
			st.Self = workflow.PartnerID(arg.Vals[0])
		case "rejected":
			st.Rejected = append(st.Rejected, workflow.PartnerID(arg.Vals[0]))
		case "of-users":
			st.OfUsers = append(st.OfUsers, workflow.RoleName(arg.Vals[0]))
		case "can-wait":
			st.CanWait = true
		case "tasks", "task", "for", "left":
		default:
			pins[workflow.PartitionName(arg.Key)] = workflow.PartnerID(arg.Vals[0])
		}
	}
	return st, pins
}

func (s *scenario) distribute(d *datadriven.TestData) string {
	st, pins := s.situation(d)
	_, choices, err := partition.Distribute(s.plan, st, pins)
	if err != nil {
		return "refused:\n" + err.Error()
	}
	var b strings.Builder
	for _, c := range choices {
		fmt.Fprintf(&b, "%s %s\n%s", c.Partition, describeChoice(c), explain(c))
	}
	return b.String()
}

func (s *scenario) distributeTasks(
	d *datadriven.TestData, find func(*partition.Plan, partition.Situation, ...workflow.TaskName) (partition.Choice,
		error),
) string {
	st, _ := s.situation(d)
	var tasks []workflow.TaskName
	for _, v := range d.CmdArgs[1].Vals {
		tasks = append(tasks, workflow.TaskName(v))
	}
	c, err := find(s.plan, st, tasks...)
	if err != nil {
		return "refused:\n" + err.Error()
	}
	return describeChoice(c) + "\n" + explain(c)
}

// explain prints the candidates of a choice, without its first line.
func explain(c partition.Choice) string {
	if c.Assignment == nil {
		return ""
	}
	_, candidates, _ := strings.Cut(c.Assignment.String(), "\n")
	return candidates + "\n"
}

func readPartners(t *testing.T, d *datadriven.TestData) (partners []partition.Partner, closed []partition.Closed) {
	for line := range strings.Lines(d.Input) {
		words := strings.Fields(line)
		if why, ok := strings.CutPrefix(words[len(words)-1], "closed="); ok {
			closed = append(closed, partition.Closed{
				ID: workflow.PartnerID("id-" + words[0]), Name: words[0], Why: strings.ReplaceAll(why, "-", " "),
			})
			continue
		}
		p := partition.Partner{
			Name: words[0], ID: workflow.PartnerID("id-" + words[0]), Reachable: true, Rested: 1,
			Suitability: map[string]float64{}, Learned: map[workflow.TaskName]float64{},
		}
		for _, word := range words[1:] {
			key, value, _ := strings.Cut(word, "=")
			switch key {
			case "id":
				p.ID = workflow.PartnerID(value)
			case "roles":
				p.Roles = split[workflow.RoleName](value)
			case "can":
				p.Capabilities = split[workflow.Capability](value)
			case "runs":
				p.Applications = split[workflow.ApplicationName](value)
			case "load":
				p.Load = number(d, t, value)
			case "rested":
				p.Rested = number(d, t, value)
			case "taken":
				taken := time.Duration(number(d, t, value) * float64(time.Minute))
				p.InHand = map[partition.Kind]partition.InHand{elsewhere: {Ready: taken, All: taken}}
			case "later": // of that minute so much, ready after so long
				much, wait, _ := strings.Cut(value, "@")
				time, err := workflow.ParseDuration(much)
				in, err2 := workflow.ParseDuration(wait)
				if err != nil || err2 != nil {
					d.Fatalf(t, "later=%s: want TIME@WAIT", value)
				}
				p.InHand = map[partition.Kind]partition.InHand{elsewhere: {All: time, Wait: in}}
			case "backlog":
				has, err := workflow.ParseDuration(value)
				if err != nil {
					d.Fatalf(t, "%s: %v", word, err)
				}
				p.Backlog = partition.InHand{Ready: has, All: has}
			case "says":
				for of := range strings.SplitSeq(value, ",") {
					name, x, _ := strings.Cut(of, ":")
					p.Suitability[name] = number(d, t, x)
				}
			case "learned":
				for of := range strings.SplitSeq(value, ",") {
					name, x, _ := strings.Cut(of, ":")
					p.Learned[workflow.TaskName(name)] = number(d, t, x)
				}
			case "away":
				p.Reachable = false
			default:
				d.Fatalf(t, "unknown word %s", word)
			}
		}
		partners = append(partners, p)
	}
	return partners, closed
}

func number(d *datadriven.TestData, t *testing.T, s string) (x float64) {
	if _, err := fmt.Sscan(s, &x); err != nil {
		d.Fatalf(t, "%s: %v", s, err)
	}
	return x
}

func split[T ~string](s string) []T {
	var out []T
	for word := range strings.SplitSeq(s, ",") {
		out = append(out, T(word))
	}
	return out
}
