package choreo

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"pgregory.net/rapid"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/workflow/amendments"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// The commands of stories about people's work:
//
//	person U at=P [roles=(R,…)]   somebody whose key is at P may have people's work, and can be reached unless away
//	     [away]
//	removed U                     nobody knows that person any more
//	select|lock|keep U P TASK…    U asks P for items; with: together with those of others
//	     [with=(TASK,…)]
//	release U P TASK              U gives one back, under the grant that U had last
//	bring U P TASK [failed=R]     U brings P a result, under the grant that U had last
//	     [data=value…]            upon: made from U's last results of those
//	     [upon=(TASK,…)]
//	order U P WHAT [TASK]         U brings P an order: again, stop, continue or cancel
//	pass U P TASK to=V|role=R     U asks P to pass an item on; neither: back. stale: as U had it last
//	adopt U P [V [TASK]] [nth=N]  U asks P to adopt the last result of V that does not count, or of anybody; nth: the
//	                              N-th of them
//	extend U P TASK SPAN          U asks P to have a task due so long after it was ready
//	notify U P POLICY [N]         U brings P a change of whom items are offered to
//	amend U P KIND NAME KEY       U brings P an amendment: a key of a part, with its value; none: it is not written
//	     [VALUE]                  any more
//	edit U P [PART=Q…]            U brings P the amendment that makes the text below of what the instance runs by; new
//	                              partitions are at Q, and others move there
//	amended P                     the amendments that count, and what was made side by side, as P knows
//	say U P TASK …, hears P       the same, and P is brought it later
//	asks P                        failures that wait for an order, as P knows
//	again U P                     P is sent U's last word once more
//	forge P KIND TASK [user=U]    P writes a claim that it may not: grant, steal, release, revoke,
//	                              pass, result, close, offer, notify, repeat; the word in it is of U, else made up
//	items P                       what people can do, and who has it, as P knows
//	ahead P [for=U]               what is not ready, and waits for what, as P knows; for: of what U has
//	kept P                        results that do not count, as P knows
//	losses U P                    what U had and lost, why, and how long ago, as P knows
func (s *story) peoplesCommands() map[string]func() string {
	return map[string]func() string{
		"person": s.person, "removed": s.removed,
		"select": func() string { return s.ask(worklist.Select) },
		"lock":   func() string { return s.ask(worklist.Lock) },
		"keep":   func() string { return s.ask(worklist.Handed) },
		"ahead":  s.ahead,
		"pass":   s.pass, "adopt": s.adopt, "notify": s.notify, "amend": s.amend, "edit": s.edit, "amended": s.amended,
		"order": s.order, "asks": s.asks, "release": s.release,
		"extend": s.extend,
		"bring":  s.bring, "say": s.bring, "hears": s.hears, "again": s.again, "forge": s.forge, "items": s.items,
		"kept":      s.kept,
		"had":       s.had,
		"losses":    s.losses,
		"deadlines": s.deadlines,
	}
}

func (s *story) person() string {
	u := worklist.User(s.d.CmdArgs[0].Key)
	p := fact.Speaker{User: u, At: workflow.PartnerID(s.arg("at"))}
	if a, ok := s.d.Arg("roles"); ok {
		for _, r := range a.Vals {
			p.Roles = append(p.Roles, workflow.RoleName(r))
		}
	}
	s.w.people[u] = p
	if was := s.w.away[u]; was && !s.d.HasArg("away") {
		s.w.came[u] = s.w.now
	}
	s.w.away[u] = s.d.HasArg("away")
	return s.allStep()
}

func (s *story) removed() string {
	delete(s.w.people, worklist.User(s.d.CmdArgs[0].Key))
	return s.allStep()
}

func (s *story) allStep() string {
	for _, id := range s.w.names() {
		if n := s.w.nodes[id]; n.m != nil {
			n.m.PeopleChanged()
			s.w.step(n)
		}
	}
	return ""
}

// word is what a person says, with what testTrust believes.
func (w *mesh) word(p fact.Speaker, body worklist.Body) *fact.Claim {
	says, err := worklist.Encode(body)
	if err != nil {
		w.t.Fatal(err)
	}
	w.words++
	roles := make([]string, len(p.Roles))
	for i, r := range p.Roles {
		roles[i] = string(r)
	}
	word := fmt.Sprintf("%s at %s: %s", p.User, p.At, strings.Join(roles, ","))
	return &fact.Claim{Says: says, Nonce: [16]byte{w.words, byte(len(w.nodes))}, Word: []byte(word)}
}

// put has a node write down what a person says.
func (w *mesh) put(n *node, c *fact.Claim) (Claimed, error) {
	got, err := n.m.Claim(c, w.moment(), w)
	w.step(n)
	return got, err
}

func (s *story) put(n *node, c *fact.Claim) string {
	s.last = c
	got, err := s.w.put(n, c)
	switch {
	case err != nil:
		return err.Error()
	case got.Already:
		return "it is so already"
	case got.Kept != "":
		return "kept: " + got.Kept
	}
	return ""
}

// itemAt is the item of the attempt in charge of a slot, of a transition that is pending, or of a compensation by a
// person that is under way, as a node knows.
func (n *node) itemAt(t string) worklist.Item {
	if u := n.m.personsUndo(workflow.TaskName(t)); u != nil {
		return state.ItemOf(u.ID)
	}
	if f := n.m.state.Flow(); f != nil {
		return state.ItemOf(f.Latest[workflow.TaskName(t)].ID)
	}
	return state.ItemOf(n.m.state.BySlot()[workflow.TaskName(t)].Current.ID)
}

func (s *story) speaker() fact.Speaker { return s.w.people[worklist.User(s.d.CmdArgs[0].Key)] }

func (s *story) ask(mode worklist.Mode) string {
	n, g := s.node(1), worklist.Grant{Mode: mode, Lease: worklist.DefaultLease(mode)}
	for _, a := range s.d.CmdArgs[2:] {
		if a.Key != "with" {
			g.Items = append(g.Items, n.itemAt(a.Key))
			continue
		}
		for _, t := range a.Vals {
			g.With = append(g.With, n.itemAt(t))
		}
	}
	out := s.put(n, s.w.word(s.speaker(), g))
	for _, i := range g.Items {
		if h, held := n.m.state.Work().Holds(i); held && string(h.User) == s.d.CmdArgs[0].Key {
			s.grants[s.d.CmdArgs[0].Key+" "+string(i.Slot)] = granted{i, h.Grant}
		}
	}
	return out
}

// granted is an item as somebody was given it.
type granted struct {
	item  worklist.Item
	grant worklist.ID
}

// granted is what the person of a command had last of a task; else the attempt in charge, and
// no grant.
func (s *story) granted() (worklist.Item, worklist.ID) {
	t := s.d.CmdArgs[2].Key
	g, had := s.grants[s.d.CmdArgs[0].Key+" "+t]
	if !had {
		g.item = s.node(1).itemAt(t)
	}
	return g.item, g.grant
}

