package workflow

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mutirao-mesh/mutirao/internal/golden"
)

// TestDoubts prints what check warns of in flows that are driven by data.
func TestDoubts(t *testing.T) {
	files, err := filepath.Glob("testdata/doubts/*.yaml")
	if err != nil || len(files) < 6 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Parse(file, src); err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		for _, x := range Doubts(file, src, nil) {
			fmt.Fprintf(&b, "%d: %s\n", x.Line, x.Message)
		}
		golden.Compare(t, strings.TrimSuffix(file, ".yaml")+".txt", b.String())
	}
}

// An expression that is said never to hold holds for no values; and ways that are said to
// be possible for certain are so for some. Random expressions over few values are tried
// with all of these.
func TestNeverMeansNever(t *testing.T) {
	const text = "workflow: w\ndata: {n: {type: integer, max: 4}, f: {type: number}, s: {type: string}, e: {type: string, enum: [a, b]}, b: {type: boolean}, l: {type: list}}\n" +
		"tasks: {t: {when: %s, repeat: true}}\n"
	values := map[DataName][]Value{
		"n": {nil, int64(-2), int64(-1), int64(0), int64(1), int64(2), int64(3), int64(4)},
		"f": {nil, -1.0, 0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0},
		"s": {nil, "a", "b", "c", "xx", ""},
		"e": {nil, "a", "b"},
		"b": {nil, true, false},
		"l": {nil, []any{"a"}},
	}
	var states []Env
	for _, n := range values["n"] {
		for _, f := range values["f"] {
			for _, s := range values["s"] {
				for _, e := range values["e"] {
					for _, b := range values["b"] {
						for _, l := range values["l"] {
							states = append(states,
								Env{Data: map[DataName]Value{"n": n, "f": f, "s": s, "e": e, "b": b, "l": l}})
						}
					}
				}
			}
		}
	}
	g := rand.New(rand.NewPCG(1, 2))
	never, sometimes := 0, 0
	for range 1500 {
		src := randomRule(g, 3)
		d, err := Parse("w", fmt.Appendf(nil, text, "'"+src+"'"))
		if err != nil {
			continue // of constants, which Parse sees
		}
		e := d.Tasks[0].Condition
		holds := slices.ContainsFunc(states,
			func(env Env) bool { v, err := e.Eval(env); return err == nil && v == true })
		ways, known := satisfier{d}.expr(e, false, 0)
		if !known {
			continue
		}
		can, sure := false, false
		for _, way := range ways {
			c, s := possible(way)
			can, sure = can || c, sure || c && s
		}
		switch {
		case !can && holds:
			t.Fatalf("%s is said never to hold, and holds", src)
		case sure && !holds:
			t.Fatalf("%s is said to hold at times, and does not", src)
		case !can:
			never++
		case sure:
			sometimes++
		}
	}
	if never < 20 || sometimes < 200 {
		t.Errorf("%d expressions never hold, %d do: want more of both", never, sometimes)
	}
}

func randomRule(g *rand.Rand, depth int) string {
	pick := func(list ...string) string { return list[g.IntN(len(list))] }
	if depth > 0 && g.IntN(4) > 0 {
		a, b := randomRule(g, depth-1), randomRule(g, depth-1)
		return pick("("+a+" and "+b+")", "("+a+" and "+b+")", "("+a+" or "+b+")", "not ("+a+")")
	}
	return pick(
		"n "+pick("==", "!=", "<", "<=", ">", ">=")+" "+pick("-1", "0", "1", "2", "3", "5"),
		pick("1", "2")+" "+pick("==", "!=", "<", "<=", ">", ">=")+" n",
		"f "+pick("==", "!=", "<", "<=", ">", ">=")+" "+pick("0", "0.5", "1"),
		"s "+pick("==", "!=", "<", ">=")+" "+pick(`"a"`, `"b"`),
		"e "+pick("==", "!=")+" "+pick(`"a"`, `"b"`),
		pick("n", "f", "s", "e", "b", "l")+pick(" == ", " != ")+"null",
		pick("n == n", "n != n", "f < f", "s >= s", "e != e", "b == b", "l != l", "l == l"),
		pick(`s startsWith "x"`, "n + 1 > f", "n == f", "s in l", "len(l) == null", "upper(s) == e", "(s ?? e) == \"a\"",
			"(n > 1 ? s : e) != null", "(b or n > 1) == true", "max(n, f) > 1", "n < null", "null == s", "-n == 1",
			"l[0] == s", "l[0] != null"),
		`s in ["a", "c"]`, `not (s in ["a", "b"])`, "n in [0, 1]", "b", "not b", "b == true",
	)
}
