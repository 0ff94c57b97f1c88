package api

import (
	"encoding/json"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// Amendment is what an instance that runs would do with a changed definition (docs/amendments.md).
type Amendment struct {
	ID       string        `json:"id"`
	Workflow workflow.Name `json:"workflow"`
	// Version and Hash name the definition by which it runs, NewVersion and NewHash the changed one.
	Version    int    `json:"version"`
	Hash       string `json:"hash"`
	NewVersion int    `json:"new_version"`
	NewHash    string `json:"new_hash"`
	// Ended: the instance has ended, so that nothing of it can be changed any more.
	Ended bool `json:"ended"`
	// Changes are the parts that differ, and Lines tell the same to people, with the partners to whom partitions go that are
	// new or move.
	Changes []PartChange `json:"changes"`
	Lines   []string     `json:"lines"`
	// Refused are the changes that it cannot take. Where there is one, none counts.
	Refused []ChangeFinding `json:"refused"`
	// NotYet are the changes that it could take, and that nodes of this version cannot make of an instance that runs.
	NotYet []ChangeFinding `json:"not_yet"`
	// NoEffect are the changes that count only for instances that are started later.
	NoEffect []ChangeFinding `json:"no_effect"`
	// AtOnce is what the instance does at once with the changes that it takes, beside going on by them: a strict constraint
	// is broken by the data that there are, or its end has come.
	AtOnce []ChangeFinding `json:"at_once"`
}

// PartChange is what became of one part of a definition.
type PartChange struct {
	// Kind is workflow (what stands at the top by itself), data, condition, constraint, application, resource, task,
	// partition or distribution; Name is empty where there is one of its kind.
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Change is added, removed or changed.
	Change string `json:"change"`
	// Keys are those of its keys whose values differ; of a part that is new, all; of one that is gone, none.
	Keys []KeyChange `json:"keys"`
}

// KeyChange is a key of a part whose value differs. Values are as the canonical form has them.
type KeyChange struct {
	Key string          `json:"key"`
	Was json.RawMessage `json:"was,omitempty"` // left out: it was not written
	Is  json.RawMessage `json:"is,omitempty"`  // left out: it is not written
}

// ChangeFinding is why an instance does not simply take a change.
type ChangeFinding struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	Key  string `json:"key,omitempty"` // left out: the part as a whole
	Why  string `json:"why"`
	Next string `json:"next,omitempty"` // what to do instead
	Line string `json:"line"`           // all of that, for people
}

// AmendRequest changes the definition by which an instance runs.
type AmendRequest struct {
	User   string `json:"user,omitempty"`
	ID     string `json:"id"`
	File   string `json:"file"`   // the file's name, for error messages
	Source string `json:"source"` // the changed definition
}

// Amended says what an instance was changed to.
type Amended struct {
	ID      string   `json:"id"` // whole
	Version int      `json:"version"`
	Lines   []string `json:"lines"`   // what has changed, for people
	User    string   `json:"user"`    // who changed it
	Partner string   `json:"partner"` // who wrote it down
	Already bool     `json:"already"` // it was so before
	// AtOnce is what the instance did at once with it, by the data that there were (Amendment); left out: nothing else.
	AtOnce []ChangeFinding `json:"at_once,omitempty"`
	// Unheard is the partner that keeps the data states, if it cannot be reached now: they go by the change from when it
	// hears of it, and not at all if they have ended by then; left out: it can, or tasks follow a graph.
	Unheard string `json:"unheard,omitempty"`
}

// AmendmentMade is a change of the definition by which an instance runs, that counts.
type AmendmentMade struct {
	At      time.Time `json:"at"`
	User    string    `json:"user"`    // who changed it
	Partner string    `json:"partner"` // who wrote it down
	Lines   []string  `json:"lines"`   // what it set, for people
	// Late: it came after the data states had ended by the definition of before, and has no effect; left out: it has.
	Late bool `json:"late,omitempty"`
	// Lost is what of it does not count, for people, as it does not go together with an amendment that was made side by
	// side; left out: all counts.
	Lost []string `json:"lost,omitempty"`
}