func (s *story) release() string {
	i, g := s.granted()
	return s.put(s.node(1), s.w.word(s.speaker(), worklist.Release{Item: i, Grant: g}))
}

func (s *story) bring() string {
	i, g := s.granted()
	r := worklist.Result{
		Item: i, Grant: g, Failed: s.d.HasArg("failed"), Reason: s.arg("failed"),
		Outputs: map[workflow.DataName]workflow.Value{},
	}
	for _, a := range s.d.CmdArgs[3:] {
		switch a.Key {
		case "failed":
		case "upon":
			for _, t := range a.Vals {
				of := s.brought[s.d.CmdArgs[0].Key+" "+t]
				if of.Word.IsZero() {
					of = worklist.Basis{Item: s.node(1).itemAt(t), Word: worklist.ID{1}} // nobody said that
				}
				r.Upon = append(r.Upon, of)
			}
		default:
			r.Outputs[workflow.DataName(a.Key)] = strings.Join(a.Vals, ",")
		}
	}
	c := s.w.word(s.speaker(), r)
	if s.brought == nil {
		s.brought = map[string]worklist.Basis{}
	}
	s.brought[s.d.CmdArgs[0].Key+" "+s.d.CmdArgs[2].Key] = worklist.Basis{
		Item: i, Word: fact.WordOf(s.node(1).m.log.Instance(), c.Says, c.Nonce),
	}
	if s.d.Cmd == "say" {
		s.said = c
		return ""
	}
	return s.put(s.node(1), c)
}

