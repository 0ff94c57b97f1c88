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

// The files that remember where the node listened, one address a line, so that it
// takes the same ports again if they are free.
const (
	meshPorts = "listening"     // for partners, which dial it there first when they were away
	apiPorts  = "listening-api" // for programs and browsers
)

// usualAPIPort is the API's first choice where the configuration leaves it open.
const usualAPIPort = "7878"

// apiChoices are the ports for the API, the first choice first: the one that this node had when it was
// started first, which another may have for a moment, what it had in its place, and the usual one. So of several
// nodes of one machine each keeps its own, in whatever order they are started.
func apiChoices(before []string) []string {
	if slices.Contains(before, usualAPIPort) {
		return before
	}
	return append(slices.Clone(before), usualAPIPort)
}

// apiRemembered is what is remembered once the API is at a port: the first that it had, and what it has in
// place of that.
func apiRemembered(before []string, port string) []string {
	switch {
	case len(before) == 0:
		return []string{port}
	case slices.Contains(before, port):
		return before
	}
	return []string{before[0], port}
}

// ran reports whether the node of a folder ran before: it remembers where it listened.
func ran(dir string) bool { return there(dir, meshPorts) }

func loadPorts(dir, file string) ([]string, error) {
	b, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("where the node listened before: %w", err)
	}
	return strings.Fields(string(b)), nil
}

func savePorts(dir, file string, before, now []string) error {
	if slices.Equal(before, now) {
		return nil
	}
	if err := os.WriteFile(filepath.Join(dir, file), []byte(strings.Join(now, "\n")+"\n"), 0o600); err != nil {
		return fmt.Errorf("remember where the node listens: %w", err)
	}
	return nil
}
