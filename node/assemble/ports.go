package assemble

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// portsFile remembers, one a line, where the node listened: partners who were
// away dial it there first, so it takes the same ports again if they are free.
const portsFile = "listening"

func loadPorts(dir string) ([]string, error) {
	b, err := os.ReadFile(filepath.Join(dir, portsFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("where the node listened before: %w", err)
	}
	return strings.Fields(string(b)), nil
}

func savePorts(dir string, before, now []string) error {
	if slices.Equal(before, now) {
		return nil
	}
	if err := os.WriteFile(filepath.Join(dir, portsFile), []byte(strings.Join(now, "\n")+"\n"), 0o600); err != nil {
		return fmt.Errorf("remember where the node listens: %w", err)
	}
	return nil
}
