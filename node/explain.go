package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/internal/private"
	"github.com/mutirao-mesh/mutirao/internal/said"
	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/membership/election"
	"github.com/mutirao-mesh/mutirao/membership/invitation"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/membership/users"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/elections"
	"github.com/mutirao-mesh/mutirao/node/index"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// A request that a node itself finds wrong is answered with an *api.Error, made where it
// is judged. So is an error from below that means that only in one place, as what is wrong
// with a list of voters does where a user gives one: there api.Judge gives it a code. What
// all other errors from below mean to whoever asked is here: they know nothing of
// requests. The methods of api.Service apply it on their way out, and so does the command
// line to what needs no running node.

// meanings are the codes of errors from below, with words for people; the first that fits
// counts, so what wraps another comes before it. What is not here was not foreseen: it is
// logged, and who asked is told that it is (api.Internal). What a code is as an exit
// status and over HTTP is in package api.
var meanings = []struct {
	code  api.Code
	words words
}{

	// The node's folder, and what is in it. That something is damaged may wrap any reason.
	{api.NotFound, is(ErrNoMember, "", `make one with "mutirao init" or "mutirao join", or name another folder with --dir`)},
	{api.Failed, is(ErrMember, "", "run it: mutirao up; or name another folder with --dir")},
	{api.Refused, as(noIdentity)},
	{api.Refused, is(kv.ErrUnfit, "", "")},
	{api.Refused, is(ErrLeft, "", "join again with an empty folder and a new invitation; this one can be deleted, or kept to look at")},
	{api.Refused, as(looseFile)},
	{api.Invalid, as(wrongConfig)},
	{api.Failed, is(ErrUnanswered, "", "is that partner running, and on a network that you can reach? "+
		"Try again with the same folder: that takes no second use")},

	// The store while the node runs. Why a commit failed may be anything.
	{api.NoNode, is(kv.ErrClosed, api.ErrStopping.Message, "")},
	{api.Failed, is(errUnwritten, "", "mutirao doctor looks at the disk; the node goes on by itself as soon as it can write")},
	{api.Failed, is(kv.ErrDamaged, "", "mutirao doctor reads all of the store; starting the node again mends what can be mended")},
	{api.NotFound, is(kv.ErrNotFound, "", "")},
	{api.Refused, is(errRestored, "", "")},
	{api.Refused, is(index.ErrTooMany, "", "")},

	// Whom or what is meant.
	{api.Invalid, is(membership.ErrAmbiguous, "", "mutirao partners shows the IDs")},
	{api.NotFound, is(membership.ErrNoPartner, "", "mutirao partners lists them")},
	{api.NotFound, is(users.ErrNoUser, "", "mutirao user list shows them")},
	{api.Refused, is(users.ErrRemoved, "", "mutirao user list shows the users")},
	{api.Refused, is(users.ErrNoRoom, "",
		"mutirao doctor says more; what is removed keeps its room, so that it stays removed")},
	{api.NotFound, is(choreo.ErrNoResult, "", "mutirao show ID lists the results that are kept")},
	{api.NotFound, is(state.ErrNoTask, "", "mutirao show ID lists the tasks of an instance")},

	// Who may do it, and whether it can be done now.
	{api.NotAllowed, is(trust.ErrNotAllowed, "", "")},
	{api.NotAllowed, as(onlyInitiator)},
	{api.Refused, as(heldElsewhere)},
	{api.Refused, is(choreo.ErrTaken, "", "mutirao show ID says who has it; mutirao worklist is for whoever has it")},
	{api.Invalid, is(state.ErrOutput, "", "")}, // it may wrap that the fact would be invalid
	{api.Refused, is(state.ErrNotNow, "", "")},
	{api.Refused, is(fact.ErrInvalid, "", "")},

	// Elections.
	{api.Refused, as(officeHeld)},
	{api.Refused, is(election.ErrHeld, "", "")},
	{api.Refused, is(election.ErrNotCoordinator, "", "")},
	{api.Refused, is(election.ErrProposing, "", "")},
	{api.Refused, is(election.ErrHandedOver, "",
		"the founder signs the next: mutirao coordinator electorate --set … --override")},
	{api.Refused, is(election.ErrNoElectorate, "this node does not know yet who may vote",
		"it learns it from any partner: mutirao partners shows who can be reached")},

	// Invitations.
	{api.Refused, is(invitation.ErrManyOpen, "", "")},
}

// naming says what people call a partner.
type naming func(workflow.PartnerID) string

// words say an error to people, with the next step if there is one, where it is of their
// kind.
type words func(err error, name naming) (what, next string, fits bool)

// is fits errors that are target, or wrap it. Without a text they say it themselves.
func is(target error, what, next string) words {
	return func(err error, name naming) (string, string, bool) {
		switch {
		case !errors.Is(err, target):
			return "", "", false
		case what != "":
			return what, next, true
		}
		return said.Render(err, name), next, true
	}
}

// as fits errors of a type, or that wrap one.
func as[E error](say func(E, naming) (what, next string)) words {
	return func(err error, name naming) (what, next string, fits bool) {
		var e E
		if !errors.As(err, &e) {
			return "", "", false
		}
		what, next = say(e, name)
		return what, next, true
	}
}

func onlyInitiator(e *choreo.Unanswerable, name naming) (what, next string) {
	by := name(e.By)
	return fmt.Sprintf("only %s, who began the instance, may write somebody off", by), "do that on the node of " + by
}

func heldElsewhere(e *choreo.Elsewhere, name naming) (what, next string) {
	at := name(e.Partner)
	return fmt.Sprintf("task %s is held by %s", e.Task, at), "do that on the node of " + at
}

func officeHeld(e *elections.Held, name naming) (what, next string) {
	by := name(e.By)
	if e.Evicted {
		return by + " was evicted, and is the coordinator until its lease ends",
			fmt.Sprintf("try again in %s: nobody else is elected before, as it may not know yet",
				workflow.FormatDuration(e.Lease))
	}
	if e.Silent {
		left := (e.Lapses + time.Second - 1).Truncate(time.Second)
		return fmt.Sprintf("%s is the coordinator as far as this node knows, and cannot be reached: "+
				"it counts as that for %s more, unless it is heard of", by, left),
			"try again then: until its lease has run out it may act in office, and nobody else is elected"
	}
	return by + " is the coordinator", "have it resign first: mutirao coordinator resign, on " + by
}

func noIdentity(e *identityError, name naming) (what, next string) {
	return said.Render(e.error, name), ""
}

func looseFile(e *private.LooseError, _ naming) (what, next string) { return e.Error(), e.Mend }

func wrongConfig(e *configs.Error, _ naming) (what, next string) {
	return e.Error(), "mend it; docs/operating.md and configs/config.example.yaml have every key"
}

// Explain returns what an error means to whoever asked for something: an *api.Error, with
// partners by what name says. The end of a context is returned as it is, and so is what was
// not foreseen: whoever shows errors logs that, and says so (api.Internal).
func Explain(err error, name func(workflow.PartnerID) string) error {
	var shown *api.Error
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.As(err, &shown):
		return shown.Named(name)
	}
	for _, m := range meanings {
		if what, next, fits := m.words(err, name); fits {
			return api.Errorf(m.code, "%s", what).WithHint("%s", next)
		}
	}
	return err
}
