package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// waiting waits for the end of an instance.
type waiting struct {
	timeout time.Duration // negative: none
}

var errWaitedEnough = errors.New("waited long enough")

// ended is what start --wait prints for programs.
type ended struct {
	*api.Started
	State workflow.InstanceState `json:"state"`
}

// afterStart prints the ID, waits, and turns the end into an exit status. The
// ID comes first for people, who may want it meanwhile; programs get one
// document when all is known.
func (wt waiting) afterStart(ctx context.Context, u *ui, node followed, started *api.Started) error {
	if u.format == "text" {
		fmt.Fprintln(u.out, started.ID)
	}
	in, err := wt.until(ctx, u, node, started.ID)
	if err != nil {
		return err
	}
	if u.format != "text" {
		if err := u.result(ended{started, in.State}, func(io.Writer) {}); err != nil {
			return err
		}
	}
	return wt.verdict(u, in)
}

// until returns the instance when it is no longer running, and not only presumed to have failed either, or
// as it is at the time-out.
func (wt waiting) until(ctx context.Context, u *ui, node followed, id string) (*api.Instance, error) {
	bounded, cancel := ctx, context.CancelFunc(func() {})
	if wt.timeout >= 0 {
		bounded, cancel = context.WithTimeoutCause(ctx, wt.timeout, errWaitedEnough)
	}
	defer cancel()
	var in *api.Instance
	its := func(e api.Event) bool { return e.Instance == id }
	err := follow(bounded, node, its, func() (bool, error) {
		now, err := node.Show(bounded, id)
		if err != nil {
			return false, err
		}
		in = now
		u.writeProgress(in)
		return in.State != workflow.InstanceRunning && !in.MayGoOn(), nil
	})
	u.clearProgress()
	switch {
	case err != nil:
		return nil, err
	case ctx.Err() != nil:
		return nil, api.Errorf(api.Failed, "interrupted; the instance goes on").WithHint("mutirao show %s --watch", id)
	case in == nil: // the time-out came before the first answer
		in = &api.Instance{ID: id, State: workflow.InstanceRunning}
	}
	return in, nil
}

// verdict turns the state of an instance into the program's end.
func (wt waiting) verdict(u *ui, in *api.Instance) error {
	hint := fmt.Sprintf("mutirao show %s", u.id(in.ID))
	if in.MayGoOn() {
		return &exitError{exitTimeout, fmt.Sprintf("undecided after %s: %s", workflow.FormatDuration(wt.timeout),
			presumed(in)), hint + " --watch"}
	}
	switch in.State {
	case workflow.InstanceSucceeded:
		return nil
	case workflow.InstanceRunning:
		return &exitError{exitTimeout, fmt.Sprintf("still running after %s; it goes on",
			workflow.FormatDuration(wt.timeout)), hint + " --watch"}
	case workflow.InstanceInterrupted:
		return api.Errorf(api.Refused, "%s", explain(in)).
			WithHint("mutirao recover %s says what can be done", u.id(in.ID))
	case workflow.InstanceBlocked:
		return api.Errorf(api.Refused, "%s", explain(in)).WithHint("%s", hint)
	}
	return api.Errorf(api.Failed, "%s", explain(in)).WithHint("%s", hint)
}

// presumed says who is waited for of an instance that has only failed as others presume.
func presumed(in *api.Instance) string {
	var who []string
	for _, a := range in.Asks {
		who = append(who, fmt.Sprintf("task %s, which %s holds", a.Task, a.Partner))
	}
	for _, t := range in.Tasks {
		if t.PresumedBy != "" {
			who = append(who, fmt.Sprintf("task %s, which goes on here", t.Name))
		}
	}
	return "others presume that it failed: " + strings.Join(who, "; ") +
		"; a holder that is not gone goes on with its task, and its success counts"
}

// explain says how an instance ended and which tasks are the reason.
func explain(in *api.Instance) string {
	var why []string
	for _, t := range in.Tasks {
		if (t.State == workflow.Failed && t.ReplacedBy == nil) ||
			t.State == workflow.Blocked { // else what replaced it says why
			reason := strings.ToLower(string(t.State))
			if t.Reason != "" {
				reason += ": " + oneLine(t.Reason)
			}
			why = append(why, fmt.Sprintf("task %s %s", t.Name, reason))
		}
	}
	text := "the instance is " + string(in.State)
	if in.State == workflow.InstanceFailed {
		text = "the instance failed"
	}
	if len(why) > 0 {
		text += ": " + strings.Join(why, "; ")
	}
	return text
}

// writeProgress keeps one line on a terminal up to date.
func (u *ui) writeProgress(in *api.Instance) {
	if !u.progress {
		return
	}
	done, active := 0, []string{}
	for _, t := range in.Tasks {
		if t.State.Done() {
			done++
		}
		if t.State == workflow.Running {
			active = append(active, string(t.Name))
		}
	}
	fmt.Fprintf(u.err, clearLine()+"%d of %s done", done, plural(len(in.Tasks), "task"))
	if in.MayGoOn() {
		fmt.Fprint(u.err, "; presumed to have failed, by others than who holds it")
	}
	if len(active) > 0 {
		fmt.Fprintf(u.err, "; running: %s", strings.Join(active, ", "))
	}
}

func (u *ui) clearProgress() {
	if u.progress {
		fmt.Fprint(u.err, clearLine())
	}
}

// clearLine goes back to the line's start and empties it.
func clearLine() string { return control("[G") + control("[K") }
