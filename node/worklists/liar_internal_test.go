package worklists

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/store/kv/kvtest"
	"github.com/mutirao-mesh/mutirao/node/users"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// partners are members that are connected, each with what it answers; who has no answer is silent.
type partners struct {
	Peers
	answers map[workflow.PartnerID]func(protocol string, req []byte) any
	words   map[workflow.PartnerID][]wire.Spoken // that were brought to them
	gives   any                                  // what they answer to words; nil: no more than that it is written down
	refused []string
}

func (p *partners) UpPeers() (out []workflow.PartnerID) {
	for id := range p.answers {
		out = append(out, id)
	}
	slices.Sort(out)
	return out
}

func (p *partners) Up(id workflow.PartnerID) bool { return p.answers[id] != nil }

func (p *partners) Refuse(why string, _ workflow.PartnerID) { p.refused = append(p.refused, why) }

func (p *partners) Request(
	_ context.Context, id workflow.PartnerID, _ []string, protocol string, req []byte, _ time.Duration,
) ([]byte, error) {
	if protocol == ProtocolClaim {
		c, err := wire.DecodeSpoken(req)
		if err != nil {
			return nil, err
		}
		p.words[id] = append(p.words[id], c)
		if p.gives != nil {
			return json.Marshal(p.gives)
		}
		return []byte("{}"), nil
	}
	out := p.answers[id](protocol, req)
	if out == nil {
		return nil, errors.New("no answer")
	}
	return json.Marshal(out)
}

// nothing are the instances of a node that takes part in none; it has heard of one.
type nothing struct {
	Instances
	heardOf workflow.InstanceID
	told    []Told
}

// Ahead implements Instances: nothing here can be locked before it is ready.
func (n *nothing) Ahead(context.Context, worklist.User, workflow.PartnerID, workflow.InstanceID) ([]Row, error) {
	return nil, nil
}

func (n *nothing) absent(ref string) (t Target, err error) {
	if n.heardOf != everywhere && strings.HasPrefix(n.heardOf.String(), ref) {
		t.Instance = n.heardOf
	}
	return t, api.Errorf(api.NotFound, "this node takes no part in it")
}

func (n *nothing) Target(_ context.Context, ref string, _ workflow.TaskName, _ worklist.User) (Target, error) {
	return n.absent(ref)
}

func (n *nothing) Kept(_ context.Context, ref, _ string, _ worklist.User) (Target, error) {
	return n.absent(ref)
}

func (*nothing) Items(context.Context, worklist.User, workflow.PartnerID, workflow.InstanceID) ([]Row, error) {
	return nil, nil
}

func (*nothing) LostLately(context.Context, worklist.User, time.Time) ([]Row, error) { return nil, nil }

func (*nothing) Here(workflow.InstanceID) bool { return false }

func (*nothing) InVain(context.Context, workflow.InstanceID, *fact.Claim) error { return nil }

func (*nothing) Over(context.Context, workflow.InstanceID, []worklist.Item) ([]worklist.Item, error) {
	return nil, nil
}

func (*nothing) MadeBy(context.Context, workflow.InstanceID, []workflow.TaskName) ([]worklist.Basis, error) {
	return nil, nil
}

func (n *nothing) Messages(context.Context, worklist.User) ([]Told, time.Duration, error) {
	return slices.Clone(n.told), 0, nil
}

// onlyBia is a node at which one user is.
type onlyBia struct{ People }

func (onlyBia) Who(string) (users.Who, error)     { return users.Who{ID: "bia", Name: "bia"}, nil }
func (onlyBia) Here() []users.Who                 { return []users.Who{{ID: "bia", Name: "bia"}} }
func (onlyBia) Called(u worklist.User) string     { return string(u) }
func (onlyBia) Anybody(string) (users.Who, error) { return users.Who{ID: "rui", Name: "rui"}, nil }

func (onlyBia) Elsewhere() []users.Elsewhere { return nil }
func (onlyBia) Removed(string) bool          { return false }

