package configs

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// File is the name of the configuration in a node's folder.
const File = "config.yaml"

// Load reads and checks the configuration in a node's folder. No file means
// the defaults. Mistakes in the file are an [Error].
func Load(dir string) (Config, error) {
	path := filepath.Join(dir, File)
	src, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Default(LAN), nil
	}
	if err != nil {
		return Config{}, fmt.Errorf("read the node's configuration: %w", err)
	}
	return Parse(path, src)
}

// Parse reads and checks a configuration; name stands for the file in errors.
// Unknown keys are mistakes. Errors are an [Error].
func Parse(name string, src []byte) (Config, error) {
	var head struct {
		Preset Preset `yaml:"preset"`
	}
	if err := decode(src, &head, false); err != nil {
		return Config{}, located(name, src, err)
	}
	c := Default(head.Preset)
	if err := decode(src, &c, true); err != nil {
		return Config{}, located(name, src, err)
	}
	if wrong := c.mistakes(); len(wrong) > 0 {
		return Config{}, placed(name, src, wrong)
	}
	return c, nil
}

func decode(src []byte, into any, strict bool) error {
	if len(bytes.TrimSpace(src)) == 0 {
		return nil
	}
	opts := []yaml.DecodeOption{yaml.CustomUnmarshaler(func(d *time.Duration, b []byte) (err error) {
		text := strings.TrimSpace(string(b))
		if *d, err = workflow.ParseDuration(strings.Trim(text, `"'`)); err != nil {
			return &durationError{text, err}
		}
		return nil
	})}
	if strict {
		opts = append(opts, yaml.Strict())
	}
	return workflow.GuardYAML(func() error { return yaml.UnmarshalWithOptions(src, into, opts...) })
}

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

// in finds the line and column, and the key, of the first such text in a source.
func (e *durationError) in(src []byte) (line, col int, key string) {
	for text := range strings.Lines(string(src)) {
		line++
		key, value, ok := strings.Cut(text, ":")
		value, _, _ = strings.Cut(value, " #")
		key = strings.TrimSpace(key)
		if ok && strings.TrimSpace(value) == e.text && !strings.HasPrefix(key, "#") {
			return line, strings.Index(text, e.text) + 1, key
		}
	}
	return 0, 0, ""
}
