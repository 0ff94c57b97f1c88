// Package waits counts the time of what a node waits for in an instance: its own tasks and
// partitions, the answers of others, partners who are gone. It keeps what each wait has
// counted over restarts, and says when that is to be stored.
//
// Promises: no I/O, no clock, no goroutine: a moment comes in as the time since the machine
// booted. What is stored of a wait is never more than what it has counted, so that a wait
// may end late after a crash, but not early (docs/design.md, idea 8).
//
// It imports no other package of ours; choreo, internal/sim and node import it.
package waits

import "time"

// Kind says what a wait is for. Which of them run when, and what follows when one is over, is
// said in choreo/waits.go.
type Kind uint8

// The kinds of waits. The numbers are stored: never reuse one.
const (
	Timeout   Kind = 1 // an attempt of our own
	Partition Kind = 2 // a partition of our own
	Trigger   Kind = 3 // an emergency task of our own
	WorstCase Kind = 4 // since this node knows the instance
	Answer    Kind = 5 // another's partition
	Attempt   Kind = 6 // another's attempt that is clocked by itself
	Gone      Kind = 7 // a partner who is out of the process
	Pending   Kind = 9 // a contingency that somebody can take, and nobody has (8 was the pause before a try)

	// Until the holder of what an Answer, an Attempt, a Readiness or a Taken is for has heard.
	AnswerOver  Kind = 10
	AttemptOver Kind = 11

	Readiness Kind = 12 // as Attempt, where it is not known that it is ready
	Taken     Kind = 13 // since another took an attempt that it was given later

	Untaken Kind = 14 // since an attempt of our own could be taken by somebody
	Offered Kind = 15 // since it was first offered to anybody

	Keeper Kind = 16 // a partner who keeps resources, and is gone or absent
	Lease  Kind = 17 // since this node gave somebody an item
)

// ofFacts reports whether facts that come later may have such a wait begin again.
func (k Kind) ofFacts() bool { return k == Answer || k == AnswerOver || k == AttemptOver }

// own reports whether such a wait is for a task of our own, of which there may be thousands.
func (k Kind) own() bool { return k == Timeout || k == Trigger || k == Untaken || k == Offered }

// whole reports whether such a wait is about a partition, a partner or the instance, of which there are few. The
// others are about an attempt each, of which there may be thousands.
func (k Kind) whole() bool {
	return k == Partition || k == WorstCase || k == Answer || k == AnswerOver || k == Gone || k == Keeper
}

// Key names a wait: by attempt, partition or partner.
type Key struct {
	_    struct{} `cbor:",toarray"`
	Kind Kind
	Name string
}

// HandOver names the wait for a partner to have heard that goes before one for what it does.
func (k Key) HandOver() Key {
	if k.Kind == Answer {
		return Key{Kind: AnswerOver, Name: k.Name}
	}
	return Key{Kind: AttemptOver, Name: k.Name}
}

// Wait is a wait and how far it has got.
type Wait struct {
	_       struct{} `cbor:",toarray"`
	Key     Key
	Elapsed time.Duration // until now, or until it was stored
	Running bool
}

// Stored is what is stored of the waits of an instance.
type Stored struct {
	_   struct{} `cbor:",toarray"`
	All []Wait
	// Known is how many of the instance's facts, by their places, were looked at for all of
	// them: one of those that came later may have a wait begin again.
	Known int
}

// GuardianTimeout is how much longer each next in the succession waits before
// it judges in the guardian's place.
const GuardianTimeout = 15 * time.Second

const (
	minSlack = time.Second
	maxSlack = 15 * time.Second
)

// Slack is added to another's time-out, so that the holder's own verdict, which is final, can
// arrive first: a tenth of the wait, from a second to fifteen.
func Slack(total time.Duration) time.Duration { return min(max(total/10, minSlack), maxSlack) }
