package pdl

import (
	"errors"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"golang.org/x/text/encoding/charmap"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// TestParse prints what each workflow of a file becomes in the native format.
func TestParse(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			doc, err := Parse("office.pdl", []byte(d.Input))
			if err != nil {
				return err.Error()
			}
			var b strings.Builder
			for i := range doc.Workflows {
				native := doc.ToYAML(&doc.Workflows[i])
				mustBeNative(t, native)
				b.Write(native)
			}
			if len(doc.Workflows) == 0 {
				native := doc.Pieces().Native
				if _, err := workflow.ParsePieces("translated.yaml", native); err != nil {
					t.Fatalf("the native parser refuses the translation:\n%v\n%s", err, native)
				}
				b.Write(native)
			}
			return b.String()
		})
	})
}

// mustBeNative checks that the native parser takes a translation.
func mustBeNative(t *testing.T, yaml []byte) {
	t.Helper()
	if _, err := workflow.Parse("translated.yaml", yaml); err != nil {
		t.Fatalf("the native parser refuses the translation:\n%v\n%s", err, yaml)
	}
}

func TestOldFilesAreRead(t *testing.T) {
	src := `WORKFLOW w { TASK a : m { DESCRIPTION "ligação" } } TASK m { TYPE MANUAL; }`
	latin, err := charmap.Windows1252.NewEncoder().String(src)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{src, latin, "\uFEFF" + src, strings.ReplaceAll(src, " ", "\r\n")} {
		doc, err := Parse("w.pdl", []byte(file))
		if err != nil || doc.Workflows[0].Activities[0].Description != "ligação" {
			t.Errorf("%q: %+v, %v", file, doc, err)
		}
	}
}

func TestSizeAndDepthAreLimited(t *testing.T) {
	_, err := Parse("big.pdl", make([]byte, MaxSize+1))
	if err == nil || !strings.Contains(err.Error(), "more than 1048576 bytes") {
		t.Errorf("got %v", err)
	}
	deep := `WORKFLOW w { TASK a : m { DEPENDS ` + strings.Repeat("and(", 10_000) +
		`a -> READY; } } TASK m { TYPE MANUAL; }`
	_, err = Parse("deep.pdl", []byte(deep))
	if err == nil || !strings.Contains(err.Error(), "at most 100 operators") {
		t.Errorf("got %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`WORKFLOW w { STRING s { VALUE "x"; } TASK a : m {IN_CONTEXT s;} SUB-WORKFLOW b : v {
		DEPENDS or(a->FAIL, and(a -> READY)); } } TASK m { TYPE MANUAL; }`))
	f.Add([]byte(`workflow and { number not { value 1e300; } query true { database "\u2028"; expression "x"; } file f { }
		task noop : m { depends; } } task m { type automatic; application set; } application set { size 12KB; hosts "a b", "a-b"; }`))
	f.Add([]byte(`TASK m { DEADLINE 9 DAYS RETRIES 3 /* no } end`))
	f.Fuzz(func(t *testing.T, src []byte) {
		doc, err := Parse("fuzz.pdl", src)
		var problems workflow.Errors
		switch {
		case err == nil && len(doc.Workflows)+len(doc.Models)+len(doc.Applications) == 0:
			t.Fatal("a file with nothing in it was accepted")
		case err == nil && len(doc.Workflows) == 0:
			if _, err := workflow.ParsePieces("translated.yaml", doc.Pieces().Native); err != nil {
				t.Fatalf("the native parser refuses the translation:\n%v\n%s", err, doc.Pieces().Native)
			}
		case err == nil:
			for i := range doc.Workflows {
				mustBeNative(t, doc.ToYAML(&doc.Workflows[i]))
			}
		case !errors.As(err, &problems) || len(problems) == 0:
			t.Fatalf("not a list of problems: %v", err)
		}
	})
}
