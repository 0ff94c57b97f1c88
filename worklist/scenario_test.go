package worklist

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// TestScenarios runs testdata/scenarios/*.txt. Each is a story about people's work at a
// few nodes. Nothing is written, and nothing delivered, unless the story says so. Commands:
//
//	instance [responsible=U] [admin=ROLE] [notify="POLICY N"] [open=yes]
//	    tasks, a line each: NAME at=P [role=R] [offline] [limited] [after=(T,…)] [deadline=D] [transfer=D]
//	    [holds=(R,…)]
//	    resources: resource NAME capacity=N partition=X at=P
//	person U [roles=R,…] [away] [assigned=N] [selected=N]   comes, or is not as before
//	gone U                     is removed from the mesh
//	decide P                   P writes what it has to
//	ask P U MODE ITEM… [anew=(FACT,…)]   U asks P for items, which it has by these words as it knows
//	begin|release U P ITEM     U says so, at P
//	result U P ITEM [failed=REASON] [upon=(FACT,…)]
//	order U P ITEM WHAT, extend U P ITEM D, notify U P POLICY [N], adopt U P FACT
//	pass P U ITEM to=U         U asks P to hand an item on; role=R: to a role; neither: back.
//	                           grant=FACT: as if somebody had it by that; free: as if nobody had
//	delegate P U ITEM to=U     P writes the same, whether or not it may; grant=FACT: as if that were what it ends
//	lie P KIND ITEM [user=U] [grant=FACT] [result=FACT] [to=U]   P writes what it may not
//	replace P ITEM by=Q        a verdict of the core, written at P
//	keeper P RESOURCE by=Q     likewise
//	deliver P Q                Q gets all that P has
//	sees MECHANISM TASK [users=U,…]   whom the mechanism lets see it
//	advance D
//	show P                     all items as P knows them
//	loses U P                  what U is told
//	list U P [by=SORTING]      the items that U sees at P
//	move U P ITEM [after=ITEM] [before=ITEM]   by hand, in the list by hand
//	messages U P               what P tells U, and when it next may
//	together U [lost=P] [gone=P] PART=P:ITEM+…   locks items of several partitions; the answer of P is lost, or
//	                           the device is gone before P is asked to keep its items, or (gone=P-lock) for the lock
//	back U PART=P:ITEM+…       the device is back, and gives back what it got by its own words
//	ends P STATE               the instance ends, as the core concludes at P
//	same                       whether all nodes show the same, once all have all facts
//
// An ITEM is a task's attempt in charge as the node sees it, or TASK/FACT. Run with -rewrite
// to record, and review the difference.
func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata/scenarios", func(t *testing.T, path string) {
		s := &story{w: newWorld(t)}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			s.t, s.d, s.w.t = t, d, t
			if out := strings.TrimRight(s.run(), "\n"); out != "" {
				return out + "\n"
			}
			return ""
		})
	})
}

type story struct {
	t     *testing.T
	d     *datadriven.TestData
	w     *world
	hands map[User]*Hand
	asked map[User]map[workflow.PartnerID]askedOf // for joint locks
}

func (s *story) run() string {
	commands := map[string]func() string{
		"instance": s.instance, "person": s.person, "gone": s.gone, "decide": s.decide, "ask": s.ask,
		"begin":   func() string { return s.say(func(i Item, g ID) Body { return Begin{i, g} }) },
		"release": func() string { return s.say(func(i Item, g ID) Body { return Release{Item: i, Grant: g} }) },
		"result":  func() string { return s.say(s.result) },
		"order":   func() string { return s.say(func(i Item, _ ID) Body { return Order{Item: i, What: s.word(3)} }) },
		"extend": func() string {
			return s.say(func(i Item, _ ID) Body { return Extend{i, Due{After: s.span(s.word(3))}} })
		},
		"notify": s.notify, "adopt": s.adopt, "delegate": s.delegate, "pass": s.pass, "lie": s.lie,
		"replace": s.replace, "keeper": s.keeper,
		"deliver": s.deliver, "sees": s.sees, "loses": s.loses, "same": s.same,
		"list": s.list, "move": s.move, "messages": s.messages, "together": s.together, "back": s.back, "ends": s.ends,
		"advance": func() string { s.w.now += s.span(s.word(0)); return "" },
		"show":    func() string { return s.node(0).show() },
	}
	if fn := commands[s.d.Cmd]; fn != nil {
		return fn()
	}
	s.d.Fatalf(s.t, "unknown command %s", s.d.Cmd)
	return ""
}

