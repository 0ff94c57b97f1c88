package choreo

import (
	"errors"
	"fmt"
	"math"
	"time"
	"unicode/utf8"

	"github.com/mutirao-mesh/mutirao/internal/plain"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file has the limits of facts, each with its reason. There is one
// validation, Fact.validate, for what this node writes and for what it takes in:
// Encode and DecodeFact both call it, so a node never writes what it refuses. What it
// asks of one kind of fact stands with that kind, as its method validate (kinds.go).
// What would not fit is split where that can be done (heads and verdicts:
// append, judge), else the attempt or the command fails and says which limit.
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
	// somebody else has built upon them (door.go).
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

	// maxReason bounds a reason, in bytes: it is for people.
	maxReason = 4 << 10
	// maxReasons bounds the reasons of one annex together, in bytes.
	maxReasons = 32 << 10
	// maxCollection bounds the entries of any list or map in a fact, for the decoder's sake.
	maxCollection = 16 << 10
	// maxTry is the highest number of a try; the definition's retries end long before.
	maxTry = math.MaxInt32
	// maxWaited is the longest that work may be said to have waited: ten years.
	maxWaited = 10 * 365 * 24 * time.Hour
	// maxDepth is how deep lists and maps of a fact lie in each other: those of a
	// value, and the four around it.
	maxDepth = workflow.MaxDepth + 1 + 4
)

// Times are in the years 1970 to 9999: others cannot be said in JSON.
var (
	minAt = int64(0)
	maxAt = time.Date(9999, 12, 31, 23, 59, 59, 999e6, time.UTC).UnixMilli()
)

// wall is a moment as facts carry it. A clock beyond their years counts as at
// their end: what it shows decides nothing.
func wall(t time.Time) int64 { return min(max(t.UnixMilli(), minAt), maxAt) }

// validate checks what can be told of a fact by itself.
func (f *Fact) validate() error {
	says := f.Body.says()
	switch {
	case f.Format != FormatFact:
		return fmt.Errorf("format %d, this node reads %d", f.Format, FormatFact)
	case says == nil:
		return errors.New("a body says exactly one thing")
	case f.Chain.Author == "":
		return errors.New("no author")
	case f.Seq == 0:
		return errors.New("numbers start at 1")
	case (f.Seq == 1) != f.Prev.IsZero():
		return fmt.Errorf("number %d and previous fact %s do not go together", f.Seq, f.Prev.Short())
	case f.At < minAt || f.At > maxAt:
		return fmt.Errorf("it is dated %d ms after 1970: want 0 to %d, the years 1970 to 9999", f.At, maxAt)
	}
	if err := f.validateSeen(); err != nil {
		return err
	}
	if err := says.validate(f.Chain.Author); err != nil {
		return fmt.Errorf("%s: %w", says.kind(), err)
	}
	if n := len(f.Body.Credentials); n > trust.MaxChain*trust.MaxCertificate {
		return fmt.Errorf("credentials of %d bytes, at most %d", n, trust.MaxChain*trust.MaxCertificate)
	}
	return f.validateAnnex()
}

// validateSeen checks the chain and the heads.
func (f *Fact) validateSeen() error {
	switch {
	case f.Body.Genesis != nil && (f.Seq != 1 || len(f.Seen) > 0 || f.Instance != (workflow.InstanceID{})):
		return errors.New("a genesis is the first of its instance")
	case f.Body.Genesis == nil && f.Instance == (workflow.InstanceID{}):
		return errors.New("no instance")
	case f.Body.Genesis == nil && f.Seq == 1 && len(f.Seen) == 0:
		return errors.New("a chain's first fact must have seen the genesis")
	}
	if err := heads(f.Seen); err != nil {
		return fmt.Errorf("seen: %w", err)
	}
	return names(f.Chain.Author)
}

// heads checks what a fact names of others.
func heads(hs []Head) error {
	if len(hs) > MaxHeadsSeen {
		return fmt.Errorf("%d heads, at most %d", len(hs), MaxHeadsSeen)
	}
	for i, h := range hs {
		if i > 0 && hs[i-1].compare(h) >= 0 {
			return errors.New("heads are not sorted")
		}
		if err := names(h.Chain.Author); err != nil {
			return err
		}
	}
	return nil
}

