package choreo

import (
	"time"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file says what a machine is told of its surroundings: what time it is, for whom it acts, and who is there.

// Moment is when something happens, for this node: Boot is the time since the
// machine started, suspend included; Wall is for people. Chance is a number in
// [0, 1) for a choice by lot.
type Moment struct {
	Boot   time.Duration
	Wall   time.Time
	Chance float64
}

// Self says who a machine acts for.
type Self struct {
	Partner     workflow.PartnerID
	Incarnation fact.Incarnation
	// Trust checks what authors show; nil: nobody's credentials prove anything.
	Trust state.Trust
	// Credentials prove what roles this node has, when it creates an instance.
	Credentials []byte
	// Speak gives the word of the user who creates an instance at this node, for what is to be signed; nil: the
	// partner itself creates it.
	Speak func(signed [32]byte) ([]byte, error)
	// Instant: this node does noop and set itself, in the step in which they begin; else its driver is
	// asked to, as for all other applications (Effects.Start).
	Instant bool
	// Served reports whether workers do an application at this node; nil: none.
	Served func(workflow.ApplicationName) bool
}

// Partners is what decisions need to know of the partner list.
type Partners interface {
	// Gone reports whether a partner is expired, has left or was evicted; Evicted,
	// whether it was evicted.
	Gone(workflow.PartnerID) bool
	Evicted(workflow.PartnerID) bool
	// Absent reports whether a partner is out of reach for as long as it announced, and that is not over: it is not
	// gone. What it holds waits for it; what somebody else can do as well does not.
	Absent(workflow.PartnerID) bool
	// Eviction proves that a partner was evicted, and Credentials what roles this
	// node has, to a node that trusts (Trust); nil: nothing does.
	Eviction(workflow.PartnerID) []byte
	Credentials() []byte
	// ConnectionTime is within what time a partner that nobody met expires.
	ConnectionTime(workflow.PartnerID) time.Duration
	// HasRole reports whether a partner has a role, as far as is known.
	HasRole(workflow.PartnerID, workflow.RoleName) bool
	// Person is a person who may have people's work, with the roles that this node knows; false:
	// it knows no such person, or one that was removed.
	Person(worklist.User) (worklist.Person, bool)
	// People are those to whom items for a role can be offered, whether or not they can be reached now; with no
	// role, those at this node.
	People(workflow.RoleName) []worklist.Person
	// WorksAt are the other partners at whose nodes a person can take work now: those that can be reached, and take new
	// work on.
	WorksAt(worklist.User) []workflow.PartnerID
	// Coordinator is the partner that holds the office of coordinator, as far as
	// is known; empty: nobody.
	Coordinator() workflow.PartnerID
	// Reachable reports whether a partner can be reached now, as far as is known.
	Reachable(workflow.PartnerID) bool
	// Office is the office that this node holds at this moment; nil: none.
	Office() *fact.Office
	// TellStart is when (Moment.Boot) partners are to be told of the start of a task
	// that began at since (Moment.Boot), if it still runs then. What began later is
	// not told earlier.
	TellStart(since time.Duration) time.Duration
	// Entitled are the people who are here and have the role of a person's task which waits to
	// be taken, and who of them may see it by the instance's mechanism ([partition.Entitled]).
	Entitled(Work, partition.Waiting) (here []worklist.User, sight partition.Sight, err error)
	// Choose finds the partner that takes a piece of work; the error says why
	// nobody can. It changes nothing: what is given out is said by Effects.Given.
	Choose(Work) (partition.Choice, error)
}

// wall is a moment as facts carry it. A clock beyond their years counts as at
// their end: what it shows decides nothing.
func wall(t time.Time) int64 { return min(max(t.UnixMilli(), fact.MinAt), fact.MaxAt) }
