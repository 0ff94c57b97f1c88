package workflow

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// env has one value of each type; y is null.
var env = Env{
	Instance: "abc", Age: 90 * time.Minute,
	Data: map[DataName]Value{
		"n": int64(7), "x": 2.5, "s": "fire", "b": true, "color": "red", "f": "photo.jpg",
		"due": "2026-07-01T08:00:00Z", "l": []any{int64(1), "two", nil, []any{int64(3)}},
		"m": map[string]any{"key": int64(1), "a b": 2.5},
		"q": []any{map[string]any{"name": "hose"}},
	},
}

func TestExpressions(t *testing.T) {
	for _, c := range []struct {
		src  string
		want Value
	}{
		{`n == 7 and x > 2`, true}, {`n + 1`, int64(8)}, {`n / 2`, 3.5}, {`n % 4`, int64(3)}, {`-n + 2 * 3`, int64(-1)},
		{`x * 2`, 5.0},
		{`7 == 7.0`, true}, {`"a" < "b"`, true}, {`s + "!"`, "fire!"}, {`s contains "ir"`, true},
		{`s startsWith "F"`, false},
		{`s matches "^f.*e$"`, true}, {`s in ["fire", "flood"]`, true}, {`s not in ["flood"]`, true},
		{`"key" in m`, true},
		{`1 in l and "two" in l and not (9 in l)`, true}, {`l[1]`, "two"}, {`l[9]`, nil}, {`l[3][0]`, int64(3)},
		{`m.key`, int64(1)},
		{`m["a b"]`, 2.5}, {`m.none`, nil}, {`q[0].name`, "hose"}, {`len(l) + len(s) + len(m)`, int64(10)},
		{`b ? "yes" : "no"`, "yes"}, {`if n > 9 { 1 } else { 2 }`, int64(2)}, {`y ?? 3`, 3}, {`n ?? 3`, int64(7)},
		{`upper(s) + lower("X") + trim(" y ")`, "FIRExy"}, {`trimPrefix(s, "fi") + trimSuffix(s, "re")`, "refi"},
		{`indexOf("é!", "!")`, int64(1)},
		{`abs(-3) + max(1, 5, 2) - min(2, 1)`, int64(7)}, {`max(1, 2.5)`, 2.5},
		{`floor(2.7) + ceil(2.1) + round(2.5)`, 8.0},
		{`int("42") + int(2.9)`, int64(44)}, {`float("1.5")`, 1.5}, {`string(n) + string(x) + string(b)`, "72.5true"},
		{`n | string()`, "7"},
		{`due > "2026-06-30"`, true}, {`due - date("2026-07-01")`, "8h"},
		{`due + duration("1d")`, "2026-07-02T08:00:00Z"},
		{`due - duration("8h") == date("2026-07-01T02:00:00+02:00")`, true},
		{`duration("1h") + duration("30m") > duration("80m")`, true},
		{`instance.id == "abc"`, true}, {`instance.age >= duration("1h30m")`, true},
		{`instance.age < duration("1h")`, false},
		{`[1, n, "a"]`, []any{int64(1), int64(7), "a"}}, {`5000000000.0`, 5e9}, {`1 < n < 9`, true},
		{`color == "red"`, true}, {`f endsWith ".jpg"`, true},
		// Null is neither true nor false.
		{`y > 1`, nil}, {`y == 1`, nil}, {`y != 1`, nil}, {`not (y == 1)`, nil}, {`y + 1`, nil}, {`y == y`, nil},
		{`y in [1]`, nil}, {`abs(y) > 1`, nil},
		{`y == null`, true}, {`y == nil`, true}, {`null != y`, false}, {`n == null`, false}, {`null == null`, true},
		{`not (n != null)`, false},
		{`y > 1 or b`, true}, {`b or y > 1`, true}, {`y > 1 and not b`, false}, {`not b and y > 1`, false},
		{`y > 1 and b`, nil}, {`y > 1 ? 1 : 2`, nil},
		{`y == null ? 0 : y + 1`, int64(0)}, {`l[2] == null`, true}, {`s contains string(y)`, nil},
	} {
		e, ok := compileText(testScope(), c.src)
		if !ok {
			t.Errorf("%s is refused", c.src)
			continue
		}
		have, err := e.Eval(env)
		if err != nil || !equal(have, c.want) && !(have == nil && c.want == nil) {
			if i, isInt := c.want.(int); err != nil || !isInt || !equal(have, int64(i)) {
				t.Errorf("%s = %v (%T), %v; want %v", c.src, have, have, err, c.want)
			}
		}
	}
}

