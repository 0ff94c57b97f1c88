package study

import (
	_ "embed"
	"reflect"
)

// The published scenarios, as files.
var (
	//go:embed five.yaml
	fiveFile []byte
	//go:embed three.yaml
	threeFile []byte
	//go:embed selective.yaml
	selectiveFile []byte
)

// Builtins are the names of the published scenarios, in the order of the source.
func Builtins() []string { return []string{"five", "three", "selective"} }

// Builtin is a published scenario: five resources per role, three of them, or
// five with suitabilities that favour Selective. nil when none has that name.
func Builtin(name string) *Scenario {
	src := map[string][]byte{"five": fiveFile, "three": threeFile, "selective": selectiveFile}[name]
	if src == nil {
		return nil
	}
	s, err := Parse(name+".yaml", src, nil)
	if err != nil {
		panic(err) // it is ours
	}
	return s
}

// Five is the published scenario that a study runs when it is given none.
func Five() *Scenario { return Builtin("five") }

// isBuiltin reports whether a scenario is the published one of its name. A file
// of the same name may say something else.
func (s *Scenario) isBuiltin() bool {
	b := Builtin(s.Name)
	return b != nil && reflect.DeepEqual(s, b)
}
