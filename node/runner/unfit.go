package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Unfit says of each application that cannot be run why: its program does not exist
// or cannot be executed, or its folder is missing. dir is the node's folder. What a
// program or a server will say is not asked.
func Unfit(apps map[workflow.ApplicationName]configs.Application, dir string) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(apps)) {
		if a := apps[name]; a.URL == "" && !a.Worker {
			if err := newCommand(a, dir).fit(); err != nil {
				out = append(out, fmt.Sprintf("%s: %v", name, err))
			}
		}
	}
	return out
}

// fit returns why a command cannot be begun.
func (c *command) fit() error {
	if info, err := os.Stat(c.dir); err != nil {
		return fmt.Errorf("its working folder cannot be used: %w", err)
	} else if !info.IsDir() {
		return fmt.Errorf("its working folder %s is none", c.dir)
	}
	program := c.Command[0]
	if filepath.Base(program) != program && !filepath.IsAbs(program) {
		program = filepath.Join(c.dir, program) // a program with a path is looked for from its folder
	}
	_, err := exec.LookPath(program)
	switch {
	case errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no program %s", program)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s may not be run: it is no program, or not for this user", program)
	case err != nil:
		return err
	}
	return nil
}
