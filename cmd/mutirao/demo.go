package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/internal/plain"
	"github.com/mutirao-mesh/mutirao/internal/private"
	"github.com/mutirao-mesh/mutirao/node"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
	"github.com/mutirao-mesh/mutirao/node/assemble"
	"github.com/mutirao-mesh/mutirao/workflow"
)

func newDemoCommand() *cobra.Command {
	var headless bool
	var limit string
	cmd := &cobra.Command{
		Use:   "demo [--headless]",
		Short: "° Three nodes, a fire call, and a crew that nobody can reach",
		Long: `Starts three nodes on this machine, each a process with a store of its own, and runs
a fire call over them. Half-way the engine crew's node is killed; the reserve's
emergency trigger fires by itself, the case is closed, the crew comes back, and
all three agree. That takes less than a minute; on a machine so busy that it takes
three, the demo gives up. Without --headless the nodes stay up until Ctrl-C, to look
at.`,
		Example: `  mutirao demo
  mutirao demo --headless`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			d, err := workflow.ParseDuration(limit)
			if err != nil || d == 0 {
				return usagef("--limit %q: want a duration above 0, such as 10m", limit)
			}
			return demo(cmd.Context(), uiOf(cmd), headless, d)
		},
	}
	cmd.Flags().BoolVar(&headless, "headless", false, "end when the story is told")
	cmd.Flags().StringVar(&limit, "limit", "3m", "for how `long` the story may take: on a busy machine it takes longer")
	return cmd
}

//go:embed demo.yaml
var demoWorkflow []byte

// demoConfig is the configuration of the demo's nodes: on this machine only,
// quick to notice that one is away.
const demoConfig = "preset: local\nconnection-time: 20s\n"

// stage is where the demo plays.
type stage struct {
	out   io.Writer
	begun time.Time
	dir   string
	nodes map[string]*actor
}

// actor is one partner of the story: a process with a folder.
type actor struct {
	name, role string
	dir        string
	log        *os.File
	cmd        *exec.Cmd
	api        *httpapi.Client
}

