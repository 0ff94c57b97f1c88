package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/workflow"
)

const (
	grace       = 2 * time.Second // between asking a command to end and killing it
	stderrKept  = 4 << 10         // bytes
	reasonLines = 5               // of stderr go into the reason of a failure
)

// command runs a program once per job.
type command struct {
	configs.Application
	dir string
}

func newCommand(c configs.Application, nodeDir string) *command {
	dir := c.Folder
	if !filepath.IsAbs(dir) {
		dir = filepath.Clean(filepath.Join(nodeDir, dir)) // never empty
	}
	return &command{Application: c, dir: dir}
}

func (c *command) allows(o configs.Origin) bool { return c.Allows(o) }

func (c *command) run(ctx context.Context, j Job) (map[workflow.DataName]workflow.Value, error) {
	stdin, err := j.encode()
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(c.dir); err != nil {
		return nil, fmt.Errorf("its working folder cannot be used: %w", err)
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	ctx, cancel := context.WithTimeoutCause(ctx, c.Limit(),
		fmt.Errorf("not done within its time limit of %v", c.Limit()))
	defer cancel()

	stdout := &limited{max: c.OutputLimit(), full: stop}
	stderr := &tail{max: stderrKept}
	cmd := exec.CommandContext(ctx, c.Command[0], c.Command[1:]...)
	cmd.Dir = c.dir
	cmd.Env = c.environment(j)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(stdin), stdout, stderr
	cmd.WaitDelay = grace
	ownGroup(cmd)
	if err := cmd.Run(); err != nil {
		return nil, c.explain(ctx, cmd, err, stderr)
	}
	return DecodeOutputs(stdout.b)
}

// explain says why a run failed, after making sure that nothing of it is left.
func (c *command) explain(ctx context.Context, cmd *exec.Cmd, err error, stderr *tail) error {
	if cmd.Process != nil {
		killGroup(cmd)
	}
	name := filepath.Base(c.Command[0])
	switch cause := context.Cause(ctx); {
	case cause != nil:
		return fmt.Errorf("%s: %w", name, cause)
	case errors.Is(err, exec.ErrWaitDelay):
		return fmt.Errorf("%s ended but left a process behind that kept its output open", name)
	}
	if said := stderr.lastLines(reasonLines); said != "" {
		return fmt.Errorf("%s: %w: %s", name, err, said)
	}
	return fmt.Errorf("%s: %w", name, err)
}

// passedOn is what every command sees of the node's environment: without it
// hardly a program works.
var passedOn = []string{"PATH", "HOME", "LANG", "TMPDIR", "TEMP", "TMP", "SYSTEMROOT", "USERPROFILE", "PATHEXT"}

func (c *command) environment(j Job) []string {
	var env []string
	for _, e := range append(passedOn[:len(passedOn):len(passedOn)], c.Env...) {
		if strings.Contains(e, "=") {
			env = append(env, e)
		} else if v, ok := os.LookupEnv(e); ok {
			env = append(env, e+"="+v)
		}
	}
	if j.Folder != "" {
		env = append(env, "MUTIRAO_FILES="+j.Folder)
	}
	return append(env,
		"MUTIRAO_INSTANCE="+j.Instance,
		"MUTIRAO_WORKFLOW="+string(j.Origin.Workflow),
		"MUTIRAO_TASK="+string(j.Task),
		"MUTIRAO_APPLICATION="+string(j.Application),
		"MUTIRAO_ATTEMPT="+j.Attempt,
		"MUTIRAO_TRY="+strconv.Itoa(j.Try),
		"MUTIRAO_IDEMPOTENCY_KEY="+j.IdempotencyKey(),
	)
}