func (s *story) word(i int) string {
	if i < len(s.d.CmdArgs) {
		return s.d.CmdArgs[i].Key
	}
	s.d.Fatalf(s.t, "argument %d is missing", i)
	return ""
}

func (s *story) arg(key string) string { return strings.Join(s.args(key), " ") }

func (s *story) args(key string) []string {
	if a, ok := s.d.Arg(key); ok {
		return a.Vals
	}
	return nil
}

func (s *story) span(text string) time.Duration {
	d, err := workflow.ParseDuration(text)
	if err != nil {
		s.d.Fatalf(s.t, "%v", err)
	}
	return d
}

func (s *story) node(i int) *node { return s.w.node(workflow.PartnerID(s.word(i))) }

// fact is the name of a fact by its label.
func (s *story) fact(label string) ID {
	for id, l := range s.w.labels {
		if l == label {
			return id
		}
	}
	s.d.Fatalf(s.t, "there is no fact %s", label)
	return ID{}
}

func (s *story) item(n *node, text string) Item {
	if slot, label, found := strings.Cut(text, "/"); found {
		if label == "" {
			return Item{Slot: workflow.TaskName(slot)}
		}
		return Item{s.fact(label), workflow.TaskName(slot)}
	}
	return n.item(text)
}

func (s *story) instance() string {
	s.w.terms = Terms{
		Workflow: "maintenance", Responsible: User(s.arg("responsible")),
		Administrators: workflow.RoleName(s.arg("admin")), Open: s.arg("open") != "",
	}
	if p := s.args("notify"); len(p) > 0 {
		s.w.terms.Policy = s.policy(p)
	}
	for line := range strings.Lines(s.d.Input) {
		_, args, err := datadriven.ParseLine(line)
		if err != nil {
			s.d.Fatalf(s.t, "%v", err)
		}
		name, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		s.task(name, args)
	}
	return ""
}

func (s *story) policy(words []string) Policy {
	p := Policy{Name: words[0]}
	if len(words) > 1 {
		p.N, _ = strconv.Atoi(words[1])
	}
	return p
}

func (s *story) task(name string, args []datadriven.CmdArg) {
	t := taskSpec{name: workflow.TaskName(name)}
	store := Store{}
	for _, a := range args {
		v := strings.Join(a.Vals, ",")
		switch a.Key {
		case "at":
			t.holder = workflow.PartnerID(v)
			store.Keepers = []Keeping{{Partner: t.holder}}
		case "role":
			t.Role = workflow.RoleName(v)
		case "offline":
			t.Offline = true
		case "limited":
			t.Limited = true
		case "after":
			for _, x := range a.Vals {
				t.after = append(t.after, workflow.TaskName(x))
			}
		case "deadline":
			t.Due.After = s.span(v)
		case "until":
			t.Due.At = start.Add(s.span(v))
		case "transfer":
			t.Transfer = s.span(v)
		case "warnings":
			for _, x := range a.Vals {
				t.Warnings = append(t.Warnings, s.span(x))
			}
		case "holds":
			for _, x := range a.Vals {
				t.Holds = append(t.Holds, Resource(x))
			}
		case "priority":
			t.Priority, _ = strconv.Atoi(v)
		case "size":
			t.Size, _ = strconv.ParseInt(v, 10, 64)
		case "capacity":
			store.Capacity, _ = strconv.Atoi(v)
		case "partition":
			store.Partition = workflow.PartitionName(v)
		default:
			store.Name = Resource(a.Key)
		}
	}
	if name == "resource" {
		s.w.stores = append(s.w.stores, store)
		return
	}
	s.w.tasks = append(s.w.tasks, t)
}