func (onlyBia) Speak(users.Who, [sha256.Size]byte) ([]byte, error) { return []byte{1}, nil }

// noLoads: nobody has anything to do.
type noLoads struct{}

func (noLoads) Own(int) map[worklist.User]worklist.Load { return nil }
func (noLoads) OwnAt() int                              { return 0 }

func (noLoads) Hear(workflow.PartnerID, bool, map[worklist.User]worklist.Load, int) bool { return true }

// afar is a desk at a node that takes part in nothing, with partners that answer as they like.
func afar(t *testing.T) (*Desk, *partners, *nothing) {
	t.Helper()
	p := &partners{
		answers: map[workflow.PartnerID]func(string, []byte) any{}, words: map[workflow.PartnerID][]wire.Spoken{},
	}
	n := &nothing{}
	d, err := New(Surroundings{
		Self: "here", Store: kvtest.New(), Clock: wallClock{}, Peers: p, People: onlyBia{}, Instances: n,
		Loads: noLoads{},
		Waits: func() bool { return false },
		Nudge: func() {}, Publish: func(api.Event) {}, Random: func(n int) []byte { return make([]byte, n) },
		Name:    func(p workflow.PartnerID) string { return string(p) },
		Explain: func(err error) error { return err }, Known: func(time.Time) string { return "" },
		Absent:         func(workflow.PartnerID) *api.Absence { return nil },
		Gone:           func(workflow.PartnerID) bool { return false },
		Evicted:        func(workflow.PartnerID) bool { return false },
		Heard:          func(workflow.PartnerID) time.Time { return time.Time{} },
		Has:            func(workflow.File) bool { return false },
		Lacks:          func(f workflow.File) int64 { return f.Size },
		NoRoom:         func([]Content) int64 { return 0 },
		Away:           func() (time.Time, bool) { return time.Time{}, false },
		Until:          func() *time.Time { return nil },
		ConnectionTime: func(workflow.PartnerID) time.Duration { return 15 * time.Second },
	})
	if err != nil {
		t.Fatal(err)
	}
	return d, p, n
}

// lists has a partner list rows, and answer no other question.
func lists(rows ...Row) func(string, []byte) any {
	return func(protocol string, _ []byte) any {
		if protocol != ProtocolItems {
			return nil
		}
		return rows
	}
}

// weigh is an item of a task that may be done out of reach.
func weigh(mine worklist.Mode) Row {
	return Row{
		Instance: workflow.InstanceID{7}, Workflow: "rota", Task: "weigh", Item: worklist.Item{Slot: "weigh"},
		Offline: true, Mine: mine,
		Grant: worklist.ID{1}, Since: time.Now(),
	}
}

func wantError(t *testing.T, err error, code api.Code, text string) {
	t.Helper()
	var e *api.Error
	if !errors.As(err, &e) || e.Code != code || !strings.Contains(e.Message, text) {
		t.Errorf("the error is %v, want %s with %q", err, code, text)
	}
}

// Of several items that a holder locked, and of which it does not list some again, the device keeps the others, and the
// user is told which it does not keep: they are locked, and can be locked once more.
func TestWhatIsLockedAndNotListedAgain(t *testing.T) {
	d, p, _ := afar(t)
	d.in.MayLock = func() error { return nil }
	task := func(name workflow.TaskName) Row {
		r := weigh("")
		r.Task, r.Item.Slot = name, name
		return r
	}
	var again []Row
	listed := []Row{task("cut"), task("feed"), task("weigh")}
	p.answers["base"] = func(protocol string, _ []byte) any {
		switch {
		case protocol != ProtocolItems:
			return nil
		case len(p.words["base"]) > 0:
			return again
		}
		return listed
	}
	locked := task("weigh")
	locked.Mine = worklist.Lock
	lock := func() error {
		_, err := d.Claim(t.Context(), api.ClaimRequest{
			Claim: api.ClaimLock, Items: []string{listed[0].ID(), listed[1].ID(), listed[2].ID()},
		})
		return err
	}
	kept := func() (out []string) {
		for _, k := range d.allKept("bia") {
			out = append(out, string(k.row().Task))
		}
		slices.Sort(out)
		return out
	}
	again = []Row{task("feed"), locked} // cut is not listed at all
	wantError(t, lock(), api.Failed,
		"cut, feed are locked, but this device cannot keep them for when it is out of reach: base did not say so again")
	if got := kept(); !slices.Equal(got, []string{"weigh"}) {
		t.Errorf("the device keeps %q, want weigh", got)
	}
	feed := task("feed")
	feed.Mine = worklist.Lock
	again = []Row{feed, locked}
	wantError(t, lock(), api.Failed,
		"cut is locked, but this device cannot keep it for when it is out of reach: base did not say so again")
	if got := kept(); !slices.Equal(got, []string{"feed", "weigh"}) {
		t.Errorf("the device keeps %q, want feed and weigh", got)
	}
}

