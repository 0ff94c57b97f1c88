package amendments

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mutirao-mesh/mutirao/internal/plain"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Patch is what an amendment changes of the definition by which an instance runs: keys of its parts, in
// the order of Between. It says nothing of parts that it leaves as they are, so that two patches go
// together, whoever made them of which edition, unless they set one key.
type Patch []Setting

// Setting is a key of a part with its new value, as the canonical form has it.
type Setting struct {
	Part
	Key   string          `json:"key"`
	Value json.RawMessage `json:"value,omitempty"` // left out: it is not written any more
}

// MaxPatch bounds a patch as it is written down, in bytes, and MaxPatches how many of them one instance
// takes. A definition has room for all of them (MaxPatched), so that which of them came together nowhere
// matters.
const (
	MaxPatch   = 4 << 10
	MaxPatches = 64
	MaxPatched = workflow.MaxSource - MaxPatch*MaxPatches
)

// light are the keys that can be changed in an instance that runs: limits of time, what the choice of a
// performer weighs, and words. Whether what partners said of the instance counts does not depend on them, so
// it does not matter who had heard of the amendment when. Limited are those that have to be written before
// and after: a limit that comes or goes changes what is waited for.
var (
	light = map[Kind][]string{
		OfWorkflow: {"version", "label", "doc"},
		OfData:     {"label", "doc"},
		OfTask: {
			"timeout", "time-to-wait", "priority", "urgency", "suitability", "duration", "label", "doc",
		},
		OfPartition: {"timeout", "label"},
	}
	limited = []string{"timeout", "time-to-wait"}
)

// PatchOf is the patch that makes one edition of another, but for what is found of the changes: that is refused anyway,
// or has no effect (Judge). What cannot be changed yet in an instance that runs is refused, with the reason; then there
// is no patch.
func PatchOf(old, changed *workflow.Definition, found []Finding) (Patch, []Finding) {
	var out Patch
	var heavy []Finding
	no := func(p Part, key, why string) {
		heavy = append(heavy, Finding{Part: p, Key: key, Refused: true, Why: why})
	}
	for _, c := range Between(old, changed) {
		switch {
		case isFound(found, c.Part, ""):
			continue
		case c.How == Added:
			no(c.Part, "", "this version cannot add it to an instance that runs")
			continue
		case c.How == Removed:
			no(c.Part, "", "this version cannot take it out of an instance that runs")
			continue
		}
		for _, k := range c.Keys {
			switch why := heaviness(c.Part, k); {
			case isFound(found, c.Part, k.Key):
			case why != "":
				no(c.Part, k.Key, why)
			default:
				out = append(out, Setting{Part: c.Part, Key: k.Key, Value: k.Is})
			}
		}
	}
	if len(heavy) > 0 {
		return nil, heavy
	}
	if n := len(out.Text()); n > MaxPatch {
		no(Part{Kind: OfWorkflow}, "", fmt.Sprintf("the changes have %d bytes, and %d may be made at once", n, MaxPatch))
		return nil, heavy
	}
	return out, nil
}

func isFound(found []Finding, p Part, key string) bool {
	return slices.ContainsFunc(found, func(f Finding) bool { return f.Part == p && f.Key == key })
}

// heaviness says why a key cannot be changed so in an instance that runs; empty: it can.
func heaviness(p Part, k Key) string {
	switch {
	case !slices.Contains(light[p.Kind], k.Key):
		return "this version cannot change it in an instance that runs"
	case slices.Contains(limited, k.Key) && (len(k.Was) == 0 || len(k.Is) == 0):
		return "this version changes a limit of an instance that runs, and neither adds nor removes one"
	}
	return ""
}

// Text is the one way to write a patch down.
func (p Patch) Text() string { return string(written(p)) }