// validateAnnex checks what can be told of an annex by itself.
func (f *Fact) validateAnnex() error {
	a := f.Body.Annex
	switch {
	case a == nil:
		return nil
	case f.Body.Genesis == nil && f.Body.Verdict == nil && f.Body.Assign == nil &&
		!(f.Body.Claim != nil && isOffer(f.Body.Claim.Body())):
		return fmt.Errorf("a %s fact has no annex", f.Body.Kind())
	case (a.Mechanism != "" || len(a.Dropped) > 0 || a.Responsible != "" || a.Parent != nil || len(a.Uses) > 0 ||
		a.dates() || a.Notify != "") && f.Body.Genesis == nil:
		return errors.New("an instance's mechanism, who answers for it, what is dropped of it, what it uses and what it is for, when people are warned and what they are offered, is in its genesis")
	case (a.Offered || a.Waited != 0) && (f.Body.Assign == nil || !f.Body.Assign.Verdict.IsZero()):
		return errors.New("only a holder that passes work on says that it is offered, and for how long it waited")
	case a.Order != nil && (f.Body.Assign == nil || f.Body.Assign.Verdict.IsZero()):
		return errors.New("by order only what a verdict ended is done once more")
	case a.Waited < 0 || a.Waited > maxWaited:
		return fmt.Errorf("work that waited for %s, want 0 to %s", a.Waited, maxWaited)
	case len(a.Why) > maxWhy || len(a.Dropped) > maxCollection:
		return fmt.Errorf("%d reasons and %d dropped tasks, at most %d and %d", len(a.Why), len(a.Dropped), maxWhy,
			maxCollection)
	}
	for i := range a.Why {
		if err := a.Why[i].validate(); err != nil {
			return err
		}
	}
	for _, d := range a.Dropped {
		if err := errors.Join(names(d.Task), names(d.DataSet), names(d.Holder)); err != nil {
			return err
		}
	}
	return errors.Join(names(a.Mechanism), names(a.Responsible), reason(a.Rejected), a.Parent.validate(f.Body.Genesis),
		pins(a.Uses), a.validateDates(), a.validateNotify())
}

func (w *Why) validate() error {
	if len(w.Candidates) > maxWeighed || len(w.Tasks) > maxCollection {
		return fmt.Errorf("a reason with %d candidates for %d tasks: at most %d and %d", len(w.Candidates),
			len(w.Tasks), maxWeighed, maxCollection)
	}
	for _, c := range w.Candidates {
		if err := errors.Join(names(c.Partner), names(c.Verdict)); err != nil {
			return err
		}
	}
	return errors.Join(names(w.Partition), names(w.Mechanism), names(w.Tasks...), reason(w.Reason))
}

// try checks the number of a try, and what names its attempt.
func try(a AttemptID, n int) error {
	if n < 1 || n > maxTry {
		return fmt.Errorf("try %d, want 1 to %d", n, maxTry)
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

// clip shortens a reason to what a fact takes, and makes text of it.
func clip(s string) string { return plain.CutBytes(s, maxReason) }

func reason(s string) error {
	switch {
	case len(s) > maxReason:
		return fmt.Errorf("a reason of %d bytes, at most %d", len(s), maxReason)
	case !utf8.ValidString(s):
		return errors.New("a reason that is not UTF-8")
	}
	return nil
}

// values checks data: only what JSON can say, and what a decoder takes.
func values(vs map[workflow.DataName]workflow.Value) error {
	if len(vs) > maxCollection {
		return fmt.Errorf("%d values, at most %d", len(vs), maxCollection)
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
		if len(v) > maxCollection {
			return fmt.Errorf("a list of %d, at most %d", len(v), maxCollection)
		}
		for _, x := range v {
			if err := value(x, depth+1); err != nil {
				return err
			}
		}
	case map[string]any:
		if len(v) > maxCollection {
			return fmt.Errorf("a map of %d, at most %d", len(v), maxCollection)
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
