package workflow_test

import (
	"strings"
	"testing"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// A condition that somebody gives while an instance runs is refused with what is wrong with it, where, and what may be
// meant, however long it is.
func TestAWrongConditionSaysWhere(t *testing.T) {
	d, err := workflow.Parse("f.yaml", []byte(`
workflow: ty
data: {status: {type: string}, n: {type: integer}}
tasks: {x: {when: n == 0, repeat: true, type: manual, out: [n, status]}}
final: n == 2
`))
	if err != nil {
		t.Fatal(err)
	}
	for src, want := range map[string]string{
		`statu == "x"`:              `"statu == \"x\"" is no condition over the data of ty: at its character 1: unknown name "statu" (did you mean "status"?)`,
		`n ==`:                      `at its character 4: not an expression: it ends too early`,
		`instance.age > 5s`:         `not an expression: 5s is no number (write a duration as duration("5s"))`,
		`instance.age > 1h30m`:      `not an expression: 1h30m is no number (write a duration as duration("1h30m"))`,
		`n > 5x`:                    `not an expression: a number in it cannot be read (write for example 12 or 0.5)`,
		`n == "1"`:                  `at its character 3: an integer is never equal to a string`,
		`n`:                         `at its character 1: a condition must be a boolean, this is an integer (compare it with something)`,
		"status < \"é<\"\n and m":   `at its character 20: unknown name "m" (did you mean "n"?)`,
		strings.Repeat("n", 70_000): `nn…" is no condition`,
	} {
		_, err := d.ParseCondition(src)
		if err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 400 {
			t.Errorf("%.40q: %.500v, want %q", src, err, want)
		}
	}
	if _, err := d.ParseCondition(`status == "é" and n < 3`); err != nil {
		t.Error(err)
	}
}
