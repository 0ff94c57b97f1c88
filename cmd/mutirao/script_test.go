package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/api/apitest"
	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
	"github.com/mutirao-mesh/mutirao/node/web"
	"github.com/mutirao-mesh/mutirao/workflow"
)

func TestMain(m *testing.M) {
	// Scripts wait for what nodes do, most of the time. Who runs the tests may say another number.
	if err := flag.Set("test.parallel", "5"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	testscript.Main(m, map[string]func(){"mutirao": main})
}

// ordered is how the node of scripts carries orders out: not without a reason, and only those of ana.
func ordered(r api.TaskOrder) (*api.TaskOrdered, error) {
	switch {
	case r.User == "bia":
		return nil, api.Errorf(api.NotAllowed,
			"ana answers for the instance: that is decided by ana, or by who has the role of its administrators")
	case r.Reason == "":
		return nil, api.Errorf(api.Refused, "%s may not be cancelled without a reason", r.ID).WithHint("add --reason")
	}
	return &api.TaskOrdered{ID: r.ID, Task: r.Task, Order: r.Order, User: "ana", At: "engine-7"}, nil
}

// The scripts in testdata use the program as a user does. "serve DIR" puts a
// made-up node into a folder; "unserve DIR" stops it; "ready DIR" waits until the
// node of a folder answers, made up or real; "certify DIR NAME" puts a certificate
// of its own making for that name into a folder, as cert.pem and key.pem; "browse
// FILE LANGUAGE PATH..." opens the link in a file as a browser does, and prints the
// node's pages; "phone FILE LANGUAGE PATH..." does so with what "mutirao web --lan -o json" printed into
// the file, and trusts the certificate of that fingerprint only; "request FILE METHOD PATH" asks the made-up node in the folder node
// with the token in a file.
func TestScripts(t *testing.T) {
	nodes := map[string]*httpapi.Server{}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("TZ", "UTC")
			e.Setenv("GORACE", "atexit_sleep_ms=0")
			e.Setenv("MUTIRAO_DIR", filepath.Join(e.WorkDir, "node"))
			examples, err := filepath.Abs("../../configs/workflows")
			if err != nil {
				return err
			}
			e.Setenv("EXAMPLES", examples)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"serve": func(ts *testscript.TestScript, _ bool, args []string) {
				dir := ts.MkAbs(args[0])
				ts.Check(os.MkdirAll(dir, 0o700))
				ts.Check(os.WriteFile(filepath.Join(dir, api.MemberFile), []byte("made up"), 0o600))
				s, err := httpapi.Serve(dir, "127.0.0.1:0", newWorld().service(), httpapi.Options{
					Page:     web.New(newWorld().service(), slog.New(slog.DiscardHandler)),
					Networks: func() []netip.Addr { return []netip.Addr{netip.MustParseAddr("127.0.0.1")} },
				})
				ts.Check(err)
				stop := func() {
					ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
					defer cancel()
					ts.Check(s.Close(ctx))
				}
				ts.Defer(stop)
				nodes[dir] = s
			},
			"ready": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Check(answers(ts.MkAbs(args[0])))
			},
			"certify": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Check(certify(ts.MkAbs(args[0]), args[1]))
			},
			"phone": func(ts *testscript.TestScript, neg bool, args []string) {
				var answer struct{ URL, Fingerprint string }
				ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &answer))
				pages, err := browse(answer.URL, answer.Fingerprint, args[1], args[2:])
				if neg && err != nil {
					ts.Logf("%v", err)
					return
				}
				ts.Check(err)
				fmt.Fprint(ts.Stdout(), pages)
			},
			"browse": func(ts *testscript.TestScript, neg bool, args []string) {
				pages, err := browse(strings.TrimSpace(ts.ReadFile(args[0])), "", args[1], args[2:])
				if neg && err != nil {
					ts.Logf("%v", err)
					return
				}
				ts.Check(err)
				fmt.Fprint(ts.Stdout(), pages)
			},
			"request": func(ts *testscript.TestScript, _ bool, args []string) {
				answer, err := request(nodes[ts.MkAbs("node")], strings.TrimSpace(ts.ReadFile(args[0])), args[1],
					args[2])
				ts.Check(err)
				fmt.Fprint(ts.Stdout(), answer)
			},
			"sql": func(ts *testscript.TestScript, _ bool, args []string) {
				db, err := sql.Open("sqlite", ts.MkAbs(args[0])) // the driver that the program brings
				ts.Check(err)
				_, err = db.Exec(args[1])
				ts.Check(errors.Join(err, db.Close()))
			},
			"unserve": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Check(nodes[ts.MkAbs(args[0])].Close(context.Background()))
			},
		},
	})
}

