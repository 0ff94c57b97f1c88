package lxpdl

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"golang.org/x/text/encoding/charmap"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// TestParse prints a process, and what it becomes in the native format.
func TestParse(t *testing.T) {
	datadriven.RunTest(t, "testdata/parse.txt", func(t *testing.T, d *datadriven.TestData) string {
		p, err := Parse("office.lxpdl", []byte(d.Input))
		// Some editors begin a file so, which is no part of its text.
		if _, marked := Parse("office.lxpdl", []byte("\ufeff"+d.Input)); fmt.Sprint(marked) != fmt.Sprint(err) {
			t.Errorf("with a byte-order mark: %v, without one: %v", marked, err)
		}
		if err != nil {
			return err.Error()
		}
		var b strings.Builder
		for _, task := range p.Tasks {
			fmt.Fprintf(&b, "%+v\n", task)
		}
		fmt.Fprintf(&b, "start %q, end %q\n%v\n\n%s", p.Start, p.End, p.Transitions, p.ToYAML())
		mustBeNative(t, p.ToYAML())
		return b.String()
	})
}

// mustBeNative checks that the native parser takes a translation.
func mustBeNative(t *testing.T, yaml []byte) {
	t.Helper()
	if _, err := workflow.Parse("translated.yaml", yaml); err != nil {
		t.Fatalf("the native parser refuses the translation:\n%v\n%s", err, yaml)
	}
}

func TestCharacterSets(t *testing.T) {
	latin, err := charmap.ISO8859_1.NewEncoder().
		String(`<?xml version="1.0" encoding="ISO-8859-1"?><lxpdl><tasks><task name="início"/><start name="início"/></tasks></lxpdl>`)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Parse("a.lxpdl", []byte(latin))
	if err != nil || p.Tasks[0].Name != "início" {
		t.Errorf("got %+v, %v", p, err)
	}
}

func TestSizeIsLimited(t *testing.T) {
	_, err := Parse("big.lxpdl", make([]byte, MaxSize+1))
	if err == nil || !strings.Contains(err.Error(), "more than 1048576 bytes") {
		t.Errorf("got %v", err)
	}
}

func TestNameIsTheFileName(t *testing.T) {
	src := []byte(`<lxpdl><tasks><task name="A"/><start name="A"/></tasks></lxpdl>`)
	for file, want := range map[string]string{
		"a.lxpdl": "a", "dir/b.c.xml": "b.c", `C:\x\d.lxpdl`: "d", "": "", "-": "",
	} {
		p, err := Parse(file, src)
		if err != nil || p.Name != want {
			t.Errorf("%q: %+v, %v, want %q", file, p, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`<lxpdl><tasks><task name="A" time="1"><role name="r"/></task><task name="B"/><start name="A"/></tasks><transitions><transition source="A" destination="B"/></transitions></lxpdl>`))
	f.Add([]byte(`<lxpdl><tasks><task name="A"/><task name="B"/><task name="C"/><start name="A"/></tasks><transitions><transition source="A" destination="B"/><transition source="B" destination="C"/><transition source="B" destination="B"/><transition source="C" destination="A"/></transitions></lxpdl>`))
	f.Add([]byte(`<!DOCTYPE l [<!ENTITY a "b">]><lxpdl><tasks><task name="&a;"/></tasks></lxpdl>`))
	f.Add([]byte(`<?xml version="1.0" encoding="latin1"?><lxpdl/>`))
	f.Fuzz(func(t *testing.T, src []byte) {
		p, err := Parse("fuzz.lxpdl", src)
		var problems workflow.Errors
		switch {
		case err == nil && len(p.Tasks) == 0:
			t.Fatal("a process without tasks was accepted")
		case err == nil:
			mustBeNative(t, p.ToYAML())
		case !errors.As(err, &problems) || len(problems) == 0:
			t.Fatalf("not a list of problems: %v", err)
		}
	})
}