func (s *story) person() string {
	u := User(s.word(0))
	p := Person{User: u, Active: !s.d.HasArg("away"), Connected: s.w.now}
	var back string
	if s.d.MaybeScanArgs(s.t, "back", &back) { // after so long, as its device announced
		p.Back = s.w.now + s.span(back)
	}
	if was := s.w.people[u]; was != nil {
		p.Roles = was.Roles
		if was.Active && p.Active {
			p.Connected = was.Connected
		}
	}
	if s.d.HasArg("roles") {
		p.Roles = nil
		for _, r := range s.args("roles") {
			p.Roles = append(p.Roles, workflow.RoleName(r))
		}
	}
	p.Assigned, _ = strconv.Atoi(s.arg("assigned"))
	p.Selected, _ = strconv.Atoi(s.arg("selected"))
	s.w.people[u] = &p
	s.changed(u)
	return ""
}

func (s *story) gone() string {
	u := User(s.word(0))
	delete(s.w.people, u)
	s.changed(u)
	return ""
}

func (s *story) changed(u User) {
	for _, n := range s.w.nodes {
		if p := s.w.people[u]; p != nil {
			for _, r := range p.Roles {
				n.board.Changed(r, u)
			}
		}
		n.board.Changed("nobody", u)
	}
}

func (s *story) decide() string {
	n := s.node(0)
	written, out := n.decide()
	var b strings.Builder
	for _, f := range written {
		fmt.Fprintf(&b, "%s %s\n", f.label, s.said(f.Body))
	}
	if !out.Cancel.IsZero() {
		fmt.Fprintf(&b, "cancel the instance, by %s\n", s.w.label(out.Cancel))
		n.write("", cancelled{})
	}
	if out.Wake > 0 {
		fmt.Fprintf(&b, "wake in %s\n", out.Wake-s.w.now)
	}
	return b.String()
}

// said is what a holder wrote.
func (s *story) said(body Body) string {
	about := ""
	if items := body.about(); len(items) > 0 {
		about = " " + s.w.itemName(items[0])
	}
	switch x := body.(type) {
	case Offer:
		if x.All {
			return "offer" + about + " to all"
		}
		return fmt.Sprintf("offer%s to %v", about, x.To)
	case Transfer:
		return fmt.Sprintf("transfer%s to %s%s: %s", about, x.To, x.Role, x.Cause)
	case Revoke:
		return fmt.Sprintf("revoke%s: %s", about, x.Cause)
	case Close:
		if x.Result.IsZero() {
			return fmt.Sprintf("close%s by order %s", about, s.w.label(x.Order))
		}
		return fmt.Sprintf("close%s with %s", about, s.w.label(x.Result))
	case Reserve:
		return fmt.Sprintf("reserve %v for %s", x.Resources, s.w.itemName(x.Item))
	}
	return body.kind() + about
}

func (s *story) ask() string {
	n := s.node(0)
	var items []Item
	for _, a := range s.d.CmdArgs[3:] {
		if a.Key != "anew" {
			items = append(items, s.item(n, a.Key))
		}
	}
	var anew []ID
	for _, label := range s.args("anew") {
		anew = append(anew, s.fact(label))
	}
	f, err := n.ask(User(s.word(1)), Mode(s.word(2)), anew, items...)
	switch {
	case err != nil:
		return err.Error()
	case f == nil:
		return "has it already"
	}
	return fmt.Sprintf("%s grant", f.label)
}

// say has a user say something of an item that it holds, or held, at a node.
func (s *story) say(body func(Item, ID) Body) string {
	u, n := User(s.word(0)), s.node(1)
	i := s.item(n, s.word(2))
	return s.written(n, n.write(u, body(i, n.grant(i, u))))
}

