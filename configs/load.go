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
// the defaults. Errors name the file and, where there is one, line and column.
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
// Unknown keys are mistakes.
func Parse(name string, src []byte) (Config, error) {
	var head struct {
		Preset Preset `yaml:"preset"`
	}
	if err := decode(src, &head, false); err != nil {
		return Config{}, located(name, err)
	}
	c := Default(head.Preset)
	if err := decode(src, &c, true); err != nil {
		return Config{}, located(name, err)
	}
	if err := c.Validate(); err != nil {
		return Config{}, fmt.Errorf("%s:\n%w", name, err)
	}
	return c, nil
}

func decode(src []byte, into any, strict bool) (err error) {
	// The YAML library panics on some tags in front of lists (goccy/go-yaml
	// 1.19.2); a configuration has no use for tags, so a message will do.
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("this YAML cannot be read: leave out tags such as !name (%v)", p)
		}
	}()
	if len(bytes.TrimSpace(src)) == 0 {
		return nil
	}
	opts := []yaml.DecodeOption{yaml.CustomUnmarshaler(func(d *time.Duration, b []byte) (err error) {
		*d, err = workflow.ParseDuration(strings.Trim(strings.TrimSpace(string(b)), `"'`))
		return err
	})}
	if strict {
		opts = append(opts, yaml.Strict())
	}
	return yaml.UnmarshalWithOptions(src, into, opts...)
}

// located puts file, line and column before a YAML error.
func located(name string, err error) error {
	var y yaml.Error
	if errors.As(err, &y) && y.GetToken() != nil {
		p := y.GetToken().Position
		return fmt.Errorf("%s:%d:%d: %s", name, p.Line, p.Column, y.GetMessage())
	}
	return fmt.Errorf("%s: %w", name, err)
}
