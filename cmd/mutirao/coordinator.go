package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

func newCoordinatorCommand() *cobra.Command {
	return newGroup("coordinator", "The elected coordinator, and who may vote",
		newCoordinatorStatusCommand(), newCoordinatorElectCommand(), newCoordinatorResignCommand(),
		newCoordinatorElectorateCommand())
}

func newCoordinatorStatusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Who coordinates, since when, by whose votes",
		Long: `Who coordinates as far as this node knows. Nobody need: work goes on without a
coordinator, by the nodes' own agreement.`,
		Example: `  mutirao coordinator status
  mutirao coordinator status -o json`,
		Args: arguments(),
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, _ []string) error {
			c, err := node.CoordinatorStatus(ctx)
			if err != nil {
				return err
			}
			e, err := node.Electorate(ctx)
			if err != nil {
				return err
			}
			return u.result(c, func(w io.Writer) { writeCoordinator(w, c, e) })
		}),
	}
}

func writeCoordinator(w io.Writer, c *api.Coordinator, e *api.Electorate) {
	line := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%-12s %s\n", name, fmt.Sprintf(format, args...))
	}
	if c.Coordinator == nil {
		line("coordinator", "nobody")
		if c.Term == 0 {
			line("term", "none yet: nobody was ever elected")
		} else {
			line("term", "%d is the latest that is known here, and nobody holds it: mutirao coordinator elect", c.Term)
		}
	} else {
		line("coordinator", "%s%s%s", *c.Coordinator, evictedAlready(*c.Coordinator, e), silentUntil(c.Lapses))
		line("term", "%d", c.Term)
		line("since", "%s", clockOf(c.Since))
		line("votes", "%s", strings.Join(c.Votes, ", "))
	}
	if c.Standing != "" {
		line("standing", "this node asks for votes: %s", c.Standing)
	}
	for _, n := range c.Nominees {
		line("nominee", "it was asked from here to stand: %s", n)
	}
	line("electorate", "%s", describeElectorate(e))
}

// evictedAlready says of a coordinator that it was evicted: nobody else is elected before its lease ends.
func evictedAlready(name string, e *api.Electorate) string {
	if slices.ContainsFunc(e.Voters, func(v api.Voter) bool { return v.Name == name && v.State == "evicted" }) {
		return " (evicted; in office until its lease ends)"
	}
	return ""
}

// silentUntil says of a coordinator that it cannot be reached, and until when it is taken for that.
func silentUntil(lapses *time.Time) string {
	if lapses == nil {
		return ""
	}
	return fmt.Sprintf(" (cannot be reached; counts as that until %s, unless it is heard of)", clockOf(lapses))
}

// describeElectorate says who may vote, and shows an override for what it is.
func describeElectorate(e *api.Electorate) string {
	if e.Number == 0 {
		return "not known yet"
	}
	var names []string
	for _, v := range e.Voters {
		name := v.Name
		if v.State == "evicted" {
			name += " (evicted)"
		}
		names = append(names, name)
	}
	text := fmt.Sprintf("%d: %s; %d needed", e.Number, strings.Join(names, ", "), e.Majority)
	if e.Override {
		text += "; it, or a list that it continues, is the founder's override, without the consent of those before"
	}
	return text
}

func newCoordinatorElectCommand() *cobra.Command {
	var candidate string
	cmd := &cobra.Command{
		Use:   "elect [--candidate PARTNER]",
		Short: "Have a node stand for election: this one if none is named",
		Long: `Has a node ask the electorate for its votes, and waits for the outcome. A majority
of the whole electorate must be reached, not of those who are here. While there is a
coordinator, it has to resign first. Who restarted, or voted for another, votes again
when a lease has run out: while that is waited for, a note says of whom, and how long.`,
		Example: `  mutirao coordinator elect
  mutirao coordinator elect --candidate station`,
		Args: arguments(),
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, _ []string) error {
			noted := u.noteStanding(ctx, node, candidate != "")
			c, err := node.Elect(ctx, api.ElectRequest{Candidate: candidate})
			noted()
			if err != nil {
				return err
			}
			return u.result(c, func(w io.Writer) {
				fmt.Fprintf(w, "%s is the coordinator in term %d, by the votes of %s\n", *c.Coordinator, c.Term,
					strings.Join(c.Votes, ", "))
			})
		}),
	}
	cmd.Flags().StringVar(&candidate, "candidate", "", "the `partner` that is to stand")
	complete(cmd, "candidate", completeTakers)
	return cmd
}

// When a note says first what an election waits for, and after what time it is said again.
const (
	electionNote      = 2 * time.Second
	electionNoteAgain = 15 * time.Second
)

// noteStanding says in notes what an election waits for that takes its time, until the function that it returns is
// called.
func (u *ui) noteStanding(ctx context.Context, node api.Service, nominee bool) (done func()) {
	ctx, cancel := context.WithCancel(ctx)
	over := make(chan struct{})
	go func() {
		defer close(over)
		for wait := electionNote; ; wait = electionNoteAgain {
			select {
			case <-time.After(wait):
			case <-ctx.Done():
				return
			}
			c, err := node.CoordinatorStatus(ctx)
			switch {
			case err != nil: // the command itself will say what is wrong
			case nominee:
				for _, n := range c.Nominees {
					u.note("waiting: %s", n)
				}
				if len(c.Nominees) == 0 {
					u.note("waiting for word of the partner that was asked to stand")
				}
			case c.Standing != "":
				u.note("waiting: %s", c.Standing)
			}
		}
	}()
	return func() { cancel(); <-over }
}

func newCoordinatorResignCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "resign",
		Short:   "Give this node's office up",
		Example: `  mutirao coordinator resign`,
		Args:    arguments(),
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, _ []string) error {
			if err := node.Resign(ctx); err != nil {
				return err
			}
			return u.done(struct{}{}, "this node is no longer the coordinator")
		}),
	}
}

func newCoordinatorElectorateCommand() *cobra.Command {
	var set []string
	var override, yes bool
	var lease string
	cmd := &cobra.Command{
		Use:   "electorate [--set PARTNER,... [--lease 15s] [--override [--yes]]]",
		Short: "Who may vote; --set changes it",
		Long: `The electorate is a numbered list of partners. Joining, expiring or being evicted
never changes it, so that the two sides of a split cannot both elect. A mesh begins
with its founder alone.

--set has the present voters hand over to others: a majority of them must consent,
and a voter that consents votes no more in the old list. Only the founder and delegates
may ask for it.

--override sets the list on the founder's word alone, for when a majority of the
voters is lost. If that majority is only out of sight, it may have a coordinator of
its own until it hears of the override. On a terminal the command asks first. As nobody
can take that back, partners are given by their names or whole IDs.`,
		Example: `  mutirao coordinator electorate
  mutirao coordinator electorate --set station,engine-7,reserve
  mutirao coordinator electorate --set station,reserve --override`,
		Args: arguments(),
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("set") && len(set) == 0 {
				return usagef("--set names nobody: want partners, as in --set station,engine-7")
			}
			return nil
		},
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, _ []string) error {
			r := api.ElectorateRequest{Set: set, Override: override}
			if len(set) == 0 {
				if override || lease != "" {
					return usagef("--override and --lease go with --set")
				}
				e, err := node.Electorate(ctx)
				return u.writeElectorate(e, err)
			}
			if lease != "" {
				d, err := workflow.ParseDuration(lease)
				if err != nil || d < time.Second {
					return usagef("--lease %s: want a duration of a second or more, such as 15s", lease)
				}
				r.Lease = api.Span(d)
			}
			if override {
				voters := make([]string, len(set))
				for i, v := range set {
					name, err := describePartner(ctx, node, v)
					if err != nil {
						return err
					}
					voters[i] = name
				}
				if err := u.confirm(yes,
					"From now on %s may vote, on the founder's word alone: those who may vote now are not asked, and nobody can take that back.", strings.Join(voters, ", ")); err != nil {
					return err
				}
			}
			if !override {
				u.noteVoters(ctx, node)
			}
			before, unread := node.CoordinatorStatus(ctx)
			e, err := node.SetElectorate(ctx, r)
			if err := u.writeElectorate(e, err); err != nil {
				return err
			}
			if unread == nil && before.Coordinator != nil && !e.Already {
				u.note("the office of %s ended with the voters before; next: mutirao coordinator elect", *before.Coordinator)
			}
			return nil
		}),
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringSliceVar(&set, "set", nil, "the `partners` that are to vote")
	f.StringVar(&lease, "lease", "", "how `long` a vote lasts unless it is prolonged; as before when left out")
	f.BoolVar(&override, "override", false, "without the consent of the present voters; the founder only")
	addYesFlag(cmd, &yes)
	complete(cmd, "set", completeTakers)
	return cmd
}

// noteVoters says before the wait for the voters' consent that too few are in sight.
func (u *ui) noteVoters(ctx context.Context, node api.Service) {
	e, err := node.Electorate(ctx)
	if err != nil {
		return // the command itself will say what is wrong
	}
	here := 0
	for _, v := range e.Voters {
		if v.Current && v.State == "active" {
			here++
		}
	}
	if here < e.Majority {
		u.note("%d of %d voters can be reached, and %d have to consent: the others are waited for. If they do not come back, the founder sets the list with --override.", here, len(e.Voters), e.Majority)
	}
}

func (u *ui) writeElectorate(e *api.Electorate, err error) error {
	if err != nil {
		return err
	}
	err = u.result(e, func(w io.Writer) {
		fmt.Fprintf(w, "electorate %s\nlease      %s\n", describeElectorate(e), span(e.Lease))
		t := table{head: []string{"VOTER", "STATE", "VOTE", "ID"}, states: 2}
		for _, v := range e.Voters {
			vote := "yes"
			switch {
			case v.State == "evicted":
				vote = "none: it was evicted"
			case !v.Current:
				vote = "none: its store was lost or restored"
			}
			t.add(v.Name, v.State, vote, u.partnerID(v.ID))
		}
		t.write(u, w, "")
	})
	switch {
	case e.Already:
		u.note("these were the voters before, with that lease: nothing has changed")
	case e.Warning != "":
		u.note("%s", e.Warning)
	}
	return err
}