// request asks a made-up node for something, and gives the status and the body.
func request(s *httpapi.Server, token, method, path string) (string, error) {
	req, err := http.NewRequest(method, s.Access().URL+path, strings.NewReader("{}"))
	if err != nil {
		return "", err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return fmt.Sprintf("%d %s", resp.StatusCode, b), err
}

// answers waits until the node of a folder answers.
func answers(dir string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		node, err := httpapi.Dial(dir)
		if err == nil {
			_, err = node.Status(ctx)
		}
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return err
		}
	}
}

// world is what the made-up node knows. Workflows end as their names say.
type world struct {
	shows int // calls of Show
}

func newWorld() *world { return &world{} }

var (
	noon  = time.Date(2025, 6, 1, 12, 0, 0, 0, time.UTC)
	later = noon.Add(90 * time.Minute)
)

const instanceID = "3f9a0c21d4aa00112233445566778899"

func (w *world) service() *apitest.Fake {
	return &apitest.Fake{
		UserFake: apitest.UserFake{OnUsers: func() ([]api.User, error) {
			return []api.User{{Name: "station", ID: "12D3KooWstation", Partner: true, Here: true}}, nil
		}},
		OnStatus: func() (*api.Status, error) {
			return &api.Status{
				Name: "station", ID: "12D3KooWstation", Mesh: "fire-service", Version: "v1",
				Roles:     []string{"commander"},
				Addresses: []string{"/ip4/10.0.0.1/udp/4001/quic-v1", "/ip4/10.0.0.1/tcp/4001"}, Since: noon,
				Incarnation: "77aa", Boot: 2,
				Instances: 1, Trouble: []string{"the disk is full"}, Counters: map[string]uint64{"facts.refused": 3},
			}, nil
		},
		OnPartners: func() ([]api.Partner, error) {
			return []api.Partner{
				{Name: "station", ID: "12D3KooWstation", Roles: []string{"commander"}, State: "active", Self: true,
					ConnectionTime: "15s"},
				{Name: "engine-7", ID: "12D3KooWengine", State: "unreachable", Reason: "going down",
					Addresses: []string{"/ip4/10.0.0.7/tcp/4001"}, Load: 0.5, FilesRate: 1_200_000, ConnectionTime: "15s",
					Refused: []api.Refusal{
						{Reason: "facts-forged", Times: 3, Last: noon}, {Reason: "look", Times: 1, Last: noon},
					}},
			}, nil
		},
		OnInvite: func(r api.InviteRequest) (*api.Invitation, error) {
			return &api.Invitation{
				Token: fmt.Sprintf("mutirao:%s:%s:%d", strings.Join(r.Roles, "+"), r.Expires, r.Uses), Expires: noon,
				Uses: r.Uses,
			}, nil
		},
		OnAddWorkflow: func(file string, src []byte) (*api.Workflow, error) {
			def, err := workflow.Parse(file, src)
			if err != nil {
				return nil, api.WrongDefinition(err)
			}
			return &api.Workflow{Name: def.Name, Version: def.Version, Definition: def.Canonical()}, nil
		},
		OnWorkflows: func() ([]api.Workflow, error) {
			return []api.Workflow{{Name: "fire-call", Version: 3, Tasks: 4, Partitions: []string{"station", "engine"},
				Added: noon, Hash: "9f2c", Current: true}}, nil
		},
		OnWorkflow: func(ref string) (*api.Workflow, error) {
			if ref != "fire-call" {
				return nil, api.Errorf(api.NotFound, "there is no workflow %s", ref).WithHint("mutirao workflow list")
			}
			return &api.Workflow{
				Name: "fire-call", Version: 3, Hash: "9f2c", Partitions: []string{"station", "engine"},
				Definition: json.RawMessage(`{"workflow":"fire-call","tasks":{"a":{"when":"x < 3"}}}`),
			}, nil
		},
		OnRemoveWorkflow: func(ref string) ([]api.Workflow, error) {
			return nil, api.Errorf(api.NotAllowed, "only the founder may remove %s", ref)
		},
		OnStart:     w.start,
		OnInstances: func(all bool) ([]api.InstanceSummary, error) { return w.instances(all), nil },
		OnShow:      w.show,
		OnLog: func(id string) ([]api.LogEntry, error) {
			return []api.LogEntry{
				{At: noon, Time: 1, Fact: "aa11", Author: "station", Seq: 1, Kind: "create", Text: "fire-call starts",
					Counted: true},
				{At: later, Time: 2, Fact: "bb22", Author: "engine-7", Seq: 1, Kind: "success", Task: "procedure-1",
					Text: "solved\nthe case"},
			}, nil
		},
		OnDiagram:    func(id, format string) ([]byte, error) { return []byte(format + " of " + id + "\n"), nil },
		WorklistFake: apitest.WorklistFake{OnOrderTask: ordered},
		OnCancel: func(id, reason string) error {
			if reason == "" {
				return api.Errorf(api.Refused, "%s may not be cancelled without a reason", id).WithHint("add --reason")
			}
			return nil
		},
		OnFinishTask: func(r api.FinishRequest) error {
			if r.Task == "unknown" {
				return api.Errorf(api.NotFound, "there is no task %s", r.Task)
			}
			if r.Failed && r.Reason == "" {
				return errInside
			}
			return nil
		},
	}
}