func TestExpressionErrors(t *testing.T) {
	for _, c := range []struct{ src, want string }{
		{`n / (n - 7)`, "division by zero"}, {`n % (n - 7)`, "division by zero"},
		{`l[1] + 1`, "+ does not fit a string and an integer"},
		{`l[0] and b`, "want booleans, not an integer"}, {`l[1] > 1`, "a string cannot be compared with an integer"},
		{`int(s)`, `"fire" is not a whole number`},
		{`float(s)`, `"fire" is not a number`}, {`date(s) > due`, `"fire" is not a time`},
		{`n * 2000000000 * 2000000000`, "the result is too great"},
		{`int(x * 1e300)`, "the result is too great"}, {`x * 1e308 * 1e308`, "the result is too great"},
		{`m.key.more`, "an integer cannot be read by a string"},
		{`len(l[0])`, "len does not take an integer"}, {`1 in l[0]`, "in wants a list or a map, not an integer"},
	} {
		e, ok := compileText(testScope(), c.src)
		if !ok {
			t.Errorf("%s is refused before it runs", c.src)
			continue
		}
		if v, err := e.Eval(env); err == nil || !strings.Contains(err.Error(), c.want) ||
			!strings.Contains(err.Error(), c.src) {
			t.Errorf("%s = %v, %v; want an error with %q", c.src, v, err, c.want)
		}
	}
}

// Whole numbers have 64 bits everywhere and never wrap around.
func TestArithmeticAtTheEdge(t *testing.T) {
	const top, bottom = int64(1<<63 - 1), int64(-1 << 63)
	for _, c := range []struct {
		op   string
		a, b int64
		want any
	}{
		{"+", top, 1, errOverflow}, {"+", top, -1, top - 1}, {"+", bottom, -1, errOverflow},
		{"+", bottom, top, int64(-1)},
		{"-", bottom, 1, errOverflow}, {"-", top, -1, errOverflow}, {"-", 0, bottom, errOverflow},
		{"-", -1, bottom, top},
		{"*", top, 2, errOverflow}, {"*", bottom, -1, errOverflow}, {"*", bottom, 1, bottom}, {"*", -1, top, -top},
		{"*", 1 << 32, 1 << 31, errOverflow},
		{"*", -(1 << 32), 1 << 31, bottom}, {"*", 0, bottom, int64(0)}, {"%", bottom, -1, int64(0)},
		{"%", -7, 4, int64(-3)}, {"/", top, 0, errZero},
	} {
		v, err := arithmetic[c.op](c.a, c.b)
		if want, isError := c.want.(error); isError && !errors.Is(err, want) ||
			!isError && (err != nil || v != c.want) {
			t.Errorf("%d %s %d = %v, %v; want %v", c.a, c.op, c.b, v, err, c.want)
		}
	}
}

func TestNamesAndAges(t *testing.T) {
	hour := time.Hour
	for _, c := range []struct {
		src   string
		names []DataName
		ages  []time.Duration
	}{
		{`n > 1 and x < n or b`, []DataName{"b", "n", "x"}, nil},
		{`instance.age > duration("1h")`, nil, []time.Duration{hour + 1}},
		{`instance.age >= duration("1h")`, nil, []time.Duration{hour}},
		{`instance.age < duration("1h")`, nil, []time.Duration{hour}},
		{`not (duration("2h") <= instance.age) and instance.age <= duration("1h")`, nil,
			[]time.Duration{hour + 1, 2 * hour}},
		{`m.n == l[0]`, []DataName{"l", "m"}, nil},
	} {
		e, ok := compileText(testScope(), c.src)
		if !ok {
			t.Errorf("%s is refused", c.src)
			continue
		}
		if !slices.Equal(e.Names(), c.names) || !slices.Equal(e.Ages(), c.ages) {
			t.Errorf("%s: names %v, ages %v; want %v, %v", c.src, e.Names(), e.Ages(), c.names, c.ages)
		}
		// Just before each age and at it the comparison differs; in between nothing changes.
		for _, age := range e.Ages() {
			before, err1 := e.Eval(Env{Age: age - 1})
			at, err2 := e.Eval(Env{Age: age})
			if err1 != nil || err2 != nil {
				t.Error(err1, err2)
			}
			if len(e.Ages()) == 1 && before == at {
				t.Errorf("%s does not change at %v", c.src, age)
			}
		}
	}
}

// An expression may be evaluated by many goroutines at once.
func TestEvalConcurrently(t *testing.T) {
	e, ok := compileText(testScope(), `n > 1 and s matches "^f" and len(l) == 4 and due > "2026-01-01"`)
	if !ok {
		t.Fatal("refused")
	}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 100 {
				if v, err := e.Eval(env); v != true || err != nil {
					t.Errorf("%v, %v", v, err)
					return
				}
			}
		})
	}
	group.Wait()
}

// The text of an expression bounds what it costs: the greatest one that is
// accepted is still small, and its result too.
func TestExpressionBounds(t *testing.T) {
	for _, src := range []string{
		strings.Repeat("n + ", MaxExpression) + "n",
		strings.Repeat("n+", maxExprNodes) + "n",
		strings.Repeat("(", MaxExpression+1),
		"n+" + strings.Repeat("n+", MaxExpression/2-2) + "n",
	} {
		if _, ok := compileText(testScope(), src); ok {
			t.Errorf("an expression of %d bytes is accepted", len(src))
		}
	}
	e, ok := compileText(testScope(), "s"+strings.Repeat(" + s", 100))
	if !ok {
		t.Fatal("refused")
	}
	_, err := e.Eval(Env{Data: map[DataName]Value{"s": strings.Repeat("x", MaxValue/50)}})
	if err == nil || !strings.Contains(err.Error(), "at most 65536 are allowed") {
		t.Errorf("a text grew without bounds: %v", err)
	}
}

