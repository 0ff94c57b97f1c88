package index

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/closings"
	"github.com/mutirao-mesh/mutirao/node/codec"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// The first bytes of the keys under which summaries, and the news of ended instances, are kept.
const (
	Prefix     = 'i'
	PrefixNews = 'n'
)

// Key is where the summary of an instance is kept.
func Key(id workflow.InstanceID) []byte { return append([]byte{Prefix}, id[:]...) }

// Summary is what lists show of an instance, and what tells at a start
// whether anybody may still need it.
type Summary struct {
	_          struct{} `cbor:",toarray"`
	Definition workflow.Hash
	Workflow   workflow.Name
	Version    int
	State      workflow.InstanceState
	By         workflow.PartnerID // who began it
	Started    int64              // ms, the initiator's clock
	// Began is as Started, but of this node's own instances each is later than all that
	// began before, though the clock was set back: with the genesis it is made durable.
	Began int64
	Ended int64 // ms, the clock of whoever ended it (choreo.Machine.Ended); 0: not yet
	// Settled: it has ended, and every participant is known to have all of it.
	Settled bool
	// Of an ended instance: a digest of its facts, and who takes part, separated
	// by spaces (see ended.go, and node/usage.go, named, for who is left out).
	Facts closings.Digest
	With  string
	// Number is how many facts it has, and Age when it ended by this node's own time,
	// in nanoseconds. Open: its facts are needed still (choreo.Machine.Unsettled).
	// Closed: they are being deleted, its summary is in place (node/retention.go).
	Number uint64
	// Sizes are the bytes of the facts of each of With, in that order.
	Sizes  string
	Age    time.Duration
	Open   bool
	Closed bool
	// Late: a partner gave it up before it had all that is here. Unanswered: somebody
	// may lack something, and is not waited for (node/retention.go).
	Late, Unanswered bool
	// Of an ended instance: Done of its Tasks have ended, and why it needs a person
	// (StoreNeeds).
	Done, Tasks int
	Needs       string
	// Holders are those of tasks which others presume to have failed, by task, separated by spaces: what is needed
	// changes as they go and come back.
	Holders string
	// People are, by partner, the people's tasks of an ended instance that succeeded
	// (StoreDone).
	People string
	// Of says which try of which task of which instance it is for (PartOf); empty: it is for itself.
	Of string
	// Uses are the definitions that its children use, until it is settled: hashes, separated by spaces.
	Uses string
	// Filed: an amendment gave it data that are files; its definition has none.
	Filed bool
	// Subject is what an ended instance is about, in the words with which it was started.
	Subject string
	// Nonce is that of its genesis: whoever asks once more for what was begun with a key is told of it (List.Begun).
	Nonce [16]byte
}

// summaryFields are how many of them are stored; versions before 2026-11-30 stored up to two less, the last.
const summaryFields = 28

// ReadSummary reads what is stored.
func ReadSummary(b []byte) (sum Summary, err error) {
	var fields []codec.Raw
	if err = codec.Decode(b, &fields); err == nil && len(fields) == summaryFields-2 {
		fields = append(fields, codec.Encode(""))
	}
	if len(fields) == summaryFields-1 {
		b = codec.Encode(append(fields, codec.Encode([16]byte{})))
	}
	return sum, codec.Decode(b, &sum)
}

// StoreNeeds puts needs into a summary, ReadNeeds takes them out. A summary is made of
// texts, so they are one: bytes that are no UTF-8 could not be read back. What cannot
// be read says nothing: the instance itself does.
func StoreNeeds(needs []api.Need) string {
	if len(needs) == 0 {
		return ""
	}
	b, _ := json.Marshal(needs) // our own types encode
	return string(b)
}

// ReadNeeds are the needs that a summary has.
func ReadNeeds(s string) []api.Need {
	needs := []api.Need{}
	if s != "" && json.Unmarshal([]byte(s), &needs) != nil {
		return []api.Need{}
	}
	return needs
}

// goesOn reports whether tasks are ready or run here that others presume to have failed.
func (s Summary) goesOn() bool {
	return s.Needs != "" && slices.ContainsFunc(ReadNeeds(s.Needs), func(n api.Need) bool { return n.Kind == api.NeedGoesOn })
}

// ReadHolders are the Holders that a summary has.
func ReadHolders(s string) (out []workflow.PartnerID) {
	for p := range strings.FieldsSeq(s) {
		out = append(out, workflow.PartnerID(p))
	}
	return out
}

// PartOf is how a summary says what an instance is for; empty: for itself.
func PartOf(p *fact.Parent) string {
	if p == nil {
		return ""
	}
	return fmt.Sprintf("%s/%s/%s/%d", p.Instance, p.Attempt.Slot, p.Attempt.Fact, p.Try)
}

// ReadPart reads what PartOf wrote, but for the depth; false: nothing.
func ReadPart(of string) (p fact.Parent, ok bool) {
	f := strings.Split(of, "/")
	if len(f) != 4 {
		return p, false
	}
	id, err := workflow.ParseInstanceID(f[0])
	told, err2 := hex.DecodeString(f[2])
	try, err3 := strconv.Atoi(f[3])
	if errors.Join(err, err2, err3) != nil || len(told) != len(fact.ID{}) {
		return p, false
	}
	p.Instance, p.Try = id, try
	p.Attempt = fact.AttemptID{Fact: fact.ID(told), Slot: workflow.TaskName(f[1])}
	return p, true
}

// SetAside is an instance in quarantine, as it is kept and listed.
type SetAside struct {
	_     struct{} `cbor:",toarray"`
	Since int64    // ms
	Why   string
	// Lost: some of its entries are gone or cannot be read, and own facts may be
	// among them. Such an instance is never loaded from what is left alone.
	Lost bool
	// Fault: its machine panicked in this process (node/faults.go). It is not stored: the next
	// start tries it once more.
	Fault bool `cbor:"-"`
}

// EachDone gives the people's tasks of ended instances that succeeded, by who did them.
func (x *List) EachDone(give func(p worklist.User, done int)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, sum := range x.all {
		for p, done := range readDone(sum.People) {
			give(p, done)
		}
	}
}

// StoreDone puts the people's tasks that succeeded into a summary, readDone takes them out.
// What cannot be read says nothing: the instance itself does.
func StoreDone(of map[worklist.User]choreo.PeoplesWork) string {
	var out []string
	for _, p := range slices.Sorted(maps.Keys(of)) {
		if n := of[p].Done; n > 0 {
			out = append(out, fmt.Sprintf("%s %d", p, n))
		}
	}
	return strings.Join(out, " ")
}

func readDone(s string) map[worklist.User]int {
	words, out := strings.Fields(s), map[worklist.User]int{}
	for i := 0; i+1 < len(words); i += 2 {
		if n, err := strconv.Atoi(words[i+1]); err == nil && n > 0 {
			out[worklist.User(words[i])] = n
		}
	}
	return out
}