func (s *story) written(n *node, f *told) string {
	out := f.label
	if why := n.board.Refused()[f.ID]; why != "" {
		out += " changes nothing: " + why
	}
	return out
}

func (s *story) result(i Item, g ID) Body {
	r := Result{Item: i, Grant: g, Reason: s.arg("failed"), Failed: s.d.HasArg("failed")}
	for _, label := range s.args("upon") {
		f := s.w.facts[s.fact(label)]
		r.Upon = append(r.Upon, Basis{f.Body.about()[0], f.ID})
	}
	return r
}

func (s *story) notify() string {
	n := s.node(1)
	var words []string
	for _, a := range s.d.CmdArgs[2:] {
		words = append(words, a.Key)
	}
	return s.written(n, n.write(User(s.word(0)), Notify{s.policy(words)}))
}

func (s *story) adopt() string {
	n, result := s.node(1), s.fact(s.word(2))
	return s.written(n, n.write(User(s.word(0)), Adopt{s.w.facts[result].Body.about()[0], result}))
}

// pass has a user ask a holder to pass an item on.
func (s *story) pass() string {
	n := s.node(0)
	i, by, to := s.item(n, s.word(2)), User(s.word(1)), User(s.arg("to"))
	h, _ := n.board.Holds(i)
	if s.arg("grant") != "" {
		h.Grant = s.fact(s.arg("grant"))
	} else if s.d.HasArg("free") {
		h.Grant = ID{}
	}
	x := NewTransfer(i, h.Grant, to, workflow.RoleName(s.arg("role")), "")
	person := func(u User) Person {
		if p := s.w.people[u]; p != nil {
			return *p
		}
		return Person{User: u}
	}
	already, err := n.board.Pass(n.partner(), x, person(by), person(to))
	switch {
	case err != nil:
		return err.Error()
	case already:
		return "it is so already"
	}
	return s.written(n, n.write(by, x))
}

func (s *story) delegate() string {
	n := s.node(0)
	i, to := s.item(n, s.word(2)), User(s.arg("to"))
	x := Transfer{
		Item: i, To: to, Role: workflow.RoleName(s.arg("role")), Cause: ByDelegation, Lease: DefaultLease(Handed),
	}
	if x.Role != "" {
		x.Cause = ByEscalation
	}
	if s.arg("grant") != "" {
		x.Grant = s.fact(s.arg("grant"))
	}
	return s.written(n, n.write(User(s.word(1)), x))
}

func (s *story) lie() string {
	n := s.node(0)
	i, u := s.item(n, s.word(2)), User(s.arg("user"))
	var grant, result ID
	if s.arg("grant") != "" {
		grant = s.fact(s.arg("grant"))
	}
	if s.arg("result") != "" {
		result = s.fact(s.arg("result"))
	}
	bodies := map[string]Body{
		"offer": Offer{Item: i, All: true}, "select": Grant{Items: []Item{i}, Mode: Select},
		"lock":    Grant{Items: []Item{i}, Mode: Lock},
		"release": Release{Item: i, Grant: grant}, "revoke": Revoke{Item: i, Grant: grant, Cause: ByOrder}, "begin": Begin{i, grant},
		"result": Result{Item: i, Grant: grant}, "close": Close{Item: i, Result: result}, "adopt": Adopt{i, result},
		"reopen": Reopen{Item: i}, "transfer": Transfer{Item: i, To: User(s.arg("to")), Cause: ByDeadline},
		"stop":    Close{Item: i, Order: result},
		"reserve": Reserve{Item: i, Resources: []Resource{Resource(s.arg("to"))}},
	}
	return s.written(n, n.write(u, bodies[s.word(1)]))
}

func (s *story) replace() string {
	n := s.node(0)
	f := n.write("", replaced{s.item(n, s.word(1)), workflow.PartnerID(s.arg("by"))})
	return f.label
}