var errInside = fmt.Errorf("a secret of the store")

func (w *world) start(r api.StartRequest) (*api.Started, error) {
	if r.Workflow == "nothing" {
		return nil, api.Errorf(api.NotFound, "there is no workflow nothing").WithHint("mutirao workflow list")
	}
	s := &api.Started{ID: r.Workflow + "-" + instanceID}
	if len(r.Assign) > 0 || len(r.Input) > 0 {
		s.HeldOnlyHere = true
		s.Notes = []string{
			fmt.Sprintf("input %v, assign %v, responsible %q, transfer %q", r.Input, r.Assign, r.Responsible,
				r.Transfer),
		}
	}
	return s, nil
}

func (w *world) instances(all bool) []api.InstanceSummary {
	list := []api.InstanceSummary{{ID: instanceID, Workflow: "fire-call", Version: 3, State: workflow.InstanceRunning,
		Started: noon, Done: 1, Tasks: 3, At: []string{"engine-7"}}}
	if all {
		list = append(list, api.InstanceSummary{
			ID: "77" + instanceID[2:], Workflow: "eleven", Version: 1, State: workflow.InstanceSucceeded, Started: noon,
			Ended: &later, Done: 11, Tasks: 11,
		},
			api.InstanceSummary{
				ID: "88" + instanceID[2:], Workflow: "eleven", Version: 1, State: workflow.InstanceSucceeded,
				Started: noon, Ended: &later, Closed: &later,
			},
			api.InstanceSummary{ID: "66" + instanceID[2:], Workflow: "flood", Version: 1,
				State: workflow.InstanceRunning, Started: noon, Done: 2, Tasks: 9, At: []string{"boat"},
				AsOf: &noon, Known: "as known 12 min ago", Of: "boat", Needs: []api.Need{
					{Kind: "failed", Number: 5, Tasks: []workflow.TaskName{"bridge", "road"}},
					{Kind: "nobody", Number: 1, Tasks: []workflow.TaskName{"dive"}}, {Kind: "incident", Number: 1},
				}},
			api.InstanceSummary{
				ID: "99" + instanceID[2:], Version: 1, Started: noon,
				Quarantine: &api.Quarantine{Since: later, Why: "unreadable\x1b[2J\u202e\nall is well"},
			})
	}
	return list
}

// show gives an instance that ends, at the second look, as its ID says.
func (w *world) show(id string) (*api.Instance, error) {
	w.shows++
	states := map[string]workflow.InstanceState{
		"good": workflow.InstanceSucceeded, "bad": workflow.InstanceFailed, "stuck": workflow.InstanceBlocked,
		"halted": workflow.InstanceInterrupted, "stopped": workflow.InstanceCancelled,
		"endless": workflow.InstanceRunning,
		"pruned":  workflow.InstanceSucceeded,
	}
	name, _, _ := strings.Cut(id, "-")
	state, ok := states[name]
	if !ok && !strings.HasPrefix(instanceID, strings.ToLower(id)) {
		return nil, api.Errorf(api.NotFound, "there is no instance %s", id).WithHint("mutirao instances --all")
	}
	if !ok {
		id = instanceID
	}
	in := fireCall(id)
	if name == "pruned" {
		in = &api.Instance{
			ID: in.ID, Workflow: in.Workflow, Version: in.Version, State: state, Started: noon, Ended: &later,
		}
		in.Closed = &api.Closing{
			At: later, By: "station", Initiator: "engine-7", Facts: 12, Digest: "0a0b",
			Participants: []string{"engine-7", "station"}, Others: 1, Signature: "0c0d",
		}
		return in, nil
	}
	if ok && w.shows > 1 {
		in.State = state
		if state != workflow.InstanceRunning {
			in.Ended = &later
		}
		if state == workflow.InstanceFailed || state == workflow.InstanceBlocked {
			in.Tasks[1].State, in.Tasks[1].Reason = workflow.Failed, "no water"
		}
	}
	return in, nil
}

func ref[T any](v T) *T { return &v }

