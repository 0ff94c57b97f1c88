package main

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/api/apitest"
	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// taken is why each command that changes something does not ask: it can be taken back, or is what people's work is
// made of. A command that is neither here nor in lasting fails the test: whoever adds one decides.
var taken = map[string]string{
	"coordinator elect": "another is elected", "coordinator resign": "it is elected again", "init": "a new folder",
	"join":   "a new folder",
	"invite": "it runs out", "profile set": "set again", "resources add": "removed again",
	"role grant": "revoked again", "role revoke": "granted again", "token add": "removed again",
	"up": "it stops", "user add": "removed again", "user link": "it runs out", "user sign-in": "signed out again",
	"web": "it runs out", "workflow add": "removed again", "start": "cancelled again",
	"task again": "it is what was asked for", "task complete": "a result", "task continue": "again is still there",
	"task fail":   "a result",
	"task extend": "more time hurts nobody", "notify": "changed again", "worker run": "what it has is given back",
	"task reject": "somebody else does it", "task start": "it only says so", "task transfer": "passed on again",
	"worklist complete":   "a result",
	"worklist disconnect": "mutirao worklist reconnect; it asks of items that nobody would have",
	"worklist fail":       "a result", "worklist lock": "released again",
	"worklist move": "moved again", "worklist open": "files are written beside others",
	"worklist prefetch":  "on and off again",
	"worklist reconnect": "disconnected again", "worklist release": "selected again",
	"worklist select":   "released again",
	"worklist transfer": "passed on again", "messages": "it only notes what was read", "demo": "nodes of its own",
	// These only show something.
	"coordinator status": "", "doctor": "", "partners": "", "profile show": "", "resources": "", "role list": "",
	"status": "", "token list": "",
	"user list": "", "workflow check": "", "workflow diagram": "", "workflow diff": "", "workflow merge": "",
	"workflow import": "", "workflow list": "",
	"workflow show": "",
	"data get":      "", "data list": "", "diagram": "", "gantt": "", "instances": "", "log": "", "outbox": "",
	"show":       "",
	"worklist":   "",
	"completion": "", "study": "", "version": "",
	"history": "", "amend": "amended again",
	// This is planned, and only says so.
	"rehearse": "",
}

const (
	adoptable = "77c0d1aa0011223344556677889900aabbccddeeff00112233445566778899ff"
	engineID  = "12D3KooWengine7engine7engine7engine7engine7engine7en"
	biaID     = "b1a0c21d4aa00112233445566778899b1a0c21d4aa00112233445566778899aa"
)

// lasting are the commands that cannot be taken back, as they are typed with whole IDs, and with beginnings of them.
var lasting = map[string]struct {
	whole string
	parts []string
}{
	"evict": {"evict " + engineID, []string{"evict 12D3KooWengine7", "evict engine7engine7"}},
	"coordinator electorate": {"coordinator electorate --override --set " + engineID,
		[]string{"coordinator electorate --override --set 12D3KooWengine7"}},
	"user remove":      {"user remove " + biaID, []string{"user remove b1a0c21d"}},
	"user sign-out":    {"user sign-out " + biaID, nil},
	"token remove":     {},                                  // the tokens are those of the API itself: testdata/tokens.txtar
	"resources remove": {"resources remove flood-map", nil}, // names only
	"leave":            {"leave --for-good", nil},
	"workflow remove":  {"workflow remove fire-call", nil}, // names and versions only
	"cancel":           {"cancel " + instanceID, []string{"cancel 3f9a"}},
	"task cancel":      {"task cancel " + instanceID + " procedure-1", []string{"task cancel 3f9a procedure-1"}},
	"task undo":        {"task undo " + instanceID + " dispatch", []string{"task undo 3f9a dispatch"}},
	"task skip": {"task skip " + instanceID + " procedure-1 --reason fog",
		[]string{"task skip 3f9a procedure-1 --reason fog"}},
	"task stop": {"task stop " + instanceID + " procedure-1", []string{"task stop 3f9a procedure-1"}},
	"task adopt": {"task adopt " + instanceID + " " + adoptable,
		[]string{"task adopt 3f9a " + adoptable, "task adopt " + instanceID + " 77c0d1"}},
	"outbox drop": {"outbox drop 5e0c91aa77d3b204", []string{"outbox drop 5e0c"}},
	"recover":     {"recover " + instanceID + " compensate", []string{"recover 3f9a compensate"}},
	"write-off": {"write-off " + instanceID + " " + engineID,
		[]string{"write-off 3f9a " + engineID, "write-off " + instanceID + " 12D3KooWengine7"}},
}

