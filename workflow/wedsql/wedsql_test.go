package wedsql

import (
	"errors"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// TestParse prints what scripts become in the native format, or their mistakes. A
// "predicate" is one condition over the attributes of the argument.
func TestParse(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			script := d.Input
			if d.Cmd == "predicate" {
				var names string
				d.ScanArgs(t, "of", &names)
				script = "INSERT INTO wed_attr (aname) VALUES ('" + strings.ReplaceAll(names, "/", "'),('") + "');\n" +
					"INSERT INTO wed_trig (tgname, trname, cname, cpred) VALUES ('t', 't', 'c', $$\n" + d.Input +
					"$$);\n"
			}
			doc, err := Parse("rental.sql", []byte(script))
			if err != nil {
				return err.Error()
			}
			native := doc.ToYAML()
			def := mustBeNative(t, native)
			if d.Cmd == "predicate" {
				var out strings.Builder
				for _, a := range def.Data {
					out.WriteString(string(a.Name) + ": " + string(a.Type) + "\n")
				}
				if c := def.Conditions; len(c) > 0 {
					return out.String() + c[0].Expr.String()
				}
				return out.String() + "never"
			}
			return string(native)
		})
	})
}

// mustBeNative checks that the native parser takes a translation.
func mustBeNative(t *testing.T, yaml []byte) *workflow.Definition {
	t.Helper()
	def, err := workflow.Parse("translated.yaml", yaml)
	if err != nil {
		t.Fatalf("the native parser refuses the translation:\n%v\n%s", err, yaml)
	}
	return def
}

// TestWhatComesFromStdinHasNoName: the sign that stands for it on a command line is none.
func TestWhatComesFromStdinHasNoName(t *testing.T) {
	doc, err := Parse("-", []byte(trigger("TRUE")))
	if err != nil {
		t.Fatal(err)
	}
	if native := string(doc.ToYAML()); !strings.Contains(native, "workflow: flow\n") || strings.Contains(native, "label") {
		t.Errorf("got\n%s", native)
	}
}

func TestSizesAreLimited(t *testing.T) {
	for _, c := range []struct{ script, want string }{
		{strings.Repeat(" ", MaxSize+1), "more than 1048576 bytes"},
		{trigger(strings.Repeat("(", 3000)), "at most 100 brackets"},
		{trigger(strings.Repeat("not ", 100_000) + "a"), "more than 4000 words"},
		{trigger("a" + strings.Repeat(" = 1 or a", 900) + " = 1"), "too long"},
		{trigger("a = '" + strings.Repeat("x", 5000) + "'"), "too long"},
		{strings.Repeat("€ ", 250_000), "does not belong here"},
		{"INSERT INTO wed_attr (aname) VALUES ('\xff')", "UTF-8"},
	} {
		_, err := Parse("big.sql", []byte(c.script))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %.200v, want %s", err, c.want)
		}
	}
}

// trigger is a script with one predicate over the attribute a.
func trigger(predicate string) string {
	return "INSERT INTO wed_attr (aname) VALUES ('a'); INSERT INTO wed_trig (tgname, trname, cpred) VALUES ('t', 'u', $$" + predicate + "$$);"
}

func FuzzParse(f *testing.F) {
	for _, p := range []string{
		"a = 'x' and not (b <> 3 or c is null)", "a like 'x%_!%' escape '!' or b between -1 and 2.5e3",
		"c is not true is null",
		"a in ('x', null, 'y') or (b > 1) = c", "a is not distinct from d and \"B\" < 99999999999", "c < (a = 'x')",
		"1 = 1 or null",
	} {
		f.Add("INSERT INTO wed_attr (aname, adv) VALUES ('a', 'it''s'), ('b', 3), ('c', NULL), ('d', E'\\n\\u2028'), ('B', '7');\n"+
			"INSERT INTO wed_trig (tgname, trname, cname, cpred, timeout, enabled) VALUES ('on a', 'set', 'a', $$", p,
			"$$, '3d18h', false);\n"+
				"INSERT INTO wed_trig (cpred, cfinal) VALUES ('a = ''x''', True); INSERT INTO wed_flow (a, b) VALUES ('q', 4); INSERT INTO wed_flow DEFAULT VALUES;")
	}
	f.Add("BEGIN; -- c\n/* a /* b */ */ \\c db\nSELECT 1; INSERT INTO public.wed_trig (trname, cpred, tgname) VALUES ('", "x", "', $q$true$q$, 'y') RETURNING *")
	f.Fuzz(func(t *testing.T, before, predicate, after string) {
		doc, err := Parse("fuzz.sql", []byte(before+predicate+after))
		var problems workflow.Errors
		switch {
		case err == nil && len(doc.Triggers) == 0:
			t.Fatal("a script without triggers was accepted")
		case err == nil:
			mustBeNative(t, doc.ToYAML())
			for _, c := range doc.Commands() {
				if strings.ContainsAny(c, "\n\r") {
					t.Fatalf("a command of several lines: %q", c)
				}
			}
		case !errors.As(err, &problems) || len(problems) == 0:
			t.Fatalf("not a list of problems: %v", err)
		}
	})
}