// Whoever gives an item says with it how it stands and what is needed to do it, so nobody asks for that, and the device
// has it when it is out of reach. What none can be is refused, and asked for.
func TestWhatIsGivenIsNotAskedFor(t *testing.T) {
	for _, x := range []struct {
		what    string
		got     func(*got)
		asked   []string
		refused bool
	}{
		{"all is said", func(*got) {}, nil, false},
		{"an earlier version says nothing", nil, []string{ProtocolItems, ProtocolItem}, false},
		{"no sheet", func(g *got) { g.Sheets = nil }, []string{ProtocolItem}, false},
		{"an item that there cannot be", func(g *got) { g.Rows[0].Size = -1 }, []string{ProtocolItems, ProtocolItem}, true},
		{"a sheet that there cannot be", func(g *got) { g.Sheets[g.Rows[0].ID()].Fields = []api.Field{{Name: "a b"}} },
			[]string{ProtocolItems, ProtocolItem}, true},
		{"a sheet of null", func(g *got) { g.Sheets[g.Rows[0].ID()] = nil }, []string{ProtocolItem}, false},
	} {
		d, p, _ := afar(t)
		d.in.MayLock, d.in.Log = func() error { return nil }, slog.New(slog.DiscardHandler)
		locked := weigh(worklist.Lock)
		var asked []string
		p.answers["base"] = func(protocol string, _ []byte) any {
			if len(p.words["base"]) == 0 {
				return []Row{weigh("")}
			}
			if asked = append(asked, protocol); protocol == ProtocolItem {
				return Sheet{Doc: "Weigh it."}
			}
			return []Row{locked}
		}
		if x.got != nil {
			g := &got{Rows: []Row{locked}, Sheets: map[string]*Sheet{locked.ID(): {Doc: "Weigh it."}}}
			x.got(g)
			p.gives = answer{Got: g}
		}
		if _, err := d.Claim(t.Context(), api.ClaimRequest{Claim: api.ClaimLock, Items: []string{locked.ID()}}); err != nil {
			t.Errorf("%s: %v", x.what, err)
			continue
		}
		if !slices.Equal(asked, x.asked) || slices.Contains(p.refused, "items-malformed") != x.refused {
			t.Errorf("%s: asked for %q, want %q; refused: %q", x.what, asked, x.asked, p.refused)
		}
		k := d.keptFor("bia", locked.ID())
		if k == nil || k.more().Sheet == nil || k.more().Sheet.Doc != "Weigh it." {
			t.Errorf("%s: the device keeps %+v", x.what, k)
		}
		if d.taken["bia"][locked.ID()].at != "base" {
			t.Errorf("%s: it is not noted of whom it was taken", x.what)
		}
	}
}

