// Package realproc_test runs nodes as real processes, over real sockets and
// real disks, and drives them as a user does: through the local API.
//
// Every process is this test binary, started again with childEnv naming the
// node's folder. It promises to leave no process behind: a child ends when its
// standard input does, and so with its parent. Nothing is imported from here.
package realproc_test

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"testing"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/node/assemble"
)

const (
	childEnv = "MUTIRAO_REALPROC_DIR"   // the folder of the node to run
	crashEnv = "MUTIRAO_REALPROC_CRASH" // where the child kills itself, e.g. before-commit:7
	logEnv   = "MUTIRAO_TEST_LOG"       // set: nodes log to their stderr file in full
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childEnv); dir != "" {
		if err := child(dir, os.Getenv(crashEnv)); err != nil {
			fmt.Fprintln(os.Stderr, "node:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	// Tests that run beside each other wait for time to pass, most of the time. Who runs them may say another number.
	if err := flag.Set("test.parallel", "8"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// child runs the node of a folder until SIGTERM.
func child(dir, crash string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go obey()
	level := slog.LevelWarn
	if os.Getenv(logEnv) != "" {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	cfg, err := configs.Load(dir)
	if err != nil {
		return err
	}
	if crash != "" {
		return runCrashing(ctx, dir, cfg, log, crash)
	}
	h, err := assemble.Open(dir, cfg, "test", log)
	if err != nil {
		return err
	}
	go func() {
		<-h.Ready()
		fmt.Println("ready")
	}()
	return h.Run(ctx)
}

// obey does what the parent asks for, and ends the process with its parent.
func obey() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		if lines.Text() == "goroutines" {
			fmt.Println("goroutines", runtime.NumGoroutine())
		}
	}
	os.Exit(3)
}
