package workflow

import (
	"strings"
	"testing"
)

func TestFilesAreWrittenInOneWay(t *testing.T) {
	f := File{Name: "plano (2).pdf", Size: 1 << 20, Root: [32]byte{1, 2, 255}}
	back, err := ParseFile(f.String())
	if err != nil || back != f {
		t.Fatalf("%v became %+v, %v", f, back, err)
	}
	root := strings.Repeat("ab", 32)
	for _, bad := range []string{
		"", "file:", "plan.pdf", "file:" + root + ":1", "file:" + root[:62] + ":1:a",
		"file:" + strings.ToUpper(root) + ":1:a",
		"file:" + root + ":01:a", "file:" + root + ":-1:a", "file:" + root + ":99999999999:a", "file:" + root + ":1:",
		"file:" + root + ":1:a/b", `file:` + root + `:1:a\b`, "file:" + root + ":1:..", "file:" + root + ":1:a\nb",
		"file:" + root + ":1:a\u202eb", "file:" + root + ":1:" + strings.Repeat("a", MaxFileName+1),
	} {
		if f, err := ParseFile(bad); err == nil {
			t.Errorf("%q was read as %+v", bad, f)
		}
	}
}

func FuzzParseFile(f *testing.F) {
	f.Add("file:" + strings.Repeat("0", 64) + ":12:a:b.txt")
	f.Fuzz(func(t *testing.T, s string) {
		if file, err := ParseFile(s); err == nil && file.String() != s {
			t.Fatalf("%q was read as %q", s, file)
		}
	})
}