// DecodePatch reads what Text writes, and nothing else.
func DecodePatch(s string) (Patch, error) {
	if len(s) > MaxPatch {
		return nil, fmt.Errorf("a patch of %d bytes, at most %d", len(s), MaxPatch)
	}
	var p Patch
	d := json.NewDecoder(strings.NewReader(s))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		return nil, fmt.Errorf("a patch that cannot be read: %w", err)
	}
	if len(p) == 0 {
		return nil, errors.New("a patch that changes nothing")
	}
	for i, x := range p {
		if why := heaviness(x.Part, Key{Key: x.Key, Was: x.Value, Is: x.Value}); why != "" {
			return nil, fmt.Errorf("a patch of %s, %s: %s", x.Part, x.Key, why)
		}
		if i > 0 && p[i-1].compare(x) >= 0 {
			return nil, errors.New("a patch whose settings are not in their order")
		}
	}
	if p.Text() != s {
		return nil, errors.New("a patch that is not written in the one way")
	}
	return p, nil
}

func (x Setting) compare(o Setting) int {
	if n := x.Part.compare(o.Part); n != 0 {
		return n
	}
	return strings.Compare(x.Key, o.Key)
}

// Fits says why a patch is not one of a definition; nil: the definition has its parts, with their limits, and is one
// with the patch as well.
func Fits(def *workflow.Definition, p Patch) error {
	if n := len(def.Canonical()); n > MaxPatched {
		return fmt.Errorf("a definition of %d bytes is not amended, only one of at most %d", n, MaxPatched)
	}
	has := partsOf(def)
	for _, x := range p {
		keys, known := has[x.Part]
		switch {
		case !known:
			return fmt.Errorf("the definition has no %s", x.Part)
		case slices.Contains(limited, x.Key) && len(keys[x.Key]) == 0:
			return fmt.Errorf("%s has no %s", x.Part, x.Key)
		}
	}
	_, err := patched(def, has, p)
	return err
}

// Effective is a definition with the patches that were made of it, in their order: where several set one key,
// the last one counts. Each of them fits it. Patches with which it would be none all the same change nothing.
func Effective(def *workflow.Definition, patches []Patch) *workflow.Definition {
	if len(patches) == 0 {
		return def
	}
	out, err := patched(def, partsOf(def), patches...)
	if err != nil {
		return def
	}
	return out
}

// patched is a definition, which has these parts, with patches.
func patched(def *workflow.Definition, has parts, patches ...Patch) (*workflow.Definition, error) {
	out := parts{}
	for p, keys := range has {
		out[p] = maps.Clone(keys)
	}
	for _, p := range patches {
		for _, x := range p {
			if len(x.Value) == 0 {
				delete(out[x.Part], x.Key)
			} else {
				out[x.Part][x.Key] = x.Value
			}
		}
	}
	made, err := workflow.Parse("amended", out.text(placedConstraints(def, def, def)))
	if err != nil {
		return nil, err
	}
	if made.Name != def.Name {
		return nil, errors.New("the name of the workflow is another")
	}
	return made, nil
}

// Clash is a key that two patches set unlike.
type Clash struct {
	Part
	Key        string
	One, Other json.RawMessage
}

func (c Clash) String() string {
	return fmt.Sprintf("%s, %s: %s and %s", c.Part, c.Key, Shown(c.One), Shown(c.Other))
}

// Clashes are the keys that two patches set unlike, in their order.
func Clashes(one, other Patch) (out []Clash) {
	for _, x := range one {
		for _, y := range other {
			if x.compare(y) == 0 && !bytes.Equal(x.Value, y.Value) {
				out = append(out, Clash{Part: x.Part, Key: x.Key, One: x.Value, Other: y.Value})
			}
		}
	}
	return out
}

// Lines tell people what a patch sets.
func (p Patch) Lines() (out []string) {
	for _, x := range p {
		out = append(out, fmt.Sprintf("%s, %s: %s", x.Part, plain.Line(x.Key), Shown(x.Value)))
	}
	return out
}
