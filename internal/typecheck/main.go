// Command typecheck has the types of the program checked as they are on other systems.
//
//	go run ./internal/typecheck windows/amd64 android/arm64
//
// It reads all sources, those of dependencies too, and compiles nothing: that takes a tenth of
// the time of a build, and finds what a change to these sources breaks on a system that its author
// does not have. It does not find what only the compiler's later steps, the assembler or the linker
// refuse: for that .ci/cross builds.
//
// It imports no other package of this module; nothing imports it.
package main

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/tools/go/packages"
)

func main() {
	wrong := len(os.Args) < 2
	if wrong {
		fmt.Fprintln(os.Stderr, "usage: typecheck GOOS/GOARCH...")
	}
	for _, target := range os.Args[1:] {
		if err := check(target); err != nil {
			fmt.Fprintf(os.Stderr, "typecheck: %s: %v\n", target, err)
			wrong = true
		}
	}
	if wrong {
		os.Exit(1)
	}
}

// check reports what is wrong with the program on a system, each mistake in a line before.
func check(target string) error {
	system, processor, ok := strings.Cut(target, "/")
	if !ok {
		return fmt.Errorf("want GOOS/GOARCH, for instance linux/arm")
	}
	loaded, err := packages.Load(&packages.Config{
		Mode: packages.LoadAllSyntax,
		Env:  append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+processor),
	}, "./cmd/mutirao")
	if err != nil {
		return err
	}
	if n := packages.PrintErrors(loaded); n > 0 {
		return fmt.Errorf("%d mistakes", n)
	}
	return nil
}