// Somebody who lies and lists an item that a user has locked with another gets nothing of it: while its holder is
// out of reach the result waits for that one, also if the liar had listed the item before.
func TestWhoListsWhatAnotherHoldsGetsNoResult(t *testing.T) {
	for _, before := range []bool{false, true} {
		d, p, _ := afar(t)
		list := api.WorklistQuery{}
		item := weigh("")
		if before {
			p.answers["liar"] = lists(weigh(worklist.Lock))
			if _, err := d.List(t.Context(), list); err != nil {
				t.Fatal(err)
			}
			delete(p.answers, "liar")
		}
		p.answers["base"] = lists(weigh(worklist.Lock))
		who, _ := d.in.People.Who("")
		held := weigh(worklist.Lock)
		held.At, held.AsOf = "base", time.Now()
		if err := d.keepTaken(t.Context(), who, []*Row{&held}, nil); err != nil {
			t.Fatal(err)
		}
		delete(p.answers, "base")
		p.answers["liar"] = lists(weigh(worklist.Lock))
		out, err := d.Finish(t.Context(), api.ItemResult{Item: item.ID()})
		if err != nil || out.Delivered || out.Partner != "base" || len(p.words["liar"]) > 0 {
			t.Fatalf("listed before: %t; what was done is %+v, %v, and the liar got %d words", before, out, err,
				len(p.words["liar"]))
		}
		if box := d.Outbox(t.Context()); len(box) != 1 || !slices.Equal(box[0].WaitsFor, []string{"base"}) {
			t.Errorf("the outbox is %+v", box)
		}
		got, err := d.List(t.Context(), list)
		if err != nil || len(got) != 1 || got[0].Partner != "base" || got[0].State != api.ItemDone {
			t.Errorf("the list is %+v, %v", got, err)
		}
		p.answers["base"] = lists(weigh(worklist.Lock))
		d.deliver()
		if len(p.words["base"]) != 1 || len(d.Outbox(t.Context())) != 0 {
			t.Errorf("base got %d words, and the outbox is %+v", len(p.words["base"]), d.Outbox(t.Context()))
		}
	}
}

