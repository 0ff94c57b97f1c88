package workflow

import (
	"fmt"
	"strings"
	"testing"
)

// Texts that are meant to cost more than they are worth are refused, each for
// its reason, before the YAML library takes them apart. Without the limits some
// of them take minutes.
func TestHostileTexts(t *testing.T) {
	many := strings.Repeat
	for _, c := range []struct{ name, src, want string }{
		{"too long", many("#", MaxSource+1), "1:1: the definition has more than 1048576 bytes"},
		{"empty", " \n\n# nothing\n", "1:1: the definition is empty"},
		{"NUL", "workflow: a\ntasks: {a\x00: {}}", "2:10: a NUL byte is not text"},
		{"not UTF-8", "workflow: é\xff", "1:12: this is not valid UTF-8"},
		{"deep flow", many("[", 100_000), "1:33: lists and mappings lie more than 32 deep"},
		{"deep mapping", many("{a: ", 100_000), "1:129: lists and mappings lie more than 32 deep"},
		{"deep block", many("- ", 100_000), "1:65: lists and mappings lie more than 32 deep"},
		{"deep indent", indented40(), "33:33: lists and mappings lie more than 32 deep"},
		{"many keys", many("a: b\n", 100_000), ": there are too many keys here"},
		{"many nulls", many("-\n", 100_000), ": there are too many keys without values"},
		{"many flow nulls", "{" + many("a,", 100_000) + "}", ": there are too many keys without values"},
		{"many null keys", many("- - a:\n", 100_000), ": there are too many keys without values"},
		{"many documents", many("a\n---\n", 10_000), "2:1: a file holds one definition"},
		{"after the end", "a: b\n...\nc: d\n", "3:1: a file holds one definition"},
		{"anchors", "a: &x [b]\nc: *x", "1:4: anchors are not part of the language"},
		{"merge", "a: {<<: {b: c}}", "1:5: the merge key << is not part"},
		{"tag", "a: !!binary x", "1:4: YAML tags are not part"},
		{"directive", "%YAML 1.2\n---\na: b", "1:1: YAML directives are not part"},
		{"question mark", "? a\n: b", "1:1: a key introduced by ?"},
		{"too many tasks", "workflow: a\ntasks: {" + manyTasks(MaxTasks+1) + "}",
			"2:8: there are 10001 tasks: at most 10000"},
		{"models that grow", "workflow: a\nmodels: {m: {doc: " + many("x", 400) + "}}\ntasks: {" + manyTasks(3000) +
			"}", "with its models written out the definition has"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse("f", []byte(c.src))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("have %.1000v\nwant %s", err, c.want)
			}
		})
	}
}

func indented40() string {
	var b strings.Builder
	for i := range 40 {
		fmt.Fprintf(&b, "%sa:\n", strings.Repeat(" ", i))
	}
	return b.String()
}

func manyTasks(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "t%d: {model: m},\n", i)
	}
	return b.String()
}

// The greatest definition that is allowed is also read.
func TestLargestDefinition(t *testing.T) {
	var b strings.Builder
	b.WriteString("workflow: big\ntasks:\n  t0:\n")
	for i := 1; i < MaxTasks; i++ {
		fmt.Fprintf(&b, "  t%d: {after: t%d, timeout: 10m, role: crew, type: manual}\n", i, i-1)
	}
	d, err := Parse("big", []byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	if order := d.TopoOrder(); len(order) != MaxTasks || order[MaxTasks-1] != "t9999" {
		t.Errorf("%d tasks in order, the last is %s", len(order), order[len(order)-1])
	}
	if _, err := Parse("canonical", d.Canonical()); err != nil {
		t.Error(err)
	}
}
