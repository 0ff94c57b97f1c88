package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/mutirao-mesh/mutirao/internal/plain"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/api/apitest"
	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
)

// evil is what a partner would put into every text: a cleared screen, a new
// title, something for the clipboard, a colour by a C1 control, a line that
// overwrites itself, a turned direction, letters that nobody sees, and what the
// program's own sequences look like.
const evil = "\x1b[2J\x1b]0;t\a\x1b]52;c;aGk=\x1b\\\u009b31mx\rok\b\x7f\u202egnp.\u2066\u200f\u061c\u200b\u3164\U000e0041\x1bAAAAAAAAAAAAAAAAAAAAAAAAAA[31m"

// poison adds evil to every text in what an answer points to.
func poison(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.Kind() == reflect.Interface && !v.IsNil() {
			inside := reflect.New(v.Elem().Type()).Elem()
			inside.Set(v.Elem())
			poison(inside)
			v.Set(inside)
		} else if !v.IsNil() {
			poison(v.Elem())
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range v.NumField() {
			if v.Field(i).CanSet() && v.Type().Field(i).Name != "Code" {
				poison(v.Field(i))
			}
		}
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			v.SetBytes([]byte(`{"workflow":"w","doc":` + string(must(json.Marshal(evil))) + `}`))
		} else if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes(append(v.Bytes(), evil...))
		}
		for i := range v.Len() {
			poison(v.Index(i))
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			e := reflect.New(v.Type().Elem()).Elem()
			e.Set(v.MapIndex(k))
			poison(e)
			v.SetMapIndex(k, reflect.Value{})
			v.SetMapIndex(reflect.ValueOf(k.String()+evil).Convert(k.Type()), e)
		}
	case reflect.String:
		v.SetString(v.String() + evil)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// poisoned answers as a fake does, with evil in every text.
func poisoned(fake *apitest.Fake) *apitest.Fake {
	for v := range fields(reflect.ValueOf(fake).Elem()) {
		honest := reflect.ValueOf(v.Interface())
		v.Set(reflect.MakeFunc(v.Type(), func(args []reflect.Value) []reflect.Value {
			out := honest.Call(args)
			for i, o := range out {
				p := reflect.New(o.Type()).Elem()
				p.Set(o)
				if err, ok := o.Interface().(error); ok {
					var shown *api.Error
					if errors.As(err, &shown) {
						poison(reflect.ValueOf(shown))
					}
				} else {
					poison(p)
				}
				out[i] = p
			}
			return out
		}))
	}
	return fake
}

// fields are the functions of a fake that are set.
func fields(v reflect.Value) func(func(reflect.Value) bool) {
	return func(yield func(reflect.Value) bool) {
		for i := range v.NumField() {
			switch f := v.Field(i); {
			case f.Kind() == reflect.Struct:
				fields(f)(yield)
			case f.Kind() == reflect.Func && !f.IsNil() && !yield(f):
				return
			}
		}
	}
}

// Whatever partners say, and however it is shown: the terminal gets nothing from
// them but visible characters, programs get documents that say the same.
func TestNothingOfOthersSteersTheTerminal(t *testing.T) {
	dir := t.TempDir()
	s, err := httpapi.Serve(dir, "127.0.0.1:0", poisoned(newWorld().service()), httpapi.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(t.Context())
	colour := regexp.MustCompile(`\x1b\[(0|1|2|31|32|33|36)m`)
	for _, command := range []string{
		"status -v", "partners -v", "invite", "workflow list", "workflow show fire-call", "workflow show nothing",
		"workflow remove fire-call",
		"workflow diagram fire-call", "workflow diagram fire-call --format dot", "start fire-call --input a=b",
		"start nothing", "start bad --wait",
		"instances --all", "show 3f9a", "log -v 3f9a", "diagram 3f9a --format mermaid", "cancel 3f9a",
		"task complete 3f9a unknown", "show zzz", "zzz\u202e",
	} {
		for _, format := range []string{"text", "text --color always", "json", "yaml"} {
			var stdout, stderr bytes.Buffer
			run(t.Context(), append(strings.Fields(command), strings.Fields("--dir "+dir+" -o "+format)...), &stdout,
				&stderr)
			said := stdout.String() + stderr.String()
			if format == "text --color always" {
				said = colour.ReplaceAllString(said, "")
			}
			if !plain.IsPlain(said) {
				t.Errorf("%s -o %s says %q", command, format, said)
			}
			if !strings.Contains(said, "202e") {
				t.Errorf("%s -o %s hides what it was told: %s", command, format, said)
			}
			var v any
			switch {
			case stdout.Len() == 0 || strings.HasPrefix(format, "text"):
				continue
			case format == "json":
				err = json.Unmarshal(stdout.Bytes(), &v)
			default:
				err = yaml.Unmarshal(stdout.Bytes(), &v)
			}
			if b, _ := json.Marshal(v); err != nil || !strings.Contains(string(b), `\u001b[2J`) {
				t.Errorf("%s -o %s: %v\n%s", command, format, err, stdout.String())
			}
		}
	}
}

// Own sequences pass, also several in one text; nobody else's do, wherever a
// text is cut.
func FuzzTerminal(f *testing.F) {
	f.Add("a", "b")
	f.Add(evil, "31m")
	f.Add("[0m\x1b", "\xff\x9b")
	f.Fuzz(func(t *testing.T, a, b string) {
		var out bytes.Buffer
		text := a + control("[31m") + b + control("[0m") + a
		if n, err := io.WriteString(terminal{&out}, text); n != len(text) || err != nil {
			t.Fatal(n, err)
		}
		want := plain.Text(a) + "\x1b[31m" + plain.Text(b) + "\x1b[0m" + plain.Text(a)
		if out.String() != want {
			t.Errorf("%q, %q:\n got %q\nwant %q", a, b, out.String(), want)
		}
	})
}

// Only main knows stdout and stderr; everything else is given a terminal.
func TestOnlyMainKnowsTheStandardStreams(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	around := regexp.MustCompile(`os\.Std(out|err)|fmt\.Print|\bprintln\(`)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") || file == "main.go" {
			continue
		}
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if found := around.Find(src); found != nil {
			t.Errorf("%s uses %s: write to the command's ui", file, found)
		}
	}
}

// The moments in a node's texts are shown in the zone of their reader, as all other
// times are.
func TestTimesInTexts(t *testing.T) {
	was := time.Local
	defer func() { time.Local = was }()
	time.Local = time.FixedZone("", -3*60*60)
	for text, want := range map[string]string{
		"set aside since 2025-06-01T12:00:00Z: unreadable": "set aside since 2025-06-01T09:00:00-03:00: unreadable",
		"2025-06-01T01:30:00Z":                             "2025-05-31T22:30:00-03:00",
		"2025-06-01T01:30:00.876Z":                         "2025-06-01T01:30:00.876Z",
		"Zwanzig Buchstaben !":                             "Zwanzig Buchstaben !",
		"it is 2025-06-01T01:30:00Z":                       "it is 2025-05-31T22:30:00-03:00",
		"x2025-06-01T12:00:00Z, 2025-99-01T12:00:00Z":      "x2025-06-01T12:00:00Z, 2025-99-01T12:00:00Z",
	} {
		if got := oneLine(text); got != want {
			t.Errorf("%q reads %q, want %q", text, got, want)
		}
	}
}
