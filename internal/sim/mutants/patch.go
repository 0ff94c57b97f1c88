package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// patch replaces one text of a file by another.
type patch struct {
	file     string // from the module's root
	old, new string
}

// overlay writes patched copies of files to dir and the description of them
// that go build -overlay reads, whose path it returns. A text that is not there
// exactly once is an error: then the code has changed and so must the patch.
func overlay(root, dir string, ps []patch) (string, error) {
	texts := map[string]string{}
	for _, p := range ps {
		text, ok := texts[p.file]
		if !ok {
			b, err := os.ReadFile(filepath.Join(root, p.file))
			if err != nil {
				return "", err
			}
			text = string(b)
		}
		if n := strings.Count(text, p.old); n != 1 {
			return "", fmt.Errorf("%s has the text to be replaced %d times, not once:\n%s", p.file, n, p.old)
		}
		texts[p.file] = strings.Replace(text, p.old, p.new, 1)
	}
	replace := map[string]string{}
	for file, text := range texts {
		to := filepath.Join(dir, strings.ReplaceAll(file, "/", "_"))
		if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(root, file)] = to
	}
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, b, 0o600)
}

// remember is a patch that breaks nothing: signatures that were checked, facts that were decoded, definitions that
// were parsed and their parts, what amendments make of a definition, and ended instances that were read to be looked
// at are remembered. All simulated nodes check the same signatures, and each reads the same facts and amendments
// again and again. Seeds end with the fingerprints that they have without it.
var remember = []patch{{
	"membership/trust/identity.go",
	`	if len(sig) != ed25519.SignatureSize || !ed25519.Verify(key, InDomain(domain, msg), sig) {
		return`,
	`	if len(sig) != ed25519.SignatureSize || !remembered(key, InDomain(domain, msg), sig) {
		return`,
}, {
	"membership/trust/identity.go",
	"// InDomain puts the domain",
	`var checked = map[string]bool{}

func remembered(key ed25519.PublicKey, msg, sig []byte) bool {
	k := string(key) + string(sig) + string(msg)
	ok, known := checked[k]
	if !known {
		if len(checked) > 200_000 {
			checked = map[string]bool{}
		}
		ok = ed25519.Verify(key, msg, sig)
		checked[k] = ok
	}
	return ok
}

// InDomain puts the domain`,
}, {
	"choreo/fact/fact.go",
	`func Decode(raw []byte) (*Fact, ID, error) {
`,
	`func Decode(raw []byte) (*Fact, ID, error) {
	x, known := decoded[string(raw)]
	if !known {
		if decodedBytes += len(raw); decodedBytes > 64<<20 {
			decoded, decodedBytes = map[string]remembered{}, len(raw)
		}
		x.fact, x.id, x.err = decodeFact(raw)
		decoded[string(raw)] = x
	}
	return x.fact, x.id, x.err
}

type remembered struct {
	fact *Fact
	id   ID
	err  error
}

var (
	decoded      = map[string]remembered{}
	decodedBytes int
)

func decodeFact(raw []byte) (*Fact, ID, error) {
`,
}, {
	"workflow/parse.go",
	`func ParseWith(file string, src []byte, shared Shared) (*Definition, error) {
`,
	`func ParseWith(file string, src []byte, shared Shared) (*Definition, error) {
	if shared != nil {
		return parseWith(file, src, shared)
	}
	k := file + "\x00" + string(src)
	x, known := parsed[k]
	if !known {
		if parsedBytes += len(src); parsedBytes > 32<<20 {
			parsed, parsedBytes = map[string]remembered{}, len(src)
		}
		x.def, x.err = parseWith(file, src, nil)
		parsed[k] = x
	}
	return x.def, x.err
}

type remembered struct {
	def *Definition
	err error
}

var (
	parsed      = map[string]remembered{}
	parsedBytes int
)

func parseWith(file string, src []byte, shared Shared) (*Definition, error) {
`,
}, {
	"workflow/parse.go",
	`func ParseKept(file string, src []byte, kept Kept) (*Definition, error) {
`,
	`func ParseKept(file string, src []byte, kept Kept) (*Definition, error) {
	k := fmt.Sprint(file, "\x00", kept, "\x00", string(src))
	x, known := parsed[k]
	if !known {
		if parsedBytes += len(k); parsedBytes > 32<<20 {
			parsed, parsedBytes = map[string]remembered{}, len(k)
		}
		x.def, x.err = parseKept(file, src, kept)
		parsed[k] = x
	}
	return x.def, x.err
}

func parseKept(file string, src []byte, kept Kept) (*Definition, error) {
`,
}, {
	"workflow/amendments/difference.go",
	`func partsIn(canonical []byte) parts {
`,
	`func partsIn(canonical []byte) parts {
	k := string(canonical)
	x, known := taken[k]
	if !known {
		if takenBytes += len(k); takenBytes > 16<<20 {
			taken, takenBytes = map[string]parts{}, len(k)
		}
		x = takeApart(canonical)
		taken[k] = x
	}
	out := parts{}
	for p, keys := range x {
		out[p] = maps.Clone(keys)
	}
	return out
}

var (
	taken      = map[string]parts{}
	takenBytes int
)

func takeApart(canonical []byte) parts {
`,
}, {
	"choreo/state/amend.go",
	`	return s.Start().Fits(known, p)
}
`,
	`	k := fit{s.log.Genesis().ID, known.Hash(), p.Text()}
	x, seen := fits[k]
	if !seen {
		if len(fits) > 1000 {
			clear(fits)
		}
		x.patch, x.err = s.Start().Fits(known, p)
		fits[k] = x
	}
	return x.patch, x.err
}

type fit struct {
	genesis fact.ID
	known   workflow.Hash
	patch   string
}

type meant struct {
	patch amendments.Meant
	err   error
}

var fits = map[fit]meant{}
`,
}, {
	"choreo/state/edition.go",
	`	d, _ := amendments.Effective(s.original, patches, s.doubtful(of), s.cut)
`,
	`	d, _ := s.effective(of, patches)
`,
}, {
	"choreo/state/fold.go",
	`amendments.Effective(s.original, patches, s.doubtful(s.formedBy), s.cut)`,
	`s.effective(s.formedBy, patches)`,
}, {
	"choreo/state/edition.go",
	`// keep notes what`,
	`type made struct {
	def  *workflow.Definition
	left []int
}

var effects = map[string]made{}

func (s *State) effective(of []*log.Entry, patches []amendments.Meant) (*workflow.Definition, []int) {
	genesis, doubtful := s.log.Genesis().ID, s.doubtful(of)
	k := append([]byte(nil), genesis[:]...)
	for i, a := range of {
		known := s.fittings[a.ID].known
		k = append(append(k, a.ID[:]...), known[:]...)
		if doubtful(i) {
			k = append(k, 1)
		}
	}
	x, known := effects[string(k)]
	if !known {
		if len(effects) > 1000 {
			clear(effects)
		}
		x.def, x.left = amendments.Effective(s.original, patches, doubtful, s.cut)
		effects[string(k)] = x
	}
	return x.def, x.left
}

// keep notes what`,
}, {
	"node/loading.go",
	`	m, err := choreo.Open(s.n.self(), def.Def, def.Plan, facts[0])
	if err == nil {
		err = m.Resume(facts[1:], !sum.Settled, waits)
	}
`,
	`	m, err := s.resumed(def, facts, waits, sum)
`,
}, {
	"node/loading.go",
	`// loadFacts reads the facts`,
	`// visiting says that what is read will only be looked at, resumables are machines that were.
var (
	visiting   bool
	resumables = map[string]*choreo.Machine{}
)

func (s *shard) resumed(
	def *library.Definition, facts []fact.Received, waits choreo.Break, sum index.Summary,
) (*choreo.Machine, error) {
	k := ""
	if visiting && sum.Settled {
		b := fmt.Appendf(nil, "%p %s", s.n, def.Hash)
		for _, f := range facts {
			b = append(b, f.ID[:]...)
		}
		k = string(append(b, encode(waits.Waits)...))
		if m := resumables[k]; m != nil {
			return m, nil
		}
	}
	m, err := choreo.Open(s.n.self(), def.Def, def.Plan, facts[0])
	if err == nil {
		err = m.Resume(facts[1:], !sum.Settled, waits)
	}
	if err == nil && k != "" {
		if len(resumables) > 100 {
			clear(resumables)
		}
		resumables[k] = m
	}
	return m, err
}

// loadFacts reads the facts`,
}, {
	"node/contained.go",
	`		var h *held
		if h, err = s.find(id); err == nil {
			fn(h)
		}
	})
	if h := s.held[id]; h`,
	`		var h *held
		visiting = true
		h, err = s.find(id)
		if visiting = false; err == nil {
			fn(h)
		}
	})
	if h := s.held[id]; h`,
}}
