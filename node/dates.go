package node

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file reads what a start says of people's work, in place of the definition.

// dates puts into an annex with how much time left people are warned, and their tasks pass to the responsible user; and
// whom these are offered to.
func dates(to *fact.Annex, def *workflow.Definition, r api.StartRequest) (notes []string, err error) {
	has := func(is func(*workflow.Task) bool) bool {
		return slices.ContainsFunc(def.Tasks, func(t *workflow.Task) bool { return t.Deadline != nil && is(t) })
	}
	if r.Warnings != "" {
		if !has(func(*workflow.Task) bool { return true }) {
			return nil, api.Errorf(api.Invalid, "--warnings %s: no task of %s has a deadline to warn of", r.Warnings,
				def.Name).
				WithHint("leave it out, or give a task of the definition a deadline")
		}
		if to.Warnings, err = spans("--warnings", r.Warnings); err != nil {
			return nil, err
		}
	}
	if err := policy(to, def, r.Notify); err != nil {
		return nil, err
	}
	if r.Transfer == "" {
		return nil, nil
	}
	if !has(byPeople) {
		return nil, api.Errorf(api.Invalid, "--transfer %s: no task of %s is done by a person and has a deadline",
			r.Transfer, def.Name).
			WithHint("leave it out, or give a task of the definition a deadline")
	}
	left, err := spans("--transfer", r.Transfer)
	if err == nil && len(left) > 1 {
		err = api.Errorf(api.Invalid, "--transfer %s: want one duration, such as 2h", r.Transfer)
	}
	if err != nil {
		return nil, err
	}
	to.Transfer = left[0]
	for _, t := range def.Tasks {
		if byPeople(t) && t.Deadline != nil && t.Deadline.Expr == nil && t.Deadline.After <= to.Transfer {
			notes = append(notes, fmt.Sprintf("%s passes to who answers for the instance as soon as it can be done: its deadline is %s after that",
				t.Name, workflow.FormatDuration(t.Deadline.After)))
		}
	}
	return notes, nil
}

// policy puts into an annex by which policy people's tasks are offered.
func policy(to *fact.Annex, def *workflow.Definition, text string) error {
	if text == "" {
		return nil
	}
	p, err := worklist.ParsePolicy(text)
	switch {
	case err != nil:
		return api.Errorf(api.Invalid, "--notify: %v", err)
	case !slices.ContainsFunc(def.Tasks, byPeople):
		return api.Errorf(api.Invalid, "--notify %s: no task of %s is done by a person", text, def.Name).
			WithHint("leave it out")
	}
	to.Notify = p.String()
	return nil
}

func byPeople(t *workflow.Task) bool { return !t.ByNode() }

// spans reads durations that are separated by commas, and puts the longest first.
func spans(flag, text string) (out []time.Duration, err error) {
	for part := range strings.SplitSeq(text, ",") {
		d, err := workflow.ParseDuration(strings.TrimSpace(part))
		switch {
		case err != nil:
			return nil, api.Errorf(api.Invalid, "%s %s: %v", flag, text, err).
				WithHint("write durations with a comma between them, such as 24h,6h")
		case d <= 0:
			return nil, api.Errorf(api.Invalid, "%s %s: %s is no time before a deadline: want more than 0", flag, text,
				strings.TrimSpace(part))
		case slices.Contains(out, d):
			return nil, api.Errorf(api.Invalid, "%s %s: %s is there twice", flag, text, strings.TrimSpace(part))
		}
		out = append(out, d)
	}
	slices.SortFunc(out, func(a, b time.Duration) int { return int(min(1, max(-1, b-a))) })
	return out, nil
}