func TestAllocationExpressions(t *testing.T) {
	s := testScope()
	s.allocation = true
	full := Env{
		Task: &Task{Name: "a", Type: Manual, Role: "crew", Priority: 3},
		Partner: &Candidate{
			Name: "tower", ID: "12D3", Roles: []RoleName{"crew", "chief"}, Capabilities: []Capability{"radio"},
			Availability: 0.9,
		},
		Performers: map[TaskName]string{"b": "tower"},
		Data:       map[DataName]Value{"n": int64(2_000_000)},
	}
	for _, c := range []struct {
		src        string
		want, bare Value // with and without a task, a partner and performers
	}{
		{`task.name == "a" and partner.name == performer("b")`, true, nil},
		{`n > 1000000 and not ("manager" in partner.roles)`, true, nil},
		{`performer("c") == null`, true, true},
		{`"radio" in partner.capabilities and partner.availability >= 0.9 and task.priority == 3`, true, nil},
		{`task.role == "crew" and task.type == "manual" and partner.id startsWith "12"`, true, nil},
	} {
		e, ok := compileText(s, c.src)
		if !ok {
			t.Errorf("%s is refused", c.src)
			continue
		}
		if have, err := e.Eval(full); have != c.want || err != nil {
			t.Errorf("%s = %v, %v; want %v", c.src, have, err, c.want)
		}
		if have, err := e.Eval(Env{}); have != c.bare || err != nil {
			t.Errorf("%s = %v, %v without anything; want %v", c.src, have, err, c.bare)
		}
	}
}

func TestSpelling(t *testing.T) {
	for _, c := range []struct{ src, want string }{
		{`a&&b||!c`, `(a and b) or not c`}, {`a or (b or c)`, `a or b or c`}, {`a and (b or c)`, `a and (b or c)`},
		{`not(a==b)`, `not (a == b)`}, {`(1+2)*3-(4-5)`, `(1 + 2) * 3 - (4 - 5)`}, {`1+(2*3)`, `1 + 2 * 3`},
		{`x==nil`, `x == null`},
		{`'it' + "s"`, `"it" + "s"`}, {`a ? b : (c ? d : e)`, `a ? b : (c ? d : e)`}, {`a?.b`, `a.b`},
		{`a["b"]`, `a.b`}, {`a["b c"]`, `a["b c"]`},
		{`a not in [1,2]`, `not (a in [1, 2])`}, {`- a`, `-a`}, {`2.0`, `2.0`}, {`1e3`, `1000.0`},
		{`x|upper()`, `upper(x)`}, {`(a ?? b) + 1`, `(a ?? b) + 1`},
		{`0x1F + 1_000`, `31 + 1000`}, {`a < b < c`, `a < b and b < c`}, {`if a { 1 } else { 2 }`, `a ? 1 : 2`},
	} {
		tree, mistake := parseExpr(c.src)
		if mistake != nil {
			t.Errorf("%s: %v", c.src, mistake)
			continue
		}
		if have := spell(tree); have != c.want {
			t.Errorf("%s is spelled %s, want %s", c.src, have, c.want)
		}
	}
}

func ExampleDefinition_TopoOrder() {
	d, err := Parse("example", []byte(`
workflow: example
tasks:
  call: {contingency: radio}
  radio: {}
  close: {after: call}
`))
	if err != nil {
		panic(err)
	}
	fmt.Println(d.TopoOrder(), d.Predecessors("close"))
	// Output: [call radio close] [call]
}

// Whatever stands beside what, the one spelling of an expression is one, and is spelled so again.
func TestEachOperatorBesideEachOther(t *testing.T) {
	s := testScope()
	operators := []string{"??", "+", "-", "*", "/", "%", "<", "==", "in", "and", "or"}
	operands := []string{"n", "b", "l", "-n", "not b", "(b ? n : n)"}
	tried := 0
	for _, one := range operators {
		for _, other := range operators {
			for _, a := range operands {
				for _, b := range operands {
					for _, c := range operands {
						for _, src := range []string{
							fmt.Sprintf("(%s %s %s) %s %s", a, one, b, other, c), fmt.Sprintf("%s %s (%s %s %s)", a, one, b, other, c),
						} {
							e, ok := compileText(s, src)
							if !ok {
								continue // of types that do not go together
							}
							tried++
							if again, ok := compileText(s, e.String()); !ok || again.String() != e.String() {
								t.Errorf("%q is spelled %q, which is not read so", src, e)
							}
						}
					}
				}
			}
		}
	}
	if tried < 500 {
		t.Errorf("only %d expressions were tried", tried)
	}
}