// ahead shows what waits for others, and who has it.
func (s *story) ahead() string {
	var b strings.Builder
	m := s.node(0).m
	list := m.Ahead()
	if u := s.arg("for"); u != "" {
		list = nil
		for _, x := range m.ItemsFor(worklist.User(u)) {
			list = append(list, x.ItemView)
		}
	}
	for _, v := range list {
		fmt.Fprintf(&b, "%s at %s waits for %v", v.Task.Name, v.Partner, v.Awaits)
		if v.Holder != "" {
			fmt.Fprintf(&b, ", %s has it (%s)", v.Holder, v.Mode)
		}
		if v.PutOff {
			b.WriteString(", done")
		}
		if x := v.HeldUp; x != nil {
			fmt.Fprintf(&b, ", held up by %s at %s (presumed: %t): %s", x.Failed, x.At, x.Presumed, x.Why)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func (s *story) pass() string {
	n, i := s.node(1), s.node(1).itemAt(s.d.CmdArgs[2].Key)
	grant := n.m.HeldBy(i)
	if s.d.HasArg("stale") {
		i, grant = s.granted()
	}
	x := worklist.NewTransfer(i, grant, worklist.User(s.arg("to")), workflow.RoleName(s.arg("role")), s.arg("reason"))
	return s.put(n, s.w.word(s.speaker(), x))
}

func (s *story) extend() string {
	due, err := time.ParseDuration(s.d.CmdArgs[3].Key)
	if err != nil {
		return err.Error()
	}
	n := s.node(1)
	x := worklist.Extend{Item: n.itemAt(s.d.CmdArgs[2].Key), Due: worklist.Due{After: due}}
	return s.put(n, s.w.word(s.speaker(), x))
}

func (s *story) adopt() string {
	n, of, task := s.node(1), "", workflow.TaskName("")
	if len(s.d.CmdArgs) > 2 {
		of = s.d.CmdArgs[2].Key
	}
	if len(s.d.CmdArgs) > 3 {
		task = workflow.TaskName(s.d.CmdArgs[3].Key)
	}
	nth := -1 // the last
	if s.d.HasArg("nth") {
		s.d.ScanArgs(s.t, "nth", &nth)
	}
	x := worklist.Adopt{Item: n.itemAt(string(n.m.state.Definition().Tasks[0].Name)), Result: worklist.ID{1}}
	for _, e := range n.m.log.Order() {
		if c := e.Fact.Body.Claim; c != nil && e.Counted {
			if r, is := c.Body().(worklist.Result); is && (of == "" || of == string(e.Speaker().User)) &&
				(task == "" || task == r.Item.Slot) && nth != 0 {
				nth--
				x = worklist.Adopt{Item: r.Item, Result: worklist.ID(e.ID)}
			}
		}
	}
	return s.put(n, s.w.word(s.speaker(), x))
}

func (s *story) notify() string {
	var words []string
	for _, a := range s.d.CmdArgs[2:] {
		words = append(words, a.Key)
	}
	policy, err := worklist.ParsePolicy(strings.Join(words, " "))
	if err != nil {
		return err.Error()
	}
	return s.put(s.node(1), s.w.word(s.speaker(), worklist.Notify{Policy: policy}))
}

func (s *story) amend() string {
	var words []string
	for _, a := range s.d.CmdArgs[2:] {
		words = append(words, a.Key)
	}
	patch := amendments.Patch{{
		Part: amendments.Part{Kind: amendments.Kind(words[0]), Name: words[1]}, Key: words[2],
	}}
	if len(words) > 3 {
		patch[0].Value = json.RawMessage(words[3])
		if !json.Valid(patch[0].Value) {
			patch[0].Value = json.RawMessage(strconv.Quote(words[3]))
		}
	}
	return s.put(s.node(1), s.w.word(s.speaker(), worklist.Amend{Patch: patch.Text()}))
}

func (s *story) edit() string {
	changed, err := workflow.Parse("changed", []byte(s.d.Input))
	if err != nil {
		return err.Error()
	}
	patch, no := amendments.PatchOf(s.node(1).m.Definition(), changed, nil)
	if len(no) > 0 {
		return "not yet: " + no[0].String()
	}
	x := worklist.Amend{Patch: patch.Text()}
	for _, a := range s.d.CmdArgs[2:] {
		p := worklist.Placed{Partition: workflow.PartitionName(a.Key), Partner: workflow.PartnerID(a.Vals[0])}
		p.Moves = s.node(1).m.Definition().Partition(p.Partition) != nil
		x.At = append(x.At, p)
	}
	return s.put(s.node(1), s.w.word(s.speaker(), x))
}

func (s *story) amended() string {
	var out []string
	m := s.node(0).m
	for _, a := range m.Amendments() {
		out = append(out, fmt.Sprintf("%s by %s: %s", strings.Join(a.Patch.Lines(), "; "), a.At.Speaker().User,
			a.At.Fact.Chain.Author))
	}
	for _, i := range m.Snapshot().Incidents {
		if strings.Contains(i.What, "amend") {
			out = append(out, "incident: "+i.What)
		}
	}
	return strings.Join(out, "\n")
}

func (s *story) again() string { return s.put(s.node(0), s.last) }

// hears brings a node what was said and not brought.
func (s *story) hears() string { return s.put(s.node(0), s.said) }

// forge has a node write a claim that it may not, whatever its own rules are.
func (s *story) forge() string {
	n, kind, t := s.node(0), s.d.CmdArgs[1].Key, s.d.CmdArgs[2].Key
	i := n.itemAt(t)
	h, _ := n.m.state.Work().Holds(i)
	var body worklist.Body
	switch kind {
	case "grant", "steal":
		body = worklist.Grant{Items: []worklist.Item{i}, Mode: worklist.Select}
	case "release":
		body = worklist.Release{Item: i, Grant: h.Grant}
	case "revoke":
		body = worklist.Revoke{Item: i, Grant: h.Grant, Cause: worklist.ByLease}
	case "result":
		body = worklist.Result{Item: i, Grant: h.Grant}
	case "close": // with a result that there is not, or with the last that is kept
		x := worklist.Close{Item: i, Result: worklist.ID{1}}
		for _, e := range n.m.log.Order() {
			if c := e.Fact.Body.Claim; c != nil && s.d.HasArg("kept") {
				if r, is := c.Body().(worklist.Result); is && r.Item == i {
					x.Result = worklist.ID(e.ID)
				}
			}
		}
		body = x
	case "offer": // by a change of policy that there is not, if it says so
		body = worklist.Offer{Item: i, To: []worklist.User{"u"}}
		if s.d.HasArg("unknown") {
			body = worklist.Offer{Item: i, To: []worklist.User{"u"}, Under: worklist.ID{1}}
		}
	case "reserve":
		body = worklist.Reserve{Item: i, Resources: []workflow.ResourceName{workflow.ResourceName(s.arg("of"))}}
	case "keep": // of a partition; the task is of no matter
		body = worklist.Keep{Partition: workflow.PartitionName(s.arg("of"))}
	case "amend": // of a part that there is, or not
		if s.d.HasArg("of") {
			t = s.arg("of")
		}
		patch := amendments.Patch{{
			Part: amendments.Part{Kind: amendments.OfTask, Name: t}, Key: "timeout", Value: json.RawMessage(`"9h"`),
		}}
		body = worklist.Amend{Patch: patch.Text()}
	case "notify":
		body = worklist.Notify{Policy: worklist.Policy{Name: workflow.NotifyAll}}
	case "pass":
		for _, e := range n.m.log.Order() { // that person's last grant, whether or not it counted
			if c := e.Fact.Body.Claim; c != nil && string(e.Speaker().User) == s.arg("user") && len(c.About()) > 0 &&
				c.About()[0] == fact.AttemptIDOf(i) {
				h.Grant = worklist.ID(e.ID)
			}
		}
		body = worklist.NewTransfer(i, h.Grant, worklist.User(s.arg("to")), workflow.RoleName(s.arg("role")), "")
	}
	var c *fact.Claim
	switch {
	case kind == "repeat":
		c = s.last
	case kind == "revoke" || kind == "close" || kind == "offer" || state.AboutUnits(body):
		says, err := worklist.Encode(body)
		if err != nil {
			return err.Error()
		}
		c = &fact.Claim{Says: says}
	default:
		c = s.w.word(s.w.people[worklist.User(s.arg("user"))], body)
		if s.arg("user") == "" {
			c.Word = []byte("made up")
		}
	}
	s.w.lies = true
	e, err := n.m.deciding(s.w.moment(), s.w).append(fact.Body{Claim: c})
	if err != nil {
		return err.Error()
	}
	s.w.step(n)
	e = n.m.log.ByID()[e.ID]
	if !e.Counted {
		return "does not count: " + e.Why
	}
	why := ""
	n.m.state.Work().About(i, func(f *worklist.Fact, no string) {
		if f.ID == worklist.ID(e.ID) {
			why = no
		}
	})
	if to, open, ever := n.m.state.Work().Given(i, worklist.ID(e.ID)); ever && !open && why == "" {
		why = "it is not " + string(to) + "'s for it"
	}
	if why != "" {
		return "changes nothing: " + why
	}
	return "counts"
}

// had is what a person had at a partner's word and has no more, with why.
func (s *story) had() string {
	var b strings.Builder
	for _, x := range s.node(1).m.ItemsFor(worklist.User(s.d.CmdArgs[0].Key)) {
		if x.Lost != nil {
			fmt.Fprintf(&b, "%s, as %s\n", x.Task.Name, x.Lost.Why)
		}
	}
	for _, l := range s.node(1).m.Unneeded() {
		if l.User == worklist.User(s.d.CmdArgs[0].Key) {
			fmt.Fprintf(&b, "told: %s, as %s; kept: %t\n", l.Task, l.Why, l.Made)
		}
	}
	return b.String()
}

func (s *story) items() string {
	var b strings.Builder
	tw := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, v := range s.node(0).m.Items() {
		who := "open"
		if v.Holder != "" {
			who = fmt.Sprintf("%s has it (%s)", v.Holder, v.Mode)
		}
		if len(v.Offered) > 0 {
			who = fmt.Sprintf("offered to %s", v.Offered)
		} else if v.Holder == "" && !v.ToAll {
			who = "offered to nobody"
		}
		if v.HandedBy != "" {
			who = fmt.Sprintf("kept for %s, by %s", v.Holder, v.HandedBy)
		}
		if v.Role != v.Task.Role {
			who += ", for " + string(v.Role)
		}
		if s.d.HasArg("since") { // since when, after the first moment of the story
			who = (time.Duration(v.Arrival)*time.Millisecond - time.Duration(s.w.momentAt(0).
				UnixMilli())*time.Millisecond).String()
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\n", v.Task.Name, v.Partner, who)
	}
	tw.Flush()
	return b.String()
}

// deadlines is how much time is left, as P reckons whose clock is ahead by D, and who knows that if told.
func (s *story) deadlines() string {
	wrong, err := time.ParseDuration(cmp.Or(s.arg("wrong"), "0s"))
	if err != nil {
		s.d.Fatalf(s.t, "%v", err)
	}
	ahead := func(workflow.PartnerID) time.Duration { return 0 }
	if s.d.HasArg("told") {
		ahead = func(workflow.PartnerID) time.Duration { return wrong }
	}
	var b strings.Builder
	tw := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, d := range s.node(0).m.Deadlines(Moment{Boot: s.w.now, Wall: s.w.momentAt(s.w.now).Add(wrong)}, Reckoning{Ahead: ahead}) {
		waits := ""
		if d.Waits {
			waits = ", and waits"
		}
		if d.Decided {
			waits += ", goes on"
		}
		fmt.Fprintf(tw, "%s\t%s\t%s left\twarns at %s%s\n", d.Task.Name, d.Partner, d.Left, d.Warnings, waits)
	}
	tw.Flush()
	return b.String()
}

func (s *story) losses() (out string) {
	n := s.node(1)
	for _, x := range n.m.ItemsFor(worklist.User(s.d.CmdArgs[0].Key)) {
		if l := x.Lost; l != nil {
			out += fmt.Sprintf("%s: %s", x.Task.Name, l.Why)
			if l.Whose != "" {
				out += ", by " + string(l.Whose)
			}
			if l.At.IsZero() {
				out += ", just now\n"
			} else {
				out += fmt.Sprintf(", %s ago\n", s.w.moment().Wall.Sub(l.At).Round(time.Minute))
			}
		}
	}
	return out
}

func (s *story) kept() string {
	var b strings.Builder
	for _, r := range s.node(0).m.KeptResults() {
		fmt.Fprintf(&b, "%s of %s: %s", r.Task, r.User, r.Why)
		for _, n := range []workflow.DataName{"x"} {
			if v, has := r.Outputs[n]; has {
				fmt.Fprintf(&b, "; %s = %v", n, v)
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

// claimed is a definition whose tasks are people's work, at several partners.
const claimed = `
workflow: claimed
data:
  x: {type: integer}
tasks:
  a: {type: manual, role: crew, out: [x], deadline: 6h, transfer: 1h}
  b: {type: manual, role: crew, out: [x], offline: true}
  c: {type: manual, role: crew, after: a, on-failure: {contingency: d}}
  d: {type: manual, role: crew}
  e: {after: [b, c], out: [x]}
partitions:
  p1: [a, c]
  p2: [b]
  p3: [e]
`

var policies = []worklist.Policy{
	{Name: workflow.NotifyAll}, {Name: workflow.NotifyFewestAssigned, N: 1},
	{Name: workflow.NotifyLatestConnected, N: 2},
}

// randomClaim has a person say something at some node, true or not.
func (w *mesh) randomClaim(d dice) {
	n := w.nodes[pickOf(d, w.names())]
	if n.m == nil {
		return
	}
	p := w.people[pickOf(d, []worklist.User{"u", "v", "w"})]
	t := pickOf(d, []string{"a", "b", "b", "c", "m", "n"})
	for i := 2; i < 6 && d.chance(90); i++ { // the round that is under way
		sl := n.m.state.BySlot()[workflow.TaskName(fmt.Sprintf("%s.%d", t, i))]
		if sl == nil || !sl.Begun() {
			break
		}
		t = string(sl.Task.Name)
	}
	if n.m.state.BySlot()[workflow.TaskName(t)] == nil { // nobody added it yet
		t = "a"
	}
	i := n.itemAt(t)
	grant := worklist.ID{byte(d(2))}
	if h, held := n.m.state.Work().Holds(i); held && !d.chance(15) {
		grant = h.Grant
	} else if e := pickOf(d, n.m.log.Order()); e.Fact.Body.Claim != nil {
		grant = worklist.ID(e.ID) // an old one, or none
	}
	var body worklist.Body
	switch d(17) {
	case 16:
		body = worklist.Extend{Item: i, Due: worklist.Due{After: time.Duration(d(9)+1) * time.Hour}}
	case 12, 13, 14, 15:
		if d.chance(85) {
			p = w.people["u"] // who may
		}
		patch := randomPatch(d)
		x := worklist.Amend{Patch: patch.Text()}
		for i, part := range slices.Concat(patch.Replaces(), patch.Parts()) { // p1 to p3, and p4
			x.At = append(x.At, worklist.Placed{
				Partition: part, Partner: pickOf(d, []workflow.PartnerID{"ann", "bob", "cy", "dan", "dan"}),
				Moves: i < len(patch.Replaces()),
			})
		}
		body = x
	case 11: // of a task's weight, or of what it does not have
		patch := amendments.Patch{{
			Part: amendments.Part{Kind: amendments.OfTask, Name: t}, Key: pickOf(d, []string{"priority", "doc", "timeout"}),
			Value: json.RawMessage(strconv.Itoa(d(3) + 1)),
		}}
		if patch[0].Key == "doc" {
			patch[0].Value = json.RawMessage(`"so"`)
		}
		body = worklist.Amend{Patch: patch.Text()}
	case 10:
		body = worklist.Notify{Policy: pickOf(d, policies)}
	case 9:
		x := worklist.Adopt{Item: i, Result: worklist.ID{byte(d(2) + 1)}}
		for _, e := range n.m.log.Order() {
			if c := e.Fact.Body.Claim; c != nil && d.chance(60) {
				if r, is := c.Body().(worklist.Result); is {
					x = worklist.Adopt{Item: r.Item, Result: worklist.ID(e.ID)}
				}
			}
		}
		body = x
	case 7, 8:
		x := worklist.NewTransfer(i, grant, pickOf(d, []worklist.User{"u", "v", "w"}), "", "")
		if d.chance(40) {
			x = worklist.NewTransfer(i, grant, "", pickOf(d, []workflow.RoleName{"crew", "boss", ""}), "")
		}
		body = x
	case 5, 6:
		o := orderOf(n, pickOf(d, []string{
			worklist.Again, worklist.Again, worklist.Stop, worklist.Continue, worklist.Cancel, worklist.Undo,
		}), pickOf(d, []string{"a", "b", "c", "e"}))
		if o.What == worklist.Cancel && !d.chance(10) {
			return
		}
		body = o
	case 0, 1:
		mode := pickOf(d, []worklist.Mode{worklist.Select, worklist.Select, worklist.Lock})
		body = worklist.Grant{Items: []worklist.Item{i}, Mode: mode, Lease: worklist.DefaultLease(mode)}
	case 2:
		body = worklist.Release{Item: i, Grant: grant}
	default:
		r := worklist.Result{Item: i, Grant: grant, Failed: d.chance(20), Reason: "dice"}
		if (t == "m" || t == "n") && !r.Failed && d.chance(50) {
			r.Outputs = map[workflow.DataName]workflow.Value{"y": pickOf(d, []string{"1", "s"})}
		}
		body = r
	}
	c := w.word(p, body)
	if len(w.said) > 0 && d.chance(25) {
		c = pickOf(d, w.said) // once more, there or elsewhere
	}
	w.said = append(w.said, c)
	if d.chance(20) { // a lie of the node, whatever it holds
		w.lies = true
		w.forged(n, c, i, grant, d)
		return
	}
	_, _ = w.put(n, c) // refused where it may not be
}

// randomPatch adds a task, has one wait for another, or leaves one out; often it fits nothing.
func randomPatch(d dice) (p amendments.Patch) {
	name, added := pickOf(d, []string{"a", "b", "c", "e", "m", "n"}), pickOf(d, []string{"m", "n"})
	set := func(name, key, value string) {
		p = append(p, amendments.Setting{
			Part: amendments.Part{Kind: amendments.OfTask, Name: name}, Key: key, Value: json.RawMessage(value),
		})
	}
	part := func(kind amendments.Kind, name, key, value string) {
		p = append(p, amendments.Setting{
			Part: amendments.Part{Kind: kind, Name: name}, Key: key, Value: json.RawMessage(value),
		})
	}
	rule := func(name string) {
		set(name, "after", pickOf(d, []string{`["a"]`, `["b"]`, `["a","b"]`, `["m"]`, `["c","n"]`, `["c"]`}))
	}
	switch d(12) {
	case 11: // a loop that is new, goes, or has more or fewer rounds, longer or shorter ones, or another while
		p = append(p, randomLoop(d, pickOf(d, []string{"b", "b", "c", "m"}))...)
		if p[0].Name == "m" && d.chance(60) {
			p = append(randomLoop(d, "m"), p[:0]...)
			set("m", "add-to", `"p1"`)
			set("m", "type", `"manual"`)
			slices.SortFunc(p, func(a, b amendments.Setting) int { return -strings.Compare(string(a.Kind), string(b.Kind)) })
		}
	case 10: // a task that only undoes others, which may be done by itself elsewhere
		set(added, "add-to", `""`)
		set(added, "type", `"manual"`)
		if name < "m" {
			p = append(amendments.Patch{{
				Part: amendments.Part{Kind: amendments.OfTask, Name: name}, Key: "compensate",
				Value: json.RawMessage(`{"task":` + strconv.Quote(added) + `}`),
			}}, p...)
		}
	case 9: // another place
		part(amendments.OfPartition, pickOf(d, []string{"p1", "p2", "p3"}), pickOf(d, []string{"partner", "roles"}), ``)
	case 8: // deadlines, and what follows from them
		if d.chance(60) {
			set(name, "deadline", pickOf(d, []string{`"2h"`, `"9h"`, `"date(\"2026-03-01T08:00:00Z\")"`, ``}))
		}
		if len(p) == 0 || d.chance(40) {
			set(name, "transfer", pickOf(d, []string{`"1h"`, `"3h"`, ``}))
		}
	case 7: // what it reads; or limits that come and go, and tries
		if d.chance(30) {
			set(name, "in", pickOf(d, []string{`["x"]`, `["y"]`, `["x","y"]`, ``}))
			break
		}
		set(name, pickOf(d, []string{"timeout", "time-to-wait", "retries"}), pickOf(d, []string{`"1h"`, `2`, `"2h"`, ``}))
	case 6: // what undoes it, if anything
		set(name, "compensate", pickOf(d, []string{
			`{"application":"noop"}`, `{"task":"e"}`, `{"task":"c"}`, `{"task":"m"}`, `{"task":"n"}`, ``,
		}))
	case 4: // data with a task that asks for them, which may be others elsewhere
		if d.chance(30) {
			part(amendments.OfWorkflow, "", "final", pickOf(d, []string{`"y == 1"`, `"x == 1"`, `"y == \"s\""`, ``}))
		}
		part(amendments.OfData, "y", "add", "true")
		part(amendments.OfData, "y", "type", pickOf(d, []string{`"integer"`, `"string"`}))
		if d.chance(70) {
			set(added, "add-to", pickOf(d, []string{`"p1"`, `"p2"`}))
			set(added, "out", `["x","y"]`)
			set(added, "role", `"crew"`)
			set(added, "type", `"manual"`)
			if d.chance(50) {
				set(added, "when", pickOf(d, []string{`"y == null"`, `"y == 1"`, `"y == \"s\""`, `"x == null and y == null"`}))
			}
		}
	case 5:
		if d.chance(50) {
			part(amendments.OfWorkflow, "", "final", pickOf(d, []string{`"x == 1"`, `"x == 2 and seen"`, ``}))
		}
		part(amendments.OfCondition, "seen", "expression", pickOf(d, []string{`"x == 2"`, `"x > 3"`, ``}))
		strict := d.chance(30)
		if strict {
			part(amendments.OfConstraint, "low", "strict", "true")
		}
		if strict || d.chance(30) {
			part(amendments.OfConstraint, "low", "when", pickOf(d, []string{`"x < 3"`, `"x < 9"`}))
		}
	case 0:
		set(name, "enabled", pickOf(d, []string{"false", ""}))
	case 1:
		rule(name)
		set(name, "when", "")
	default:
		home := pickOf(d, []string{"p1", "p2", "p3", "p4", "p4"})
		set(added, "add-to", strconv.Quote(home))
		if d.chance(40) {
			rule(added)
		}
		set(added, "out", `["x"]`)
		if d.chance(40) {
			set(added, "role", `"crew"`)
			set(added, "type", `"manual"`)
		}
		if home == "p4" && d.chance(80) { // else it goes into one that somebody may have added, or not
			part(amendments.OfPartition, "p4", "add", "true")
			if d.chance(30) {
				part(amendments.OfPartition, "p4", "timeout", `"4h"`)
			}
		}
	}
	return p
}

func (w *mesh) forged(n *node, c *fact.Claim, i worklist.Item, grant worklist.ID, d dice) {
	if d.chance(30) {
		says, err := worklist.Encode(worklist.Revoke{Item: i, Grant: grant, Cause: worklist.ByLease})
		if err != nil {
			w.t.Fatal(err)
		}
		c = &fact.Claim{Says: says}
	} else if d.chance(20) { // by a deadline that it may have or not
		says, err := worklist.Encode(worklist.NewDueTransfer(i, "u"))
		if err != nil {
			w.t.Fatal(err)
		}
		c = &fact.Claim{Says: says}
	} else if d.chance(20) {
		says, err := worklist.Encode(worklist.Offer{
			Item: i, To: []worklist.User{pickOf(d, []worklist.User{"u", "v"})}, Under: grant,
		})
		if err != nil {
			w.t.Fatal(err)
		}
		c = &fact.Claim{Says: says}
	} else if d.chance(30) {
		c = &fact.Claim{Says: c.Says, Nonce: c.Nonce, Word: []byte("made up")} // the other is in a fact
	}
	_, _ = n.m.deciding(w.moment(), w).append(fact.Body{Claim: c})
	w.step(n)
}

// TestRandomClaims: whatever people say, and whatever is lost, restored or forged on the way, the
// same facts in any order are the same state, and at no node have two people an item, by
// that node's own word.
func TestRandomClaims(t *testing.T) {
	amended, added, left, placed := 0, 0, 0, 0
	checkUntil(t, func(rt *rapid.T) {
		d := diceOf(rt)
		def := claimed
		if d.chance(50) {
			def = strings.Replace(def, "offline: true", "repeat: {times: 3}", 1)
		}
		w := newMesh(t, parse(t, def))
		w.dice = d
		w.node("dan")
		for _, u := range []worklist.User{"u", "v", "w"} {
			w.people[u] = fact.Speaker{User: u, At: "dan", Roles: []workflow.RoleName{"crew"}}
		}
		w.people["w"] = fact.Speaker{User: "w", At: "dan", Roles: []workflow.RoleName{"crew", "boss"}}
		w.annex = &fact.Annex{Responsible: "u"} // v and w may order nothing
		at := map[workflow.PartitionName]workflow.PartnerID{"p1": "ann", "p2": "bob", "p3": "cy"}
		if err := w.start("ann", w.genesis(at, "ann", "bob", "cy")); err != nil {
			t.Fatal(err)
		}
		forked := false
		for range 10 + d(60) {
			switch k := d(20); {
			case k < 9:
				w.randomClaim(d)
			case k == 9:
				w.randomLoss(d, &forked)
			default:
				w.randomStep(d)
			}
			w.incremental(rt)
			w.ownedOnce(rt)
		}
		w.dice = nil
		for range 6 {
			if forked { // it is not told by everybody that it has to take a new incarnation
				break
			}
			w.meetAll()
			w.stabilize(false)
			w.advance(1)
		}
		w.incremental(rt)
		w.anyOrder(rt, d)
		if err := w.sameEverywhere(); err != nil && !forked { // of a fork not all is taken in everywhere
			rt.Fatal(err)
		}
		for _, id := range w.names() {
			if n := w.nodes[id]; n.m != nil {
				a, b := steered(n.m)
				amended, added = amended+a, added+b
				if sls := n.m.state.SlotsOf("m"); len(sls) > 0 && n.m.state.Plan().Home("m") == "p4" {
					placed += state.AsInt(sls[0].Begun() || sls[0].Pick != nil)
				}
				for _, x := range n.m.Snapshot().Incidents {
					left += strings.Count(x.What, "an amendment does not go together")
				}
			}
		}
	}, &amended, &added)
	t.Logf("%d patches changed tasks or rules, %d new tasks were begun, %d did not go together with others, "+
		"%d tasks of a new partition were begun or done", amended, added, left, placed)
}

// steered counts the amendments that change tasks or rules, and the new tasks that were begun.
func steered(m *Machine) (amended, added int) {
	for _, a := range m.Amendments() {
		amended += state.AsInt(a.Patch.IsHeavy())
	}
	for _, t := range []workflow.TaskName{"m", "n"} {
		if sl := m.state.BySlot()[t]; sl != nil {
			added += state.AsInt(sl.Begun())
		}
	}
	return amended, added
}

// randomLoss has a node lose what it wrote last, or go on from a backup without saying so, which
// forks its chain; or it has no role any more.
func (w *mesh) randomLoss(d dice, forked *bool) {
	n := w.nodes[pickOf(d, []workflow.PartnerID{"bob", "cy"})]
	if len(n.disk) < 2 {
		return
	}
	w.lies = true
	disk, inc := n.upTo(1+d(len(n.disk))), n.inc
	switch d(4) {
	case 0:
		w.lacking[n.id] = !w.lacking[n.id]
		return
	case 1:
		if *forked {
			return
		}
		*forked = true
	default:
		inc = fact.Incarnation{n.inc[0] + 1}
	}
	w.restore(n, disk, inc)
	for range d(4) { // people say again what they did not get an answer to
		if n.m != nil && len(w.said) > 0 {
			_, _ = w.put(n, pickOf(d, w.said))
		}
	}
}

// ownedOnce checks at each node that of each item at most one hold counts, and that an item
// that ended is nobody's.
func (w *mesh) ownedOnce(rt *rapid.T) {
	for _, id := range w.names() {
		n := w.nodes[id]
		if n.m == nil || n.m.state.People().Board == nil {
			continue
		}
		open := 0
		for _, l := range n.m.state.ClaimLines() {
			switch {
			case strings.HasPrefix(l, "item "):
				open = 0
			case strings.Contains(l, "open=true"):
				open++
			case strings.HasPrefix(l, "  end ") && open > 0:
				rt.Fatalf("%s: an item that ended is somebody's", id)
			}
			if open > 1 {
				rt.Fatalf("%s: two have one item", id)
			}
		}
	}
}

// A claim is written down in one way, and what is not true of it by itself is refused before it is
// looked at any further.
func TestClaimsAreRefusedAtTheDoor(t *testing.T) {
	w := newMesh(t, parse(t, claimed))
	who := fact.Speaker{User: "u", At: "ann", Roles: []workflow.RoleName{"crew"}}
	item := worklist.Item{Slot: "a"}
	good := func() *fact.Claim {
		return w.word(who, worklist.Grant{Items: []worklist.Item{item}, Mode: worklist.Select})
	}
	revoke, err := worklist.Encode(worklist.Revoke{Item: item, Cause: worklist.ByLease})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]*fact.Claim{
		"nobody says it":           {Says: good().Says},
		"nothing is said":          {Says: []byte{0xa0}, Word: good().Word},
		"two ways":                 {Says: append(slices.Clone(good().Says), 0), Word: good().Word},
		"a word too long":          {Says: good().Says, Word: make([]byte, fact.MaxWord+1)},
		"a revocation of a person": {Says: revoke, Word: good().Word},
		"a nonce of nobody":        {Says: revoke, Nonce: [16]byte{1}},
	} {
		f := &fact.Fact{
			Format: fact.Format, Instance: workflow.InstanceID{1}, Chain: fact.Chain{Author: "ann"}, Seq: 2, Prev: fact.ID{1},
			Body: fact.Body{Claim: c},
		}
		if _, _, err := f.Encode(); !errors.Is(err, fact.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
		raw, err := fact.EncMode.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := fact.Decode(raw); !errors.Is(err, fact.ErrInvalid) {
			t.Errorf("%s, from elsewhere: %v", name, err)
		}
	}
	f := &fact.Fact{
		Format: fact.Format, Instance: workflow.InstanceID{1}, Chain: fact.Chain{Author: "ann"}, Seq: 2, Prev: fact.ID{1},
		Body: fact.Body{Claim: good()},
	}
	if _, _, err := f.Encode(); err != nil {
		t.Errorf("a good one: %v", err)
	}
}

// ward is a definition with so many tasks of people at one partner.
func ward(n int) string {
	var b strings.Builder
	b.WriteString("workflow: ward\ntasks:\n")
	for i := range n {
		fmt.Fprintf(&b, "  t%d: {type: manual, role: nurse}\n", i)
	}
	return b.String()
}

// wardOf is the node one with so many tasks of people, and the nurses u, v and w0, w1, ….
func wardOf(t *testing.T, tasks, nurses int) (*mesh, *node) {
	w := newMesh(t, parse(t, ward(tasks)))
	for _, u := range append([]worklist.User{"u", "v"}, nursesOf(nurses)...) {
		w.people[u] = fact.Speaker{User: u, At: "one", Roles: []workflow.RoleName{"nurse"}}
	}
	if err := w.start("one", w.genesis(map[workflow.PartitionName]workflow.PartnerID{w.plan.Partitions()[0].Name: "one"}, "one")); err != nil {
		t.Fatal(err)
	}
	return w, w.nodes["one"]
}

func nursesOf(n int) (out []worklist.User) {
	for k := range n {
		out = append(out, worklist.User(fmt.Sprintf("w%d", k)))
	}
	return out
}

// ofUser is a word of a person.
func (w *mesh) ofUser(u worklist.User, body worklist.Body, k int) *fact.Claim {
	c := w.word(w.people[u], body)
	c.Nonce = [16]byte{byte(k), byte(k >> 8), byte(k >> 16), 1}
	return c
}

// selects has a person select an item, and giveUp release what the person has.
func (w *mesh) selects(n *node, u worklist.User, i worklist.Item, k int) error {
	g := worklist.Grant{Items: []worklist.Item{i}, Mode: worklist.Select, Lease: worklist.DefaultLease(worklist.Select)}
	_, err := w.put(n, w.ofUser(u, g, k))
	return err
}

func (w *mesh) giveUp(n *node, u worklist.User, i worklist.Item, k int) error {
	h, _ := n.m.state.Work().Holds(i)
	_, err := w.put(n, w.ofUser(u, worklist.Release{Item: i, Grant: h.Grant}, k))
	return err
}

// One person cannot freeze an item by taking it and giving it back; and when people have said about it
// all that they can, who has it can still give it back, and no grant counts any more, whoever writes it.
func TestAnItemTakesSoManyWords(t *testing.T) {
	w, n := wardOf(t, 1, fact.MaxClaims/2/fact.MaxGrants)
	i, k := n.itemAt("t0"), 0
	churn := func(u worklist.User, times int) {
		for range times {
			if err := errors.Join(w.selects(n, u, i, k), w.giveUp(n, u, i, k+1)); err != nil {
				t.Fatalf("%s, %d: %v", u, k, err)
			}
			k += 2
		}
	}
	churn("w0", fact.MaxGrants)
	if err := w.selects(n, "w0", i, k); !errors.Is(err, state.ErrNotNow) {
		t.Errorf("one person once more: %v", err)
	}
	for _, u := range nursesOf(fact.MaxClaims / 2 / fact.MaxGrants)[1:] {
		churn(u, fact.MaxGrants-1)
	}
	for n.m.deciding(w.moment(), w).words(fact.AttemptIDOf(i)) < fact.MaxClaims-2 {
		churn("v", 1)
	}
	if err := w.selects(n, "u", i, k+1); err != nil {
		t.Fatal(err)
	}
	h, _ := n.m.state.Work().Holds(i)
	// Another whose grant ended brings work too late: it is kept, once.
	late := worklist.Result{Item: i, Grant: firstGrant(n, "w1"), Failed: true, Reason: "late"}
	if got, err := w.put(n, w.ofUser("w1", late, k+2)); err != nil || got.Kept == "" || got.Already {
		t.Errorf("late: %+v, %v", got, err)
	}
	if got, err := w.put(n, w.ofUser("w1", late, k+3)); err != nil || got.Kept == "" || !got.Already {
		t.Errorf("late once more: %+v, %v", got, err)
	}
	if got, err := w.put(n, w.ofUser("u", worklist.Release{Item: i, Grant: h.Grant}, k+4)); err != nil || got.Already {
		t.Errorf("given back: %+v, %v", got, err)
	}
	if err := w.selects(n, "u", i, k+5); !errors.Is(err, state.ErrNotNow) {
		t.Errorf("one more: %v", err)
	}
	one := worklist.Grant{
		Items: []worklist.Item{i}, Mode: worklist.Select, Lease: worklist.DefaultLease(worklist.Select),
	}
	if e := n.m.mustAppend(w.moment(), fact.Body{Claim: w.ofUser("u", one, k+6)}); e.Counted {
		t.Error("one more counts")
	}
	if e := n.m.mustAppend(w.moment(), fact.Body{Claim: w.ofUser("u", worklist.Release{Item: i, Grant: h.Grant},
		k+7)}); !e.Counted {
		t.Errorf("a release has no room: %s", e.Why)
	}
}

// Of one person's results about one item that do not count as many are kept as may be adopted, each once.
func TestSoManyLateResultsAreKept(t *testing.T) {
	w, n := wardOf(t, 1, 1)
	i := n.itemAt("t0")
	if err := errors.Join(w.selects(n, "u", i, 0), w.giveUp(n, "u", i, 1)); err != nil {
		t.Fatal(err)
	}
	for k := range 2 * (maxLate + 1) {
		late := worklist.Result{Item: i, Grant: firstGrant(n, "u"), Failed: true, Reason: fmt.Sprint("late ", k/2)}
		got, err := w.put(n, w.ofUser("u", late, k+2))
		switch {
		case k/2 == maxLate:
			if !errors.Is(err, state.ErrNotNow) {
				t.Errorf("result %d is kept: %+v, %v", k/2+1, got, err)
			}
		case err != nil || got.Kept == "" || got.Already != (k%2 == 1):
			t.Errorf("result %d: %+v, %v", k/2+1, got, err)
		}
	}
	if got := n.m.KeptResults(); len(got) != maxLate {
		t.Errorf("%d results are kept, want %d", len(got), maxLate)
	}
}

// Whoever has an item once more is not told that it is given back by a word about an earlier grant, as a device says it
// that has not heard of the later one; a word that comes again is told what it did, and changes nothing.
func TestWhatIsTakenOnceMoreIsNotGivenBack(t *testing.T) {
	w, n := wardOf(t, 1, 2)
	i := n.itemAt("t0")
	if err := w.selects(n, "w0", i, 1); err != nil {
		t.Fatal(err)
	}
	early := worklist.Release{Item: i, Grant: firstGrant(n, "w0")}
	gives := func(k int, already, refused bool) {
		t.Helper()
		got, err := w.put(n, w.ofUser("w0", early, k))
		if got.Already != already || errors.Is(err, state.ErrNotNow) != refused || !refused && err != nil {
			t.Errorf("word %d: %+v, %v; want already %t, refused %t", k, got, err, already, refused)
		}
	}
	gives(2, false, false)
	gives(3, true, false) // nobody has it
	if err := w.selects(n, "w1", i, 4); err != nil {
		t.Fatal(err)
	}
	gives(5, true, false) // somebody else has it
	if err := errors.Join(w.giveUp(n, "w1", i, 6), w.selects(n, "w0", i, 7)); err != nil {
		t.Fatal(err)
	}
	gives(8, false, true)
	gives(2, true, false)
	if h, held := n.m.state.Work().Holds(i); !held || h.User != "w0" {
		t.Errorf("it is with %q", h.User)
	}
}

// firstGrant is the first by which a person got an item.
func firstGrant(n *node, u worklist.User) worklist.ID {
	for _, e := range n.m.log.Order() {
		if c := e.Fact.Body.Claim; c != nil && e.Speaker().User == u {
			if _, grants := c.Body().(worklist.Grant); grants {
				return worklist.ID(e.ID)
			}
		}
	}
	return worklist.ID{}
}

// What people say that ends nothing takes little of the holder's share of the instance, however often it is
// said and whatever data it brings, also over a restart; work that ends an item has room all the same.
func TestPeopleCannotFillTheirHoldersShare(t *testing.T) {
	w := newMesh(t, parse(t, strings.ReplaceAll(ward(40), "role: nurse}", "role: nurse, out: [x]}")+
		"data:\n  x: {type: string}\n"))
	for _, u := range []worklist.User{"u", "v"} {
		w.people[u] = fact.Speaker{User: u, At: "one", Roles: []workflow.RoleName{"nurse"}}
	}
	if err := w.start("one", w.genesis(map[workflow.PartitionName]workflow.PartnerID{w.plan.Partitions()[0].Name: "one"}, "one")); err != nil {
		t.Fatal(err)
	}
	n := w.nodes["one"]
	size := func() (bytes int) {
		for _, e := range n.m.log.Order() {
			bytes += len(e.Raw)
		}
		return bytes
	}
	before, facts, refused := size(), len(n.m.log.Order()), 0
	for k := range 2000 {
		u, i := []worklist.User{"u", "v"}[k%2], n.itemAt(fmt.Sprintf("t%d", k/2%39))
		grant := worklist.ID{}
		if err := w.selects(n, u, i, 10*k); err == nil {
			h, _ := n.m.state.Work().Holds(i)
			grant = h.Grant
			if err := w.giveUp(n, u, i, 10*k+1); err != nil {
				t.Fatal(err)
			}
		} else {
			refused++
		}
		late := worklist.Result{
			Item: i, Grant: grant, Outputs: map[workflow.DataName]workflow.Value{"x": strings.Repeat("x", 60_000)},
		}
		_, _ = w.put(n, w.ofUser(u, late, 10*k+2))
		if k == 500 {
			w.crash(n)
		}
	}
	if is := size() - before; is > fact.MaxIdleBytes+64<<10 || refused == 0 {
		t.Errorf("two persons had their holder write %d bytes, %d times refused; want at most %d", is, refused,
			fact.MaxIdleBytes)
	}
	if is := len(n.m.log.Order()) - facts; is > fact.MaxIdleFacts+64 {
		t.Errorf("two persons had their holder write %d facts", is)
	}
	w.people["w"] = fact.Speaker{User: "w", At: "one", Roles: []workflow.RoleName{"nurse"}}
	i := n.itemAt("t39")
	if err := w.selects(n, "w", i, 1); err != nil {
		t.Fatalf("somebody else cannot work: %v", err)
	}
	h, _ := n.m.state.Work().Holds(i)
	done := worklist.Result{
		Item: i, Grant: h.Grant, Outputs: map[workflow.DataName]workflow.Value{"x": strings.Repeat("y", 60_000)},
	}
	if got, err := w.put(n, w.ofUser("w", done, 2)); err != nil || got.Kept != "" {
		t.Errorf("work that ends an item: %+v, %v", got, err)
	}
}

// Since when a task can be done is in the facts: it is the same after a restart, and at another node.
func TestArrivalOutlivesARestart(t *testing.T) {
	w := newMesh(t, parse(t, claimed))
	w.people["u"] = fact.Speaker{User: "u", At: "ann", Roles: []workflow.RoleName{"crew"}}
	at := map[workflow.PartitionName]workflow.PartnerID{"p1": "ann", "p2": "bob", "p3": "cy"}
	if err := w.start("ann", w.genesis(at, "ann", "bob", "cy")); err != nil {
		t.Fatal(err)
	}
	w.stabilize(false)
	w.advance(time.Hour)
	n := w.nodes["ann"]
	i := n.itemAt("a")
	if err := w.selects(n, "u", i, 1); err != nil {
		t.Fatal(err)
	}
	h, _ := n.m.state.Work().Holds(i)
	if _, err := w.put(n, w.ofUser("u", worklist.Result{
		Item: i, Grant: h.Grant, Outputs: map[workflow.DataName]workflow.Value{"x": "1"},
	}, 2)); err != nil {
		t.Fatal(err)
	}
	w.stabilize(false)
	times := func(n *node) (out []string) {
		for _, v := range n.m.Items() {
			out = append(out, fmt.Sprint(v.Task.Name, v.Arrival))
		}
		return out
	}
	want := times(n)
	if len(want) != 2 || want[0] == "b0" || n.m.Items()[0].Arrival == n.m.Items()[1].Arrival {
		t.Fatalf("arrivals %v: want those of b and c, an hour apart", want)
	}
	w.advance(time.Hour)
	w.crash(n)
	w.advance(time.Hour)
	if n.m == nil {
		w.step(n)
	}
	for _, id := range []workflow.PartnerID{"ann", "bob"} {
		if got := times(w.nodes[id]); !slices.Equal(got, want) {
			t.Errorf("%s, after the restart: %v, want %v", id, got, want)
		}
	}
}

// numbered is a word of the person u.
func (w *mesh) numbered(body worklist.Body, k int) *fact.Claim {
	c := w.word(w.people["u"], body)
	c.Nonce = [16]byte{byte(k), byte(k >> 8), 1}
	return c
}

// What a claim costs does not grow with the number of items, claimed or not.
func TestAClaimCostsAsMuchAmongMany(t *testing.T) {
	cost := map[int]int{}
	for _, n := range []int{100, 1000} {
		w := newMesh(t, parse(t, ward(n)))
		w.people["u"] = fact.Speaker{User: "u", At: "one", Roles: []workflow.RoleName{"nurse"}}
		if err := w.start("one", w.genesis(map[workflow.PartitionName]workflow.PartnerID{w.plan.Partitions()[0].Name: "one"}, "one")); err != nil {
			t.Fatal(err)
		}
		m := w.nodes["one"].m
		for k := range n {
			i := worklist.Item{Slot: workflow.TaskName(fmt.Sprintf("t%d", k))}
			g := worklist.Grant{
				Items: []worklist.Item{i}, Mode: worklist.Select, Lease: worklist.DefaultLease(worklist.Select),
			}
			before := m.log.Steps
			if _, err := m.Claim(w.numbered(g, k), w.moment(), w); err != nil {
				t.Fatal(err)
			}
			m.deciding(w.moment(), w).mindClaims()
			cost[n] = max(cost[n], m.log.Steps-before)
		}
	}
	if cost[1000] > cost[100]+10 {
		t.Errorf("a claim takes %d steps among 1000 items, %d among 100", cost[1000], cost[100])
	}
}
