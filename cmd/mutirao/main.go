// Command mutirao runs a node of a mesh and talks to it: a workflow that keeps
// going when the network does not.
//
// Every command is a file of its own. Commands talk to the running node
// through package node/api and nothing else, except those that need none.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	status := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}
