package wedxml

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// TestParse prints what each flow of a file becomes in the native format, or the mistakes.
func TestParse(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			doc, err := Parse("rental.xml", []byte(d.Input))
			// Some editors begin a file so, which is no part of its text.
			if _, marked := Parse("rental.xml", []byte("\ufeff"+d.Input)); fmt.Sprint(marked) != fmt.Sprint(err) {
				t.Errorf("with a byte-order mark: %v, without one: %v", marked, err)
			}
			if err != nil {
				return err.Error()
			}
			var b strings.Builder
			for i := range doc.Flows {
				native := doc.ToYAML(&doc.Flows[i])
				mustBeNative(t, native)
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

func TestSizeIsLimited(t *testing.T) {
	_, err := Parse("big.xml", make([]byte, MaxSize+1))
	if err == nil || !strings.Contains(err.Error(), "more than 1048576 bytes") {
		t.Errorf("got %v", err)
	}
	deep := `<WED-flow-initial-schema><WED-conditions><Condition Name="c"><Predicate Id="p">a=1</Predicate><Expression>` +
		strings.Repeat("( ", 1000) + `p</Expression></Condition></WED-conditions></WED-flow-initial-schema>`
	_, err = Parse("deep.xml", []byte(deep))
	if err == nil || !strings.Contains(err.Error(), "at most 100 brackets") {
		t.Errorf("got %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`<WED-flow-initial-schema><WED-attributes><Attribute Name="a" Type="int"/><Attribute Name="b b" Type="string"/></WED-attributes>
		<WED-conditions><Condition Name="c"><Predicate Id="1">a &gt; 3</Predicate><Predicate Id="2">b b != null</Predicate><Expression>1 AND NOT (2 OR 1)</Expression></Condition></WED-conditions>
		<WED-transitions><Transition Name="set"><UpdatedAttribute AttrName="bb"/></Transition></WED-transitions>
		<WED-compensations><Compensation Name="back" ForWedTransition="set"/></WED-compensations>
		<WED-flows><Flow Name="f" FinalStateCondName="c"><Trigger CondName="c" TransName="set" Period="3d"/></Flow></WED-flows>
		<AWICs><Constraint CondName="c"/></AWICs></WED-flow-initial-schema>`))
	f.Add([]byte(`<!DOCTYPE l [<!ENTITY a "b">]><WED-flow-initial-schema>&a;</WED-flow-initial-schema>`))
	f.Fuzz(func(t *testing.T, src []byte) {
		doc, err := Parse("fuzz.xml", src)
		var problems workflow.Errors
		switch {
		case err == nil && len(doc.Flows) == 0:
			t.Fatal("a file without flows was accepted")
		case err == nil:
			for i := range doc.Flows {
				mustBeNative(t, doc.ToYAML(&doc.Flows[i]))
			}
		case !errors.As(err, &problems) || len(problems) == 0:
			t.Fatalf("not a list of problems: %v", err)
		}
	})
}
