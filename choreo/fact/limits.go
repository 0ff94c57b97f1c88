package fact

import (
	"errors"
	"fmt"
	"math"
	"time"
	"unicode/utf8"

	"github.com/mutirao-mesh/mutirao/internal/plain"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file has the limits of facts, each with its reason. There is one
// validation, Fact.validate, for what this node writes and for what it takes in:
// Encode and Decode both call it, so a node never writes what it refuses. What it
// asks of one kind of fact stands with that kind, as its method Validate (kinds.go).
// What would not fit is split where that can be done (heads and verdicts: append
// and judge in package choreo), else the attempt or the command fails and says which limit.
const (
	// MaxFact bounds an encoded fact, in bytes: several fit into one frame, with
	// room for the definition.
	MaxFact = 256 << 10
	// MaxBundle bounds the facts of one bundle, in bytes without their attestations: what
	// came in one may have to be passed on as one.
	MaxBundle = 2 * MaxFact
	// MaxHeadsSeen bounds the heads that one fact names: at most 47 KiB, so that
	// a large result still fits beside them. More go into `seen` facts before it.
	MaxHeadsSeen = 256
	// MaxActions bounds what one verdict judges: with partners, reasons and a proof
	// of office it stays below MaxFact. More go into further verdicts.
	MaxActions = 128
	// MaxChains is how many chains of one author are taken in for themselves: one for
	// each time that its store was made or restored. More are taken in where
	// somebody else has built upon them (choreo/admit.go).
	MaxChains = 8

	// MaxVerdicts is how many verdicts on one attempt count, as far as a fact's author
	// knew: an author that knows of one has no reason for another. MaxAttempts is how often
	// one author finds somebody else for the work of one slot, as far as it knew: no work
	// goes through so many hands. So an author that judges, or passes on, without end makes
	// no slot costly.
	MaxVerdicts = 32
	MaxAttempts = 64

	// MaxSuccesses is how many successes of one attempt count, as far as their author knew:
	// it tells of one again where a fork had taken away what the first rested on.
	MaxSuccesses = 2

	// MaxReason bounds a reason, in bytes: it is for people.
	MaxReason = 4 << 10
	// maxReasons bounds the reasons of one annex together, in bytes.
	maxReasons = 32 << 10
	// MaxCollection bounds the entries of any list or map in a fact, for the decoder's sake.
	MaxCollection = 16 << 10
	// MaxTry is the highest number of a try; the definition's retries end long before.
	MaxTry = math.MaxInt32
	// MaxWaited is the longest that work may be said to have waited: ten years.
	MaxWaited = 10 * 365 * 24 * time.Hour
	// maxDepth is how deep lists and maps of a fact lie in each other: those of a
	// value, and the four around it.
	maxDepth = workflow.MaxDepth + 1 + 4
)

// Times are in the years 1970 to 9999: others cannot be said in JSON.
var (
	MinAt = int64(0)
	MaxAt = time.Date(9999, 12, 31, 23, 59, 59, 999e6, time.UTC).UnixMilli()
)

// heads checks what a fact names of others.
func heads(hs []Head) error {
	if len(hs) > MaxHeadsSeen {
		return fmt.Errorf("%d heads, at most %d", len(hs), MaxHeadsSeen)
	}
	for i, h := range hs {
		if i > 0 && hs[i-1].Compare(h) >= 0 {
			return errors.New("heads are not sorted")
		}
		if err := names(h.Chain.Author); err != nil {
			return err
		}
	}
	return nil
}

// try checks the number of a try, and what names its attempt.
func try(a AttemptID, n int) error {
	if n < 1 || n > MaxTry {
		return fmt.Errorf("try %d, want 1 to %d", n, MaxTry)
	}
	return names(a.Slot)
}

// names checks what names something: of bounded length, and text.
func names[T ~string](list ...T) error {
	for _, s := range list {
		if len(s) > workflow.MaxName {
			return fmt.Errorf("a name of %d bytes, at most %d", len(s), workflow.MaxName)
		}
		if !utf8.ValidString(string(s)) {
			return fmt.Errorf("a name that is not UTF-8: %q", s)
		}
	}
	return nil
}

// Clip shortens a reason to what a fact takes, and makes text of it.
func Clip(s string) string { return plain.CutBytes(s, MaxReason) }

// Reason returns an error for a reason that is too long, or no text.
func Reason(s string) error {
	switch {
	case len(s) > MaxReason:
		return fmt.Errorf("a reason of %d bytes, at most %d", len(s), MaxReason)
	case !utf8.ValidString(s):
		return errors.New("a reason that is not UTF-8")
	}
	return nil
}

// values checks data: only what JSON can say, and what a decoder takes.
func values(vs map[workflow.DataName]workflow.Value) error {
	if len(vs) > MaxCollection {
		return fmt.Errorf("%d values, at most %d", len(vs), MaxCollection)
	}
	for n, v := range vs {
		if err := names(n); err != nil {
			return err
		}
		if err := value(v, 0); err != nil {
			return fmt.Errorf("the value of %s: %w", n, err)
		}
	}
	return nil
}

func value(v workflow.Value, depth int) error {
	if depth > workflow.MaxDepth {
		return fmt.Errorf("lists and maps lie more than %d deep in each other", workflow.MaxDepth)
	}
	switch v := v.(type) {
	case nil, bool, int64:
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("%v is not a number that can be counted with", v)
		}
	case string:
		return text(v)
	case []any:
		if len(v) > MaxCollection {
			return fmt.Errorf("a list of %d, at most %d", len(v), MaxCollection)
		}
		for _, x := range v {
			if err := value(x, depth+1); err != nil {
				return err
			}
		}
	case map[string]any:
		if len(v) > MaxCollection {
			return fmt.Errorf("a map of %d, at most %d", len(v), MaxCollection)
		}
		for k, x := range v {
			if err := errors.Join(text(k), value(x, depth+1)); err != nil {
				return err
			}
		}
	default:
		return fmt.Errorf("a value of Go type %T has no place in a workflow", v)
	}
	return nil
}

func text(s string) error {
	if !utf8.ValidString(s) {
		return errors.New("text that is not UTF-8")
	}
	return nil
}

// What people's words that end nothing may take in one instance at one holder. The smallest share is
// 5,000 facts and 1 MiB (the preset mobile).
const (
	MaxIdleFacts       = 512
	MaxIdleBytes       = 384 << 10
	MaxPersonIdleFacts = MaxIdleFacts / 4
	MaxPersonIdleBytes = MaxIdleBytes / 4
)

// MaxGrants is how often one person is given one item.
const MaxGrants = 16

// What orders may take in one instance at one holder, with what follows from them, of all who may decide, and of
// one person: so the words of others never keep one out, nor one of those who decide the other. Together
// with MaxIdleFacts and MaxIdleBytes it is less than the smallest share.
const (
	MaxOrderFacts       = 1024
	MaxOrderBytes       = 448 << 10
	MaxPersonOrderFacts = MaxOrderFacts / 4
	MaxPersonOrderBytes = MaxOrderBytes / 4
)