func (s *story) keeper() string {
	return s.node(0).write("", keeps{Resource(s.word(1)), workflow.PartnerID(s.arg("by"))}).label
}

func (s *story) deliver() string {
	return fmt.Sprintf("%d facts", s.node(0).deliver(s.node(1)))
}

func (s *story) sees() string {
	sight := Sight{Limited: true}
	for _, u := range s.args("users") {
		sight.Users = append(sight.Users, User(u))
	}
	s.w.pulls[workflow.TaskName(s.word(1))] = sight
	for _, n := range s.w.nodes {
		n.board.Changed("")
	}
	return ""
}

func (s *story) loses() string {
	var b strings.Builder
	for _, l := range s.node(1).board.Losses(User(s.word(0))) {
		fmt.Fprintf(&b, "%s: %s", s.w.itemName(l.Item), l.Why)
		for _, w := range l.Works {
			fmt.Fprintf(&b, "; %s is kept", s.w.label(w))
		}
		b.WriteString("\n")
	}
	return b.String()
}

func (s *story) same() string {
	var names []workflow.PartnerID
	for n := range s.w.nodes {
		names = append(names, n)
	}
	slices.Sort(names)
	for range 2 {
		for _, a := range names {
			for _, b := range names {
				s.w.nodes[a].deliver(s.w.nodes[b])
			}
		}
	}
	for _, n := range names[1:] {
		if a, b := s.w.nodes[names[0]].show(), s.w.nodes[n].show(); a != b {
			return fmt.Sprintf("%s:\n%s%s:\n%s", names[0], a, n, b)
		}
	}
	return "all agree"
}

// entries are the items that a user sees at a node.
func (s *story) entries(u User, n *node) []Entry {
	var roles []workflow.RoleName
	if p := s.w.people[u]; p != nil {
		roles = p.Roles
	}
	return n.board.List(u, roles, s.w.moment())
}

func (s *story) hand(u User) *Hand {
	if s.hands == nil {
		s.hands = map[User]*Hand{}
	}
	if s.hands[u] == nil {
		s.hands[u] = NewHand()
	}
	return s.hands[u]
}

func (s *story) list() string {
	u := User(s.word(0))
	list := s.entries(u, s.node(1))
	by := Sorting(s.arg("by"))
	Sort(list, by, s.hand(u))
	if s.d.HasArg("prefetch") {
		LockedFirst(list)
	}
	var b strings.Builder
	for _, e := range list {
		fmt.Fprintf(&b, "%s %s", s.w.itemName(e.Item), e.State)
		if !e.Deadline.IsZero() {
			fmt.Fprintf(&b, " due in %s", e.Deadline.Sub(s.w.moment().Wall))
		}
		b.WriteString("\n")
	}
	return b.String()
}

func (s *story) move() string {
	u, n := User(s.word(0)), s.node(1)
	list := s.entries(u, n)
	find := func(name string) *Entry {
		for i := range list {
			if name != "" && list[i].Item == n.item(name) {
				return &list[i]
			}
		}
		return nil
	}
	s.hand(u).Move(find(s.word(2)), find(s.arg("after")), find(s.arg("before")), n.name)
	return ""
}

func (s *story) messages() string {
	list, next := s.node(1).board.Messages(User(s.word(0)), s.w.moment())
	var b strings.Builder
	for _, m := range list {
		fmt.Fprintf(&b, "%s %s: %s", m.At.Format("02 15:04"), m.ID.Type, m.Text)
		if m.Asks {
			b.WriteString(" (asks)")
		}
		b.WriteString("\n")
	}
	if next > 0 {
		fmt.Fprintf(&b, "next in %s\n", next-s.w.now)
	}
	return b.String()
}

func (s *story) ends() string {
	s.node(0).board.SetCourse(Course{
		Started: start, Ended: start.Add(s.w.now), State: workflow.InstanceState(s.word(1)),
	})
	return ""
}