// What cannot be taken back is asked about on a terminal, and --yes skips that; nobody and nothing is named by the
// beginning of an ID where nobody is asked; what is refused anyway is not asked about.
func TestWhatCannotBeTakenBack(t *testing.T) {
	seen := map[string]bool{}
	var look func(cmd *cobra.Command)
	look = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			look(sub)
		}
		name := strings.TrimPrefix(cmd.CommandPath(), "mutirao ")
		_, asks := lasting[name]
		_, not := taken[name]
		seen[name] = true
		switch {
		case cmd.HasSubCommands() && !asks && !not:
		case asks == not:
			t.Errorf("%s: say in this test whether it can be taken back", name)
		case asks && cmd.Flags().Lookup("yes") == nil:
			t.Errorf("%s cannot be taken back, and has no --yes", name)
		case asks && !strings.Contains(strings.Join(strings.Fields(cmd.Long), " "),
			"On a terminal the command asks first") &&
			!strings.Contains(strings.Join(strings.Fields(cmd.Long), " "), "on a terminal the command asks first"):
			t.Errorf("the help of %s does not say that it asks", name)
		}
	}
	look(newRoot())
	for name := range taken {
		if !seen[name] {
			t.Errorf("there is no command %s", name)
		}
	}
	for name, x := range lasting {
		if x.whole == "" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			deeds := &deeds{}
			dir := t.TempDir()
			s, err := httpapi.Serve(dir, "127.0.0.1:0", deeds.service(), httpapi.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close(t.Context())
			try := func(line, answer string, want int, done bool, says string) {
				t.Helper()
				deeds.done = nil
				status, said := deeds.typed(t, dir, line, answer)
				if status != want || done != (len(deeds.done) > 0) || !strings.Contains(said, says) {
					t.Errorf("%s, answered %q: status %d, want %d; done %q; it says %s", line, answer, status, want,
						deeds.done, said)
				}
			}
			const question = "Go on? Type yes"
			try(x.whole, "no\n", 1, false, question)
			try(x.whole, "\n", 1, false, "nothing was done")
			try(x.whole, "yes\n", 0, true, question)
			try(x.whole+" --yes", "", 0, true, "")
			if _, said := deeds.typed(t, dir, x.whole+" --yes", "no\n"); strings.Contains(said, question) {
				t.Errorf("%s --yes asks", x.whole)
			}
			for _, part := range x.parts {
				try(part+" --yes", "", 2, false, "the beginning of an ID")
				try(part, "", 2, false, "the beginning of an ID") // nobody sits at a terminal
			}
			deeds.refuse = true
			if slices.Contains([]string{"leave", "cancel", "task cancel", "task stop", "task adopt", "write-off", "outbox drop"},
				name) {
				if status, said := deeds.typed(t, dir, x.whole, "yes\n"); status == 0 ||
					strings.Contains(said, question) {
					t.Errorf("%s: what is refused is asked about: %d, %s", x.whole, status, said)
				}
			}
		})
	}
}