func demo(ctx context.Context, u *ui, headless bool, limit time.Duration) error {
	dir, err := os.MkdirTemp("", "mutirao-") // short: the closing hints name it
	if err != nil {
		return err
	}
	s := &stage{out: u.out, begun: time.Now(), dir: dir, nodes: map[string]*actor{}}
	defer s.clear()
	story, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err := s.play(story); err != nil {
		if story.Err() != nil && ctx.Err() == nil {
			return api.Errorf(api.Failed,
				"the demo did not get to its end within %s; where the machine is not busy it takes less than a minute (%v)\nwhat the nodes said is in %s",
				workflow.FormatDuration(limit), strings.TrimSuffix(err.Error(), ": "+context.DeadlineExceeded.Error()),
				s.keep()).WithHint("give it longer: mutirao demo --limit %s", workflow.FormatDuration(4*limit))
		}
		return fmt.Errorf("the demo did not get to its end: %w\nwhat the nodes said is in %s", err, s.keep())
	}
	if headless {
		return nil
	}
	if err := s.invite(ctx, programName()); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// invite says how to look around, in lines that run as they are printed.
func (s *stage) invite(ctx context.Context, program string) error {
	page, _, err := s.nodes["station"].api.SignIn(ctx, httpapi.SignInLink{})
	if err != nil {
		return err
	}
	s.say("")
	s.say("The nodes stay up until Ctrl-C. In another terminal%s:", hereToo(program))
	s.say("")
	for _, line := range lookAround(program, s.nodes["station"].dir, s.nodes["engine"].dir) {
		s.say("%s", line)
	}
	s.say("")
	s.say("Or in a browser: the station's page, by a link that opens it once:")
	s.say("%s", page)
	return nil
}

// lookAround are commands that can be typed as they are; one too long for a line goes on in
// the next, as shells take it.
func lookAround(program, station, engine string) (lines []string) {
	if program != runFromSource {
		program = private.Quote(program)
	}
	for _, c := range [][2]string{{station, "partners"}, {engine, "instances --all"}} {
		dir := "--dir " + private.Quote(c[0])
		if line := program + " " + dir + " " + c[1]; plain.Width(line) <= demoWidth-len("  ") {
			lines = append(lines, line)
			continue
		}
		if plain.Width(dir+" "+c[1]) <= demoWidth-len("    ") {
			lines = append(lines, program+" \\", "  "+dir+" "+c[1])
			continue
		}
		lines = append(lines, program+" \\", "  "+dir+" \\", "  "+c[1])
	}
	return lines
}

// runFromSource is how the program is run that `go run` built.
const runFromSource = "go run ./cmd/mutirao"

// hereToo says where a command can be typed that names a folder of the source.
func hereToo(program string) string {
	if program == runFromSource {
		return ", in this folder"
	}
	return ""
}

// programName is how a person in this folder runs this program again.
func programName() string {
	self, err := os.Executable()
	if err != nil {
		return "mutirao"
	}
	if found, err := exec.LookPath("mutirao"); err == nil && sameFile(found, self) {
		return "mutirao"
	}
	if _, err := os.Stat("cmd/mutirao"); err == nil && strings.Contains(self, string(filepath.Separator)+"go-build") {
		return runFromSource
	}
	if strings.ContainsRune(os.Args[0], filepath.Separator) && sameFile(os.Args[0], self) {
		return os.Args[0]
	}
	return self
}

func sameFile(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// play tells the story, act by act; each act waits for what it tells.
func (s *stage) play(ctx context.Context) error {
	s.title("A fire call, and a crew that nobody can reach")
	if err := s.gather(ctx); err != nil {
		return err
	}
	id, err := s.alarm(ctx)
	if err != nil {
		return err
	}
	for _, act := range []func(context.Context, string) error{s.silence, s.reserves, s.comeBack} {
		if err := act(ctx, id); err != nil {
			return err
		}
	}
	return s.agree(ctx, id)
}

// gather starts three nodes that know and trust each other.
func (s *stage) gather(ctx context.Context) error {
	for _, a := range []*actor{
		{name: "station", role: "commander"}, {name: "engine", role: "crew"}, {name: "reserve", role: "reserve"},
	} {
		a.dir = filepath.Join(s.dir, a.name)
		if err := s.enlist(ctx, a); err != nil {
			return err
		}
		s.nodes[a.name] = a
	}
	err := s.wait(ctx, "station", func(c *httpapi.Client) (bool, error) {
		ps, err := c.Partners(ctx)
		here := 0
		for _, p := range ps {
			if p.State == "active" {
				here++
			}
		}
		return here == len(s.nodes), err
	})
	if err != nil {
		return err
	}
	s.say("Three nodes are up, three processes with a store each: station, engine,")
	s.say("reserve. The station invited the others; every connection is encrypted,")
	s.say("and both ends are known.")
	return nil
}

// enlist makes a folder a member of the mesh and starts its node.
func (s *stage) enlist(ctx context.Context, a *actor) error {
	station := s.nodes["station"]
	if station == nil {
		if _, err := node.Init(a.dir, node.InitOptions{Mesh: "brigade", Name: a.name, Roles: []string{a.role}}); err != nil {
			return err
		}
	} else {
		inv, err := station.api.Invite(ctx, api.InviteRequest{Roles: []string{a.role}})
		if err != nil {
			return err
		}
		if _, err := assemble.Join(ctx, a.dir, assemble.JoinOptions{Invitation: inv.Token, Name: a.name}); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(a.dir, "config.yaml"), []byte(demoConfig), 0o600); err != nil {
		return err
	}
	return a.up(ctx)
}

// up starts the actor's node in a process of its own and waits until it answers.
func (a *actor) up(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if a.log == nil {
		if a.log, err = os.Create(filepath.Join(a.dir, "log")); err != nil {
			return err
		}
	}
	a.cmd = exec.Command(self, "--dir", a.dir, "up")
	a.cmd.Stdout, a.cmd.Stderr = a.log, a.log
	if err := a.cmd.Start(); err != nil {
		return err
	}
	return poll(ctx, a.name+"'s node answers", func() (bool, error) {
		c, err := httpapi.Dial(a.dir)
		if err == nil {
			_, err = c.Status(ctx)
		}
		a.api = c
		return err == nil, nil
	})
}

// kill ends the actor's node the hard way.
func (a *actor) kill() error {
	if a.cmd == nil {
		return nil
	}
	err := a.cmd.Process.Kill()
	_ = a.cmd.Wait() // it was killed: its exit status says just that
	a.cmd = nil
	return err
}

// alarm starts the fire call and sends the crew out.
func (s *stage) alarm(ctx context.Context) (id string, err error) {
	c := s.nodes["station"].api
	if _, err := c.AddWorkflow(ctx, "demo.yaml", demoWorkflow); err != nil {
		return "", err
	}
	st, err := c.Start(ctx, api.StartRequest{
		Workflow: "fire-call", Input: map[string]string{"address": "Harbour Street 12"},
	})
	if err != nil {
		return "", err
	}
	s.title("The alarm")
	s.say("A fire is reported in Harbour Street 12. The station starts the workflow")
	s.say("fire-call: procedure 1 (the engine crew) first; procedure 2 (the reserve) is")
	s.say("costly, and starts only if procedure 1 fails, or if nobody has heard of it in")
	s.say("time: an hour, in this demo six seconds.")
	if err := c.FinishTask(ctx, api.FinishRequest{
		ID: st.ID, Task: "dispatch", Outputs: map[string]string{"report": "smoke on the second floor"},
	}); err != nil {
		return "", err
	}
	s.say("The commander has dispatched the engine. That completion went straight to")
	s.say("those who wait for it.")
	return st.ID, s.waitTask(ctx, "engine", st.ID, "procedure-1", workflow.Ready)
}

// silence kills the crew's node.
func (s *stage) silence(ctx context.Context, id string) error {
	if err := s.waitTask(ctx, "reserve", id, "dispatch", workflow.Succeeded); err != nil {
		return err
	}
	s.title("Silence")
	if err := s.nodes["engine"].kill(); err != nil {
		return err
	}
	s.say("The engine's node is killed (kill -9): no goodbye, no answer. Nobody knows")
	s.say("how procedure 1 goes. The reserve waits. Its clock is its own: it needs no")
	s.say("message and no permission to act.")
	return nil
}

// reserves lets the emergency trigger fire and the case be closed.
func (s *stage) reserves(ctx context.Context, id string) error {
	if err := s.countDown(ctx, id); err != nil {
		return err
	}
	s.title("The reserve acts")
	s.say("The wait is over and nobody has heard of procedure 1: the reserve's emergency")
	s.say("trigger fires.")
	if err := s.nodes["reserve"].api.FinishTask(ctx, api.FinishRequest{ID: id, Task: "procedure-2"}); err != nil {
		return err
	}
	if err := s.waitTask(ctx, "station", id, "close", workflow.Succeeded); err != nil {
		return err
	}
	s.say("The reserve has put the fire out. The station heard it directly and closed")
	s.say("the case.")
	return nil
}

// triggerWait is the time-to-wait of procedure 2 in demo.yaml.
const triggerWait = 6 * time.Second

// countDown tells the seconds until the reserve's trigger, and waits for it.
func (s *stage) countDown(ctx context.Context, id string) error {
	in, err := s.nodes["reserve"].api.Show(ctx, id)
	if err != nil {
		return err
	}
	fmt.Fprint(s.out, "  Seconds left:")
	defer fmt.Fprintln(s.out)
	told := int(triggerWait/time.Second) + 1
	return s.wait(ctx, "reserve", func(c *httpapi.Client) (bool, error) {
		left := int(time.Until(in.Started.Add(triggerWait)).Seconds()) + 1
		if left > 0 && left < told {
			told = left
			fmt.Fprintf(s.out, " %d", left)
		}
		return taskIs(ctx, c, id, "procedure-2", workflow.Ready)
	})
}

// comeBack starts the crew's node again, from what its disk holds.
func (s *stage) comeBack(ctx context.Context, id string) error {
	s.title("The crew comes back")
	if err := s.nodes["engine"].up(ctx); err != nil {
		return err
	}
	if err := s.waitTask(ctx, "engine", id, "close", workflow.Succeeded); err != nil {
		return err
	}
	s.say("The engine's node is up again, with all that its disk held, and has caught up")
	s.say("by itself.")
	if err := s.nodes["engine"].api.FinishTask(ctx, api.FinishRequest{ID: id, Task: "procedure-1"}); err != nil {
		return err
	}
	s.say("The crew had been at work out there all the time. It reports procedure 1 as")
	s.say("done.")
	return nil
}

// agree waits until all nodes say the same, and shows it.
func (s *stage) agree(ctx context.Context, id string) error {
	s.title("All agree")
	var views []string
	for _, name := range []string{"station", "engine", "reserve"} {
		var in *api.Instance
		err := s.wait(ctx, name, func(c *httpapi.Client) (ok bool, err error) {
			in, err = c.Show(ctx, id)
			return err == nil && in.State == workflow.InstanceSucceeded, err
		})
		if err != nil {
			return err
		}
		in = undated(in) // what each node knows by itself, and by its own clock
		in.Ended = nil
		b, err := json.Marshal(in)
		if err != nil {
			return err
		}
		views = append(views, string(b))
	}
	if views[0] != views[1] || views[0] != views[2] {
		return errors.New("the nodes do not agree:\n" + strings.Join(views, "\n"))
	}
	s.say("Station, engine and reserve hold the same history and draw the same")
	s.say("conclusions from it:")
	s.say("")
	log, err := s.nodes["engine"].api.Log(ctx, id)
	if err != nil {
		return err
	}
	for _, e := range log {
		column := fmt.Sprintf("%s  %-7s  %-11s  ", e.At.Format(time.TimeOnly), e.Author, e.Task)
		for _, line := range wrap(e.Text, demoWidth-len("  ")-len(column)) {
			s.say("%s%s", column, line)
			column = strings.Repeat(" ", len(column))
		}
	}
	s.say("")
	s.say("Both crews went out: the price of not waiting for somebody who may never")
	s.say("answer. The case was closed upon procedure 2, the only result known then, and")
	s.say("stays so. Procedure 1 was never judged to have failed, so its late result")
	s.say("counts as well, and changes nothing that was built upon the other.")
	s.say("No server took part. It took %.0f s.", time.Since(s.begun).Seconds())
	return nil
}

// waitTask waits until a node sees a task in a state.
func (s *stage) waitTask(ctx context.Context, who, id string, task workflow.TaskName, state workflow.State) error {
	return s.wait(ctx, who, func(c *httpapi.Client) (bool, error) { return taskIs(ctx, c, id, task, state) })
}

// taskIs reports whether a node sees a task in a state; the instance may not have
// arrived there yet.
func taskIs(
	ctx context.Context, c *httpapi.Client, id string, task workflow.TaskName, state workflow.State,
) (bool, error) {
	in, err := c.Show(ctx, id)
	if err != nil {
		return false, nil //nolint:nilerr // it may come yet
	}
	for _, t := range in.Tasks {
		if t.Name == task && t.State == state {
			return true, nil
		}
	}
	return false, nil
}

func (s *stage) wait(ctx context.Context, who string, cond func(*httpapi.Client) (bool, error)) error {
	return poll(ctx, who+" is where the story needs it", func() (bool, error) { return cond(s.nodes[who].api) })
}

// poll asks until the answer is yes, an error, or out of time.
func poll(ctx context.Context, what string, cond func() (bool, error)) error {
	for {
		ok, err := cond()
		if ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("it waited until %s: %w", what, ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (s *stage) title(text string) { fmt.Fprintf(s.out, "\n%s\n", strings.ToUpper(text)) }

// say prints one line, indented; an empty one is left empty.
func (s *stage) say(format string, args ...any) {
	fmt.Fprintln(s.out, strings.TrimRight("  "+fmt.Sprintf(format, args...), " "))
}

// demoWidth is how many columns the story needs: a terminal's usual width.
const demoWidth = 80

// wrap cuts a text into lines of at most width characters, between words.
func wrap(text string, width int) []string {
	lines := []string{""}
	for _, word := range strings.Fields(text) {
		last := &lines[len(lines)-1]
		switch {
		case *last == "":
			*last = word
		case plain.Width(*last)+1+plain.Width(word) <= width:
			*last += " " + word
		default:
			lines = append(lines, word)
		}
	}
	return lines
}

// keep leaves the folders where they are, for users who want to know what went wrong.
func (s *stage) keep() string {
	dir := s.dir
	s.stop()
	s.dir = ""
	return dir
}

func (s *stage) stop() {
	for _, a := range s.nodes {
		_ = a.kill() // it may have ended already
		if a.log != nil {
			_ = a.log.Close() // nothing is written any more
		}
	}
}

// clear ends the nodes and removes their folders.
func (s *stage) clear() {
	if s.dir != "" {
		s.stop()
		_ = os.RemoveAll(s.dir) // a leftover in the temporary folder does no harm
	}
}