func (s *story) together() string {
	u := User(s.word(0))
	var b strings.Builder
	j := NewJoint(s.parts())
	for step, more := j.Next(); more; step, more = j.Next() {
		if s.arg("gone") == string(step.Part.Holder) && step.Mode != Lock ||
			s.arg("gone") == string(step.Part.Holder)+"-lock" && step.Mode == Lock {
			return b.String() + "the device is gone\n"
		}
		fmt.Fprintf(&b, "%s: %s\n", step.Part.Holder, s.joint(j, u, step))
	}
	_, err := j.Done()
	fmt.Fprintf(&b, "%s\n", cmp.Or(errText(err), "all are locked"))
	return b.String()
}

// parts are the parts of a joint lock.
func (s *story) parts() (parts []Part) {
	for _, a := range s.d.CmdArgs[1:] {
		holder, items, is := strings.Cut(strings.Join(a.Vals, ","), ":")
		if !is {
			continue
		}
		p := Part{Partition: workflow.PartitionName(a.Key), Holder: workflow.PartnerID(holder)}
		for name := range strings.SplitSeq(items, "+") {
			p.Items = append(p.Items, s.w.node(p.Holder).item(name))
		}
		parts = append(parts, p)
	}
	return parts
}

// askedOf is what a user's device asked a holder for last, and by which word.
type askedOf struct {
	Grant
	word ID
}

// back has a user's device, which was lost in the middle of a joint lock, say once more what it asked for last, and
// give back what it got.
func (s *story) back() string {
	u := User(s.word(0))
	var b strings.Builder
	for _, p := range s.parts() {
		n, asked := s.w.node(p.Holder), s.asked[u][p.Holder]
		r := Request{
			Items: p.Items, Mode: asked.Mode, With: asked.With, Anew: asked.Anew, Word: asked.word, Person: *s.w.people[u],
		}
		if _, err := n.board.Ask(n.name, r); err != nil {
			fmt.Fprintf(&b, "%s: %s\n", p.Holder, err)
		}
		for _, i := range p.Items {
			h, held := n.board.Holds(i)
			if !held || h.User != u || !asked.Gave(asked.word, h.Word) {
				fmt.Fprintf(&b, "%s: %s is not given back\n", p.Holder, i.Slot)
				continue
			}
			fmt.Fprintf(&b, "%s: %s is given back, %s\n", p.Holder, i.Slot, n.write(u, Release{Item: i, Grant: h.Grant}).label)
		}
	}
	return b.String()
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// joint takes one step of a joint lock.
func (s *story) joint(j *Joint, u User, step JointStep) string {
	n := s.w.node(step.Part.Holder)
	if step.Mode == "" {
		for _, i := range step.Part.Items {
			if it := n.board.items[i]; it.open != nil {
				n.write(u, Release{Item: i, Grant: it.open.leased})
			}
		}
		j.Answered(nil)
		return "given back"
	}
	r := Request{Items: step.Part.Items, Mode: step.Mode, With: step.With, Person: *s.w.people[u]}
	if step.Mode == Lock {
		r.Anew = []ID{s.asked[u][n.name].word}
	}
	g, err := n.board.Ask(n.name, r)
	if err == nil && len(g.Items) > 0 {
		if s.asked == nil {
			s.asked = map[User]map[workflow.PartnerID]askedOf{}
		}
		if s.asked[u] == nil {
			s.asked[u] = map[workflow.PartnerID]askedOf{}
		}
		s.asked[u][n.name] = askedOf{g, n.write(u, g).ID}
	}
	if s.arg("lost") == string(n.name) {
		err = &Refusal{Item: step.Part.Items[0], Why: NoHolder, Text: "its holder does not answer"}
		j.Unanswered(err)
		return fmt.Sprintf("%s %s", step.Mode, errText(err))
	}
	j.Answered(err)
	return fmt.Sprintf("%s %s", step.Mode, cmp.Or(errText(err), "granted"))
}