// Of what a user took, only what its holder says counts; of what nobody has, nothing is signed while two say that they
// hold it.
func TestTwoWhoSayThatTheyHoldAnItem(t *testing.T) {
	d, p, _ := afar(t)
	free, mine := weigh(""), weigh(worklist.Select)
	p.answers["base"], p.answers["liar"] = lists(free), lists(free)
	claim := api.ClaimRequest{Claim: api.ClaimSelect, Items: []string{free.ID()}}
	_, err := d.Claim(t.Context(), claim)
	wantError(t, err, api.Refused, "both base and liar say that they hold weigh")
	_, err = d.Claim(t.Context(), api.ClaimRequest{Claim: api.ClaimSelect, Items: []string{free.ID()[:6]}})
	wantError(t, err, api.Refused, "both base and liar say that they hold weigh")
	if len(p.words) > 0 {
		t.Errorf("words went to %v", p.words)
	}

	delete(p.answers, "liar")
	if _, err = d.List(t.Context(), api.WorklistQuery{}); err != nil {
		t.Fatal(err)
	}
	delete(d.heard["bia"], "liar")
	if _, err = d.Claim(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	p.answers["base"], p.answers["liar"] = lists(mine), lists(mine)
	if _, err = d.Finish(t.Context(), api.ItemResult{Item: free.ID()}); err != nil {
		t.Fatal(err)
	}
	if len(p.words["base"]) != 2 || len(p.words["liar"]) > 0 {
		t.Errorf("words went to %v", p.words)
	}
}

// targets has a partner say what an order is about.
func targets(t Target) func(string, []byte) any {
	return func(string, []byte) any { return answeredTarget{Target: t, Here: true} }
}

// What a person at a node that takes no part signs is what the person named whole, or what is known there: who says
// that it is something else, or completes a name, gets no word.
func TestForgedTargets(t *testing.T) {
	id, result := workflow.InstanceID{0xab, 1}, worklist.ID{0xcd, 2}
	other := workflow.InstanceID{0xab, 9}
	cancel, adopt := Target{Instance: id, At: "base"},
		Target{Instance: id, Task: "weigh", Item: worklist.Item{Slot: "weigh"}, At: "base", Result: result}
	stop := Target{Instance: id, Task: "weigh", Item: worklist.Item{Slot: "weigh"}, At: "base"}
	change := func(t Target, by func(*Target)) *Target { by(&t); return &t }
	whole, name := id.String(), hex.EncodeToString(result[:])
	ordering := func(ref, what string) func(*Desk) error {
		return func(d *Desk) error {
			_, err := d.Order(context.Background(),
				api.TaskOrder{ID: ref, Order: what, Task: map[string]workflow.TaskName{api.TaskStop: "weigh"}[what]})
			return err
		}
	}
	adopting := func(ref, result string) func(*Desk) error {
		return func(d *Desk) error {
			_, err := d.Adopt(context.Background(), api.AdoptRequest{ID: ref, Result: result})
			return err
		}
	}
	for _, x := range []struct {
		name       string
		do         func(*Desk) error
		base, liar *Target
		known      workflow.InstanceID
		want       string // in the refusal; empty: base gets the word
	}{
		{"cancel", ordering(whole, api.TaskCancel), &cancel, nil, everywhere, ""},
		{"cancel, in short", ordering(whole[:8], api.TaskCancel), &cancel, nil, everywhere, "only base says something"},
		{"cancel, in short, of what is known", ordering(whole[:8], api.TaskCancel), &cancel, nil, id, ""},
		{"another instance", ordering(whole[:2], api.TaskCancel), nil,
			change(cancel, func(t *Target) { t.Instance, t.At = other, "liar" }), everywhere,
			"only liar says something"},
		{"another instance than is known", ordering(whole[:2], api.TaskCancel), nil,
			change(cancel, func(t *Target) { t.Instance, t.At = other, "liar" }), id, "begins the IDs of 2"},
		{"an item of a whole instance", ordering(whole, api.TaskCancel), nil,
			change(cancel, func(t *Target) { t.Item.Assigned, t.At = [32]byte{1}, "liar" }), everywhere,
			"takes no part"},
		{"of another workflow", ordering(whole, api.TaskCancel), &cancel,
			change(cancel, func(t *Target) { t.Workflow, t.At = "x", "liar" }), everywhere, "do not agree"},
		{"carried out by another", ordering(whole, api.TaskCancel), nil, &cancel, everywhere, "takes no part"},
		{"adopt", adopting(whole, name), &adopt, nil, everywhere, ""},
		{"adopt, in short", adopting(whole, name[:10]), &adopt, nil, everywhere, "only base says something"},
		{"another result", adopting(whole, name[:10]), nil,
			change(adopt, func(t *Target) { t.Result[31], t.At = 1, "liar" }), everywhere, "only liar says something"},
		{"two results", adopting(whole, name[:10]), &adopt,
			change(adopt, func(t *Target) { t.Result[31], t.At = 1, "liar" }), everywhere, "do not agree"},
		{"a result of another task", adopting(whole, name), &adopt,
			change(adopt, func(t *Target) { t.Task, t.At = "feed", "liar" }), everywhere, "do not agree"},
		{"adopted for nothing", adopting(whole, name), nil,
			change(adopt, func(t *Target) { t.Item, t.Task, t.At = worklist.Item{}, "", "liar" }), everywhere,
			"takes no part"},
		{"stop", ordering(whole, api.TaskStop), &stop, nil, everywhere, ""},
		{"stop, in short", ordering(whole[:8], api.TaskStop), &stop, nil, everywhere, "only base says something"},
		{"the item of another task", ordering(whole, api.TaskStop), nil,
			change(stop, func(t *Target) { t.Item.Slot, t.At = "feed", "liar" }), everywhere, "in place of feed"},
	} {
		d, p, n := afar(t)
		n.heardOf = x.known
		for who, says := range map[workflow.PartnerID]*Target{"base": x.base, "liar": x.liar} {
			if says != nil {
				p.answers[who] = targets(*says)
			}
		}
		switch err := x.do(d); {
		case x.want == "" && (err != nil || len(p.words["base"]) != 1):
			t.Errorf("%s: base got %d words, %v", x.name, len(p.words["base"]), err)
		case x.want != "" && (err == nil || !strings.Contains(err.Error(), x.want) || len(p.words) > 0):
			t.Errorf("%s: words went to %v; %v, want %q", x.name, p.words, err, x.want)
		}
	}
}

// message is one about an instance.
func message(id workflow.InstanceID, task workflow.TaskName) Told {
	return Told{Message: worklist.Message{ID: worklist.MessageID{
		Instance: id, Type: worklist.TaskFailed, Item: worklist.Item{Slot: task},
	}, At: time.Now()}, From: "base"}
}

// unread is how many messages bia has not read.
func (d *Desk) unreadNow(t *testing.T) int {
	t.Helper()
	got, err := d.Messages(t.Context(), api.MessagesQuery{Unread: true})
	if err != nil {
		t.Fatal(err)
	}
	return len(got)
}

// A message that was read stays so if it is not there for a while, as when its holder cannot be asked: also if
// others are read meanwhile, and after a restart. What is noted is bounded.
func TestWhatWasReadStaysRead(t *testing.T) {
	d, _, n := afar(t)
	a, b := workflow.InstanceID{1}, workflow.InstanceID{2}
	all := []Told{message(a, "weigh"), message(a, "feed"), message(b, "weigh")}
	reads := func(told []Told) {
		n.told = told
		if err := d.ReadMessages(t.Context(), api.MessagesRead{All: true}); err != nil {
			t.Fatal(err)
		}
	}
	reads(all[:1])
	reads(all[1:2]) // the first is not there, nor anything of the other instance
	reads(nil)
	n.told = all
	if got := d.unreadNow(t); got != 1 {
		t.Errorf("%d of 3 messages are new, of which two were read", got)
	}
	again, err := New(d.in)
	if err != nil {
		t.Fatal(err)
	}
	if got := again.unreadNow(t); got != 1 {
		t.Errorf("after a restart %d of 3 messages are new, of which two were read", got)
	}

	for i := range maxMarks + 100 {
		d.mu.Lock()
		err := d.mark(users.Who{ID: "bia"}, map[workflow.InstanceID]map[string]bool{a: {all[0].ID.String(): true}},
			map[workflow.InstanceID][]string{
				a: {fmt.Sprintf("%064x", i)}, {byte(i), byte(i >> 8), 3}: {"00"},
			})
		d.mu.Unlock()
		if err != nil {
			t.Fatal(err)
		}
	}
	n.told = all[:1]
	if m := d.seen[a]["bia"]; len(m.order) != maxMarks || len(m.has) != maxMarks || d.unreadNow(t) != 0 ||
		len(d.seen) > maxMarked+2 {
		t.Errorf("of one instance %d are noted as read, of %d instances something", len(m.order), len(d.seen))
	}
}

// The deadlines of what a user took from here are told however much was taken before, at other holders or by
// somebody who gave it back.
func TestDeadlinesAfterMuchWasTaken(t *testing.T) {
	d, p, _ := afar(t)
	who, _ := d.in.People.Who("")
	for i := range 3 * maxTaken {
		r := weigh("")
		r.Instance, r.At = workflow.InstanceID{byte(i), byte(i >> 8), 1}, "base"
		if i%3 == 0 {
			r.At = "here"
		}
		d.noteTaken(who, &r)
		if i%3 == 1 {
			d.forgetTaken(who, &r)
		}
	}
	r := weigh(worklist.Select)
	r.Due, r.DueLeft = worklist.Due{After: time.Hour}, -time.Minute
	p.answers["base"] = lists(r)
	if _, err := d.List(t.Context(), api.WorklistQuery{}); err != nil {
		t.Fatal(err)
	}
	r.At = "base"
	d.noteTaken(who, &r)
	if got := d.unreadNow(t); got != 1 {
		t.Errorf("%d messages say that its time is over", got)
	}
	if d.forgetTaken(who, &r); d.unreadNow(t) != 0 {
		t.Error("who gave it back is told of its deadline")
	}
}
