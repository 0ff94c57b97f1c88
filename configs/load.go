package configs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// File is the name of the configuration in a node's folder.
const File = "config.yaml"

// Load reads and checks the configuration in a node's folder, with the files that it
// names. No file means the defaults. Mistakes in the file are an [Error].
func Load(dir string) (Config, error) {
	path := filepath.Join(dir, File)
	src, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(path); err == nil {
			return Config{}, &Error{[]string{
				path + ": it is a link to a file that is not there: mend the link, or remove it, which leaves all as by default",
			}}
		}
		return Default(LAN), nil
	}
	if info, statErr := os.Stat(path); err != nil && statErr == nil && info.IsDir() {
		return Config{}, &Error{[]string{
			path + ": it is a folder, and must be a file: move it away, which leaves all as by default",
		}}
	}
	if e := (*Error)(nil); errors.As(err, &e) {
		return Config{}, e
	}
	if err != nil {
		return Config{}, fmt.Errorf("read the node's configuration: %w", err)
	}
	c, err := Parse(path, src)
	if err != nil {
		return c, err
	}
	if wrong := c.fileMistakes(dir); len(wrong) > 0 {
		return Config{}, placed(path, src, wrong)
	}
	return c, nil
}

// maxFile bounds the configuration, in bytes: a link may lead to a device, or to a film.
const maxFile = 1 << 20

// readFile reads a configuration, and no more than one can have.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	src, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(src) > maxFile {
		return nil, &Error{[]string{fmt.Sprintf("%s: it has more than %d bytes, which no configuration needs: "+
			"write it again, or remove it, which leaves all as by default", path, maxFile)}}
	}
	return src, err
}

// Parse reads and checks a configuration; name stands for the file in errors.
// Unknown keys are mistakes. Errors are an [Error].
func Parse(name string, src []byte) (Config, error) {
	c, err := parse(src, func(into any, opts ...yaml.DecodeOption) error {
		return workflow.GuardYAML(func() error { return yaml.UnmarshalWithOptions(src, into, opts...) })
	})
	if err != nil || hasFraction(src) {
		return Config{}, formless(name, src, err)
	}
	if wrong := c.mistakes(); len(wrong) > 0 {
		return Config{}, placed(name, src, wrong)
	}
	return c, nil
}

// parse decodes a configuration with the defaults of its preset. If the preset cannot be
// read, that is among the mistakes of the whole.
func parse(src []byte, decode func(into any, opts ...yaml.DecodeOption) error) (Config, error) {
	if len(bytes.TrimSpace(src)) == 0 {
		return Default(""), nil
	}
	var head struct {
		Preset Preset `yaml:"preset"`
	}
	_ = decode(&head, durations)
	c := Default(head.Preset)
	return c, decode(&c, durations, yaml.Strict())
}

// durations reads durations as they are written.
var durations = yaml.CustomUnmarshaler(func(d *time.Duration, b []byte) (err error) {
	text := strings.TrimSpace(string(b))
	if *d, err = workflow.ParseDuration(strings.Trim(text, `"'`)); err != nil {
		return &durationError{text, err}
	}
	return nil
})

// noTags is what to say where a tag is why the YAML library cannot read a text
// (goccy/go-yaml 1.19.2: some tags in front of lists).
const noTags = "tags have no meaning here: leave them out, and put a text that begins with ! in quotes"

// durationError is a mistake in a duration, as it is written. The YAML library does
// not say where.
type durationError struct {
	text string
	err  error
}

func (e *durationError) Error() string { return e.err.Error() }

// in finds the first value of a mapping that is written so.
func (e *durationError) in(n ast.Node, above string) (slip, bool) {
	for _, v := range valuesOf(n) {
		key, tk := above+v.Key.GetToken().Value, v.Value.GetToken()
		if kind := collection(v.Value); kind != "" && above != "applications." && isDuration(v.Key.GetToken().Value) {
			return slip{
				tk.Position.Line, tk.Position.Column,
				key + ": want a duration such as 90s, 15m, 1h30m or 3d, and not a " + kind,
			}, true
		}
		if tk.Value == strings.Trim(e.text, `"'`) {
			return slip{tk.Position.Line, tk.Position.Column, key + ": " + e.Error()}, true
		}
		if found, ok := e.in(v.Value, key+"."); ok {
			return found, true
		}
	}
	return slip{}, false
}

// collection is what a value is that has several; empty: it is a single one.
func collection(n ast.Node) string {
	switch n.(type) {
	case *ast.SequenceNode:
		return "list"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "mapping"
	}
	return ""
}

// isDuration reports whether a key has a duration.
func isDuration(key string) bool {
	return slices.ContainsFunc(structs, func(t reflect.Type) bool {
		for i := range t.NumField() {
			if f := t.Field(i); yamlKey(f) == key {
				return f.Type == reflect.TypeFor[time.Duration]()
			}
		}
		return false
	})
}