// What a user did here and nobody has yet goes with the user's key: that is refused and not asked about, or, where it is
// to be discarded, the question names it.
func TestSignOutNamesWhatWaits(t *testing.T) {
	d := &deeds{items: []api.Item{{Task: "weigh", State: api.ItemDone}, {Task: "feed", State: api.ItemLocked}}}
	dir := t.TempDir()
	s, err := httpapi.Serve(dir, "127.0.0.1:0", d.service(), httpapi.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(t.Context())
	for _, x := range []struct {
		line, answer string
		want         int
		says         string
	}{
		{"", "yes\n", 6, "what bia did here waits"}, {" --yes", "", 6, "what bia did here waits"},
		{" --discard", "no\n", 1, "is lost with it: weigh of "}, {" --discard", "yes\n", 0, "is lost with it: weigh of "},
		{" --discard --yes", "", 0, "bia is signed out"},
	} {
		d.done = nil
		status, said := d.typed(t, dir, "user sign-out "+biaID+x.line, x.answer)
		if status != x.want || (status == 0) != (len(d.done) > 0) || !strings.Contains(said, x.says) ||
			status == 6 && strings.Contains(said, "Go on?") {
			t.Errorf("%s, answered %q: status %d; done %q; it says %s", x.line, x.answer, status, d.done, said)
		}
	}
}

// The values of a refused result are shown with -v: they may be nowhere else.
func TestTheOutboxShowsWhatWasSet(t *testing.T) {
	d, dir := &deeds{}, t.TempDir()
	s, err := httpapi.Serve(dir, "127.0.0.1:0", d.service(), httpapi.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(t.Context())
	for line, shown := range map[string]bool{"outbox": false, "outbox -v": true, "outbox -o json": true} {
		status, said := d.typed(t, dir, line, "")
		if status != 0 || strings.Contains(strings.ReplaceAll(said, `"weight": "31"`, "weight = 31"), "weight = 31") != shown {
			t.Errorf("%s: status %d; it says %s", line, status, said)
		}
	}
}

// Before a node leaves it is said how many refused results only it has, also where nobody is asked.
func TestLeaveSaysWhatOnlyThisNodeHas(t *testing.T) {
	d, dir := &deeds{}, t.TempDir()
	f := d.service()
	f.OnLeave = func(api.LeaveRequest) (*api.Leaving, error) { return &api.Leaving{Left: true, Kept: 2}, nil }
	s, err := httpapi.Serve(dir, "127.0.0.1:0", f, httpapi.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(t.Context())
	const what = "2 refused results in the outbox of this node, which nobody else has, can be read "
	for line, says := range map[string]string{
		"leave":                          what + "only from its folder: keep it",
		"leave --for-good --yes":         what + "no more when it has left for good",
		"leave --for-good --yes -o json": `"kept": 2`,
	} {
		if status, said := d.typed(t, dir, line, ""); status != 0 || !strings.Contains(said, says) {
			t.Errorf("%s: status %d; it says %s", line, status, said)
		}
	}
}

// deeds are what a node was told to do.
type deeds struct {
	done   []string
	refuse bool // it is over, done, or not allowed already
	items  []api.Item
}

func (d *deeds) note(what string, args ...any) { d.done = append(d.done, fmt.Sprintf(what, args...)) }

func (d *deeds) service() *apitest.Fake {
	f := newWorld().service()
	f.OnPartners = func() ([]api.Partner, error) {
		return []api.Partner{{Name: "engine-7", ID: engineID, State: "active"}}, nil
	}
	f.OnUsers = func() ([]api.User, error) { return []api.User{{Name: "bia", ID: biaID}}, nil }
	f.OnShow = func(id string) (*api.Instance, error) {
		if !strings.HasPrefix(instanceID, id) {
			return nil, api.Errorf(api.NotFound, "there is no instance %s", id)
		}
		in := fireCall(instanceID)
		in.Incidents = []api.Incident{{What: "a result of bia is kept", Task: "procedure-1", Result: adoptable,
			Commands: []string{"mutirao task adopt"}}}
		in.Recovery = &api.Recovery{Methods: []string{"compensate"}}
		in.Asks = []api.Ask{{Task: "procedure-1", Orders: []string{api.TaskAgain, api.TaskSkip}}}
		if d.refuse {
			in.State, in.Tasks[1].State, in.Incidents[0].Commands = workflow.InstanceSucceeded, workflow.Succeeded, nil
		}
		return in, nil
	}
	f.OnEvict = func(r api.EvictRequest) (*api.Evicted, error) {
		if !r.Check {
			d.note("evict %s", r.Partner)
		}
		return &api.Evicted{Name: "engine-7"}, nil
	}
	f.OnElectorate = func() (*api.Electorate, error) { return &api.Electorate{}, nil }
	f.OnSetElectorate = func(r api.ElectorateRequest) (*api.Electorate, error) {
		d.note("electorate %v", r.Set)
		return &api.Electorate{}, nil
	}
	f.OnRemoveUser = func(u string) (*api.RemovedUser, error) {
		if u != biaID {
			return nil, onlyBeginning(u)
		}
		d.note("remove %s", u)
		return &api.RemovedUser{Name: "bia"}, nil
	}
	f.OnWorklist = func(api.WorklistQuery) ([]api.Item, error) { return d.items, nil }
	f.OnSignOutUser = func(r api.SignOutRequest) (*api.SignedOut, error) {
		if len(d.items) > 0 && !r.Discard {
			return nil, api.Errorf(api.Refused, "what bia did here waits to be handed in")
		}
		d.note("sign out %s", r.User)
		return &api.SignedOut{Name: "bia", Devices: []string{"two"}}, nil
	}
	f.OnResources = func(string) ([]api.Resource,
		error) {
		return []api.Resource{{Kind: "data", Name: "flood-map"}}, nil
	}
	f.OnRemoveData = func(name string) error { d.note("remove data %s", name); return nil }
	f.OnLeave = func(r api.LeaveRequest) (*api.Leaving, error) {
		if d.refuse {
			return nil, api.Errorf(api.Refused, "the founder does not leave for good")
		}
		if !r.Check {
			d.note("leave")
		}
		return &api.Leaving{}, nil
	}
	f.OnRemoveWorkflow = func(ref string) ([]api.Workflow, error) { d.note("remove %s", ref); return nil, nil }
	f.OnForesee = func(string, api.RecoveryStep) (*api.Outlook, error) {
		return &api.Outlook{Interruption: "77c0d1", From: 3, Undoes: []api.Undoing{{Task: "dispatch", State: 3}}}, nil
	}
	f.OnOrderTask = func(r api.TaskOrder) (*api.TaskOrdered, error) {
		d.note("%s %s", r.Order, r.ID)
		return &api.TaskOrdered{ID: r.ID, Task: r.Task, Order: r.Order}, nil
	}
	f.OnAdoptResult = func(r api.AdoptRequest) (*api.Adopted, error) {
		d.note("adopt %s", r.Result)
		return &api.Adopted{ID: r.ID}, nil
	}
	f.OnOutbox = func() ([]api.Undelivered, error) {
		if d.refuse {
			return nil, nil
		}
		return []api.Undelivered{{Task: "procedure-1", User: "bia", What: "completed", Outputs: map[string]string{"weight": "31"},
			Refused: "the item was handed on", ID: "5e0c91aa77d3b204"}}, nil
	}
	f.OnDropRefused = func(r api.DropRequest) (*api.Undelivered, error) {
		d.note("drop %s", r.ID)
		return &api.Undelivered{ID: r.ID}, nil
	}
	f.OnWriteOff = func(id, p string, check bool) error {
		switch {
		case d.refuse:
			return api.Errorf(api.Refused, "it is written off already")
		case p != engineID:
			return onlyBeginning(p)
		case !check:
			d.note("write off %s", p)
		}
		return nil
	}
	return f
}

// typed is what a command does and says that is typed at a terminal, with the answer to its question; without one,
// it is run by a program.
func (d *deeds) typed(t *testing.T, dir, line, answer string) (status int, said string) {
	t.Helper()
	var out bytes.Buffer
	root := newRoot()
	root.SetArgs(append(strings.Fields(line), "--dir", dir))
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetIn(strings.NewReader(""))
	if answer != "" {
		root.SetIn(typist(t, answer))
	}
	cmd, err := root.ExecuteContextC(t.Context())
	status = report(&out, cmd, err)
	return status, out.String()
}

// typist is a terminal at which somebody has typed something.
func typist(t *testing.T, text string) *os.File {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	t.Cleanup(func() { master.Close() })
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	t.Cleanup(func() { slave.Close() })
	if _, err := master.WriteString(text); err != nil {
		t.Fatal(err)
	}
	return slave
}
