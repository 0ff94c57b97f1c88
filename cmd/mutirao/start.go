package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// startOptions are the options of start as they were typed.
type startOptions struct {
	request        api.StartRequest
	user           userFlag
	inputs, assign []string
	files          filesFlag
	wait           string
}

// waitForever is what --wait without a time-out means.
const waitForever = "forever"

func newStartCommand() *cobra.Command {
	var o startOptions
	cmd := &cobra.Command{
		Use:   "start WORKFLOW [--input k=v]... [--wait[=TIMEOUT]]",
		Short: "Start an instance and print its ID",
		Long: `Starts an instance of a definition and prints its ID. Values of --input are read
by the types of the definition's data; what is not given has its default, or no value,
and with --null it has none though it has a default. With --wait the exit status
tells how it ended: 0 succeeded, 1 failed or cancelled, 6 blocked or interrupted,
124 still running at TIMEOUT (it goes on). What has failed only as others presume, of a
partner that is not gone and goes on with it, has not ended.

A workflow with a task for whose role there is nobody is refused (6): it would wait,
perhaps for ever. --wait-for-role starts it all the same.

--user says who starts it, or else ` + userVariable + `; without either it is the one user who
is signed in here, or else this partner. Where several are signed in, and none is named,
nothing is started (2).`,
		Example: `  mutirao start fire-call --input address="Rua 1"
  mutirao start fire-call --input address="Rua 1" --null note --wait=2h
  mutirao start fire-call --assign engine=engine-7 --responsible ana
  id=$(mutirao start fire-call --input address="Rua 1" -q)`,
		Args: func(cmd *cobra.Command, args []string) error {
			if o.wait == waitForever && len(args) > 1 {
				if err := looseTimeout(args); err != nil {
					return err
				}
			}
			return arguments("WORKFLOW")(cmd, args)
		},
		ValidArgsFunction: completeWorkflows,
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, args []string) error {
			o.request.Workflow, o.request.User = args[0], o.user.who()
			return o.run(ctx, u, node)
		}),
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringArrayVar(&o.inputs, "input", nil, "a data item's value, `NAME=VALUE`; may be repeated")
	f.StringArrayVar(&o.request.Null, "null", nil,
		"a data item, `NAME`, that begins with no value whatever its default; may be repeated")
	o.files.add(cmd, "a data item that is a file")
	f.StringArrayVar(&o.assign, "assign", nil, "give a partition to a partner, `PARTITION=PARTNER`; may be repeated")
	f.StringVar(&o.wait, "wait", "", "wait for the end, at most `TIMEOUT`")
	f.Lookup("wait").NoOptDefVal = waitForever
	complete(cmd, "assign", completeAssignment)
	f.StringVar(&o.request.Responsible, "responsible", "",
		"the `user` or partner who answers for it; else as the definition says, else who starts it")
	complete(cmd, "responsible", userNames(func(api.User) bool { return true }))
	o.user.add(cmd)
	f.StringVar(&o.request.Coordination, "coordination", "",
		"choreography or orchestration; else as the definition says")
	f.StringVar(&o.request.Mechanism, "mechanism", "", "the `mechanism` of allocation")
	completeWords(cmd, "mechanism", workflow.Mechanisms...)
	completeWords(cmd, "coordination", "choreography", "orchestration")
	f.BoolVar(&o.request.WaitForRole, "wait-for-role", false, "start although nobody has the role of some task")
	f.StringVar(&o.request.Notify, "notify", "",
		"whom the tasks of people are offered to, a `policy` such as \"fewest-assigned 2\", in place of the definition's")
	f.StringVar(&o.request.Warnings, "warnings", "", "deadline warnings, `24h,6h`, in place of the definition's")
	f.StringVar(&o.request.Transfer, "transfer", "",
		"hand people's work to who answers for it with this much time left before its deadline, `2h`, in place of the definition's")
	return cmd
}

// declared are the types of the data that the workflow to be started has.
func (o *startOptions) declared(ctx context.Context, node api.Service) (dataTypes, error) {
	w, err := node.Workflow(ctx, o.request.Workflow)
	if err != nil {
		return nil, err
	}
	def, err := workflow.Parse(string(w.Name), w.Definition)
	if err != nil {
		return nil, nil //nolint:nilerr // of a later version than this program: the node knows better
	}
	types := dataTypes{}
	for i := range def.Data {
		types[string(def.Data[i].Name)] = def.Data[i].Type
	}
	return types, nil
}

// looseTimeout says how the time-out of --wait is written, if one stands among the arguments, before or after the
// workflow: where a value may be left out, what follows after a space is none.
func looseTimeout(args []string) error {
	asTime := func(word string) bool { return word != "" && word[0] >= '0' && word[0] <= '9' }
	times := slices.DeleteFunc(slices.Clone(args), func(a string) bool { return !asTime(a) })
	if len(times) == len(args) {
		times = times[1:] // a workflow's name may begin with a digit, too
	}
	if len(times) == 0 {
		return nil
	}
	loose := strings.Join(strings.Fields(strings.Join(times, "")), "") // 1m 3s may be one argument, or two
	if _, err := workflow.ParseDuration(loose); err != nil {
		return usagef("--wait takes its time-out with an equals sign, for example --wait=10s: %v", err)
	}
	return usagef("--wait takes its time-out with an equals sign: --wait=%s", loose)
}

func (o *startOptions) run(ctx context.Context, u *ui, node api.Service) (err error) {
	if err = oneHere(ctx, node, o.request.User); err != nil {
		return err
	}
	if o.request.Input, err = pairs("input", "NAME=VALUE", o.inputs); err != nil {
		return err
	}
	if err = o.files.give(ctx, node, o.request.Input, "--input", func() (dataTypes, error) {
		return o.declared(ctx, node)
	}); err != nil {
		return err
	}
	if o.request.Assign, err = pairs("assign", "PARTITION=PARTNER", o.assign); err != nil {
		return err
	}
	w := waiting{timeout: -1}
	if o.wait != "" && o.wait != waitForever {
		if w.timeout, err = workflow.ParseDuration(o.wait); err != nil {
			return usagef("--wait: %v", err)
		}
	}
	started, err := node.Start(ctx, o.request)
	if err != nil {
		return err
	}
	for _, n := range started.Notes {
		u.note("note: %s", n)
	}
	if started.HeldOnlyHere {
		u.note("note: so far only this node holds the instance: it would be lost with it")
	}
	if o.wait == "" {
		return u.result(started, func(out io.Writer) { fmt.Fprintln(out, started.ID) })
	}
	return w.afterStart(ctx, u, node, started)
}
