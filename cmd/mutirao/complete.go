package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// completionTime is how long a person waits for the Tab key, at most.
const completionTime = 2 * time.Second

// candidates asks the running node for what an argument may be. Without a node
// there are none: Tab is no place for errors.
func candidates(
	cmd *cobra.Command, list func(ctx context.Context, node api.Service) []string,
) ([]string, cobra.ShellCompDirective) {
	node, err := connect(cmd)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(context.Background(), completionTime)
	defer cancel()
	return list(ctx, node), cobra.ShellCompDirectiveNoFileComp
}

// completeInstances completes an instance's ID, with its workflow and state.
func completeInstances(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return candidates(cmd, func(ctx context.Context, node api.Service) (out []string) {
		if len(args) > 0 {
			return nil
		}
		page, err := node.InstancePage(ctx, api.InstanceQuery{All: true}) // the newest
		if err != nil {
			return nil
		}
		for _, in := range page.Instances {
			out = append(out, in.ID+"\t"+string(in.Workflow)+" "+string(in.State))
		}
		return out
	})
}

// completePartners completes the name of a partner that is a member.
func completePartners(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return completePartnersBut(cmd, "evicted")
}

// completeTakers completes the name of a partner to which something can be given.
func completeTakers(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return completePartnersBut(cmd, "evicted", "left")
}

// completePartnersBut completes the name of a partner that is in none of some states.
func completePartnersBut(cmd *cobra.Command, states ...string) ([]string, cobra.ShellCompDirective) {
	return candidates(cmd, func(ctx context.Context, node api.Service) (out []string) {
		list, _ := node.Partners(ctx) // none, when it fails
		for _, p := range list {
			if slices.Contains(states, p.State) {
				continue
			}
			name := unmarked(p.Name)
			if found := meant(list, name); len(found) != 1 || found[0].ID != p.ID {
				name = string(p.ID) // the name would be taken for another's
			}
			out = append(out, name+"\t"+p.State)
		}
		return out
	})
}

// completeWorkflows completes a definition's name.
func completeWorkflows(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return candidates(cmd, func(ctx context.Context, node api.Service) (out []string) {
		if len(args) > 0 {
			return nil
		}
		list, _ := node.Workflows(ctx) // none, when it fails
		for _, wf := range list {
			if wf.Kind == "" || cmd.Name() != "start" {
				out = append(out, string(wf.Name))
			}
		}
		slices.Sort(out)
		return slices.Compact(out)
	})
}

// completeTasks completes an instance's ID, and then a task of it that a person
// may finish.
func completeTasks(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return completeInstances(cmd, args, typed)
	}
	return candidates(cmd, func(ctx context.Context, node api.Service) (out []string) {
		if len(args) > 1 {
			return nil
		}
		in, err := node.Show(ctx, args[0])
		if err != nil {
			return nil
		}
		for _, t := range in.Tasks {
			if t.State == workflow.Ready || t.State == workflow.Running {
				out = append(out, string(t.Name))
			}
		}
		return out
	})
}

// complete says how an option's value is completed. That fails only for an option
// that does not exist, which is a fault of this program.
func complete(cmd *cobra.Command, flag string, fn cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, fn); err != nil {
		panic(err)
	}
}

// completeWords completes an option that takes one of a few words; see oneOf.
func completeWords(cmd *cobra.Command, flag string, words ...string) {
	complete(cmd, flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}

// completeAssignment completes PARTITION=PARTNER of the workflow that is started.
func completeAssignment(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	partition, _, named := strings.Cut(typed, "=")
	if named {
		partners, directive := completeTakers(cmd, args, "")
		for i := range partners {
			partners[i] = partition + "=" + partners[i]
		}
		return partners, directive
	}
	partitions, directive := candidates(cmd, func(ctx context.Context, node api.Service) (out []string) {
		if len(args) == 0 {
			return nil
		}
		wf, err := node.Workflow(ctx, args[0])
		if err != nil {
			return nil // the command will say why
		}
		for _, p := range wf.Partitions {
			out = append(out, p+"=")
		}
		slices.Sort(out)
		return out
	})
	return partitions, directive | cobra.ShellCompDirectiveNoSpace
}