func fireCall(id string) *api.Instance {
	first := workflow.TaskName("procedure-1")
	return &api.Instance{
		ID: id, Workflow: "fire-call", Version: 3, State: workflow.InstanceRunning, Coordination: workflow.Choreography,
		Responsible: "ana", Started: noon,
		Partitions: []api.Partition{{Name: "engine", Partner: "engine-7", Attempt: 1, State: "running",
			Timeout: ref("1h0m0s"), Due: []api.Due{{Kind: "verdict", Left: "52m0s"}}}},
		Tasks: []api.Task{
			{Name: "dispatch", Partition: "station", Partner: "station", Attempt: 1, State: workflow.Succeeded,
				Started: &noon, Ended: &later},
			{Name: first, Partition: "engine", Partner: "engine-7", Attempt: 1, State: workflow.Running,
				Started: &later,
				AsOf:    &later, Known: "as known 12 min ago",
				Due: []api.Due{{Kind: "timeout", Left: "4m10s", About: true}}},
			{Name: "bridge", Partition: "station", Partner: "station", Attempt: 1, State: workflow.Failed,
				Reason: "bridge gone", ReplacedBy: ref[workflow.TaskName]("dispatch")},
			{Name: "road", Partition: "station", Partner: "station", Attempt: 1, State: workflow.Failed,
				Reason: "flooded", ReplacedBy: &first},
			{Name: "procedure-2", Partition: "reserve", Attempt: 2, State: workflow.NotReady, ContingencyOf: &first,
				TriggerFired: true},
		},
		Data:      map[string]any{"address": "Rua 1", "floors": 2},
		Incidents: []api.Incident{{At: noon, What: "engine-7 cannot be reached"}},
		Conflicts: []api.Conflict{{Data: "report", Values: []any{"a", "b"}}},
	}
}

// Every command explains itself, with examples that can be typed as they are.
func TestEveryCommandHasHelp(t *testing.T) {
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		for _, c := range cmd.Commands() {
			if c.Name() != "help" && !c.Hidden { // what is planned has nothing to type
				visit(c)
			}
		}
		if cmd.Short == "" {
			t.Errorf("%s: no short description", cmd.CommandPath())
		}
		if cmd.HasSubCommands() && cmd.HasParent() {
			return
		}
		if cmd.Example == "" {
			t.Errorf("%s: no example", cmd.CommandPath())
		}
		for line := range strings.Lines(cmd.Example) {
			checkExample(t, cmd, line)
		}
	}
	visit(newRoot())
}

func checkExample(t *testing.T, cmd *cobra.Command, line string) {
	t.Helper()
	_, words, ok := strings.Cut(strings.TrimSuffix(strings.TrimSpace(line), ")"), "mutirao ")
	if !ok {
		t.Errorf("%s: example %q does not run mutirao", cmd.CommandPath(), line)
		return
	}
	words, _, _ = strings.Cut(words, " #")
	words, _, _ = strings.Cut(words, " > ")
	found, args, err := newRoot().Find(strings.Fields(strings.ReplaceAll(words, `"`, "")))
	if err == nil {
		err = found.ParseFlags(args)
	}
	if err != nil || (cmd.HasParent() && found.CommandPath() != cmd.CommandPath()) {
		t.Errorf("%s: example %q runs %s: %v", cmd.CommandPath(), line, found.CommandPath(), err)
	}
}

// Ctrl-C is the ordinary end of watching, and no failure.
func TestCtrlCEndsAWatch(t *testing.T) {
	dir := t.TempDir()
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	fake := newWorld().service()
	looks := 0
	fake.OnPartners = func() ([]api.Partner, error) {
		if looks++; looks == 3 {
			interrupt()
		}
		return []api.Partner{{Name: fmt.Sprint("look-", looks), State: "active", Self: true}}, nil
	}
	fake.OnWatch = func(ctx context.Context, fn func(api.Event) error) error {
		for ctx.Err() == nil {
			_ = fn(api.Event{Kind: "partner"})
		}
		return ctx.Err()
	}
	s, err := httpapi.Serve(dir, "127.0.0.1:0", fake, httpapi.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(t.Context())
	var stdout, stderr bytes.Buffer
	if status := run(ctx, []string{"partners", "--watch", "--dir", dir, "-o", "json"}, &stdout, &stderr); status != exitDone {
		t.Errorf("status %d: %s", status, stderr.String())
	}
	lines := strings.Split(strings.TrimSpace(stdout.String()), "\n")
	if len(lines) < 2 || !strings.Contains(lines[0], "look-1") || !strings.Contains(lines[1], "look-2") {
		t.Errorf("want one line of JSON for each change, got:\n%s", stdout.String())
	}
	for _, line := range lines {
		if !json.Valid([]byte(line)) {
			t.Errorf("not JSON: %s", line)
		}
	}
}
