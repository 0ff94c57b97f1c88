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

// remember is a patch that breaks nothing: signatures that were checked, facts that were
// decoded, definitions that were parsed and their parts are remembered. All simulated nodes
// check the same signatures, and each reads the same facts and amendments again and again.
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
}}
