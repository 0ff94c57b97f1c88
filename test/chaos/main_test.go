//go:build linux

// Package chaos_test runs five nodes as real processes, each on a host of its
// own in a small network of namespaces, and has everything go wrong at random:
// kill -9, power loss, SIGSTOP, cut and one-way links, splits, lost links,
// changed addresses, wall clocks that jump. Meanwhile workflows are started at
// random nodes and persons do their tasks. Then everything heals, and what must
// hold is read from the nodes' own logs of facts: the invariants that
// internal/sim checks, over real sockets, disks, clocks and processes.
//
// With -liar a sixth member, whose certificate is valid, lies to the five all the
// time (internal/test/testliar); all of that must hold nevertheless.
//
// Every process is this test binary, started again with folderVar naming the
// node's folder. It leaves no process behind: a child ends when its standard
// input does, and is killed with its parent. Nothing is imported from here.
package chaos_test

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/node/assemble"
)

const (
	folderVar = "MUTIRAO_CHAOS_FOLDER"     // the node to run
	inviteVar = "MUTIRAO_CHAOS_INVITATION" // set: it joins first
	clockVar  = "MUTIRAO_CHAOS_CLOCK"      // by how much its wall clock is wrong
	bootVar   = "MUTIRAO_CHAOS_BOOT"       // set: when its device was rebooted, on the boot clock
	logVar    = "MUTIRAO_TEST_LOG"         // set: nodes log in full
)

// What a child is told on its standard input.
const (
	sayClock = "clock" // by how much the wall clock is wrong from now on
	sayPrint = "print" // asks for the fingerprint of an instance
	sayHeap  = "heap"  // has a file written of what holds the memory
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(folderVar); dir != "" {
		if err := child(dir); err != nil {
			fmt.Fprintln(os.Stderr, "node:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if dir := os.Getenv(liarVar); dir != "" {
		fmt.Fprintln(os.Stderr, "liar:", lie(dir))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// child runs the node of a folder.
func child(dir string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if token := os.Getenv(inviteVar); token != "" {
		if _, err := assemble.Join(ctx, dir, assemble.JoinOptions{Invitation: token, Name: filepath.Base(dir)}); err != nil {
			return err
		}
	}
	cfg, err := configs.Load(dir)
	if err != nil {
		return err
	}
	c, err := newClock(os.Getenv(clockVar), os.Getenv(bootVar))
	if err != nil {
		return err
	}
	level := slog.LevelWarn
	if os.Getenv(logVar) != "" {
		level = slog.LevelDebug
	}
	h, err := assemble.OpenBy(c, dir, cfg, "test",
		slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level})))
	if err != nil {
		return err
	}
	go obey(c, h)
	go func() {
		<-h.Ready()
		fmt.Println("ready")
	}()
	return h.Run(ctx)
}

// printer gives fingerprints, which are no part of the API.
type printer interface {
	Fingerprint(ctx context.Context, ref string) ([]byte, error)
}

// obey does what the parent says, and ends the process with its parent.
func obey(c *clock, p printer) {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		word, what, _ := strings.Cut(lines.Text(), " ")
		switch word {
		case sayClock:
			if d, err := time.ParseDuration(what); err == nil {
				c.wrong.Store(int64(d))
			}
		case sayHeap:
			if f, err := os.Create(what); err == nil {
				_ = pprof.WriteHeapProfile(f) // for people only
				_ = f.Close()
			}
		case sayPrint:
			b, err := p.Fingerprint(context.Background(), what)
			fmt.Printf("%s %s %x %v\n", sayPrint, what, hash(b), err)
		}
	}
	os.Exit(3)
}
