package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// slowAfter is after how long it is said for whom a command waits.
const slowAfter = 2 * time.Second

// whileAsked runs what has the holders of items asked for something. If that takes long it is said, on a terminal, for
// whom this waits, and for how long at most.
func whileAsked[T any](
	ctx context.Context, u *ui, node api.Service, r api.WorklistQuery, items []string, most func(api.Item) time.Duration,
	ask func() (T, error),
) (T, error) {
	if !u.progress {
		return ask()
	}
	asking, answered := context.WithCancel(ctx)
	said := make(chan struct{})
	go func() {
		defer close(said)
		if pauseFor(asking, slowAfter) != nil {
			return
		}
		list, err := node.Worklist(asking, r)
		if text := awaited(list, items, most); err == nil && asking.Err() == nil && text != "" {
			u.note("%s", text)
		}
	}()
	out, err := ask()
	answered()
	<-said // nothing else is written meanwhile
	return out, err
}

// awaited says who holds items that are asked for; empty: none of these is on the list.
func awaited(list []api.Item, items []string, most func(api.Item) time.Duration) string {
	var partners, tasks []string
	longest := time.Duration(0)
	for _, x := range list {
		if !slices.ContainsFunc(items, func(ref string) bool { return ref != "" && strings.HasPrefix(x.ID, ref) }) {
			continue
		}
		if tasks = append(tasks, workflow.WithLabel(x.Task, x.Label)); !slices.Contains(partners, x.Partner) {
			partners = append(partners, x.Partner)
		}
		longest = max(longest, most(x))
	}
	atMost := workflow.FormatDuration(longest) + " at most"
	switch len(partners) {
	case 0:
		return ""
	case 1:
		return oneLine("waiting for " + partners[0] + ", which holds " + strings.Join(tasks, ", ") + ": " + atMost)
	}
	return oneLine("waiting for " + strings.Join(partners, ", ") + ", which hold " + strings.Join(tasks, ", ") + ": " +
		atMost + " for each")
}

// toTake is for how long whoever takes an item, or gives it back, waits for its holder at most.
func toTake(api.Item) time.Duration { return api.HolderAnswersIn }

// toFinish is likewise for whoever has done it.
func toFinish(x api.Item) time.Duration {
	if x.State == api.ItemLocked {
		return api.KeptAfter
	}
	return api.HolderAnswersIn
}
