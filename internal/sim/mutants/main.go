// Command mutants runs the simulator on this code, or on broken variants of it.
//
//	go run ./internal/sim/mutants -for 10m -first 1000     explore seeds
//	go run ./internal/sim/mutants -break all -seeds 1000   after how many seeds is each mutant caught?
//	go run ./internal/sim/mutants -break claims -seeds 200 the same for those of what people claim
//	go run ./internal/sim/mutants -break units -seeds 200  the same for those of resources
//	go run ./internal/sim/mutants -break links -seeds 100  the same for those of work ahead
//	go run ./internal/sim/mutants -break flows -seeds 100  the same for those of data states
//	go run ./internal/sim/mutants -break instant -seeds 50 the same for those of what is done at once
//	go run ./internal/sim/mutants -break absences -seeds 50 the same for those of announced absences
//	go run ./internal/sim/mutants -break amend -seeds 50   those of amendments: tests first, then seeds
//
// A mutant is a textual patch, applied with go build -overlay; the sources are
// not touched. It shows that the simulator's checks find what they are for. It
// is a tool for developers and part of no product.
package main

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

func main() {
	var (
		span  = flag.Duration("for", 0, "explore seeds for as long as this")
		first = flag.Uint64("first", 1, "the first seed")
		seeds = flag.Int("seeds", 1000, "how many seeds at most")
		which = flag.String("break", "",
			"a mutant, all, claims: those of what people claim, which are run from 20,000,000, units: those of resources, "+
				"from 30,000,000, links: those of work ahead, from 40,000,000, flows: those of data states, from 50,000,000, instant: "+
				"those of what is done at once, from 1,160,000, absences: those of announced absences, from 20,400,000, or amend: "+
				"those of amendments, which tests catch; none: the code as it is")
	)
	flag.Parse()
	if err := run(*span, *first, *seeds, *which); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(span time.Duration, first uint64, seeds int, which string) error {
	root, err := output(exec.Command("go", "list", "-m", "-f", "{{.Dir}}"))
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "mutirao-mutants")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	args := []string{
		"-test.run", "TestSeeds$", "-test.v", "-test.timeout", "0", "-seeds", fmt.Sprint(seeds), "-for", span.String(),
		"-first",
	}
	if which == "" {
		test, err := build(root, dir, nil)
		if err != nil {
			return err
		}
		return show(exec.Command(test, append(args, fmt.Sprint(first))...), filepath.Join(root, "internal/sim"))
	}
	fmt.Printf("| mutant | what is broken | caught by | at the seed |\n|---|---|---|---|\n")
	missed := 0
	for _, m := range mutants {
		if !m.among(which) {
			continue
		}
		if m.tested {
			name, err := failing(root, dir, m.patches)
			if err != nil {
				return fmt.Errorf("mutant %s: %w", m.name, err)
			}
			if name != "" {
				fmt.Printf("| %s | %s | %s | |\n", m.name, m.what, name)
				continue
			}
		}
		from := max(first, m.first)
		test, err := build(root, dir, m.patches)
		if err != nil {
			return fmt.Errorf("mutant %s: %w", m.name, err)
		}
		how, seed := caught(test, root, append(slices.Clone(args), fmt.Sprint(from), "-variant", m.variant))
		if seed == "" {
			missed++
		}
		fmt.Printf("| %s | %s | %s | %s |\n", m.name, m.what, how, seed)
	}
	if missed > 0 {
		return fmt.Errorf("%d mutants were not caught", missed)
	}
	return nil
}

// among reports whether a mutant is meant by that word.
func (m *mutant) among(which string) bool {
	switch which {
	case "all", m.name:
		return true
	case "amend":
		return m.isOf(ofAmendments)
	case "claims":
		return m.isOf(ofClaims)
	}
	first, known := map[string]uint64{
		"units": equipped, "links": linked, "flows": driven, "instant": prompt, "absences": absences,
	}[which]
	return known && m.first == first
}

func (m *mutant) isOf(group []mutant) bool {
	return slices.ContainsFunc(group, func(o mutant) bool { return o.name == m.name })
}

// build makes the test binary of the simulator with patches.
func build(root, dir string, ps []patch) (string, error) {
	over, err := overlay(root, dir, append(ps[:len(ps):len(ps)], remember...))
	if err != nil {
		return "", err
	}
	test := filepath.Join(dir, "sim.test")
	cmd := exec.Command("go", "test", "-c", "-overlay", over, "-o", test, "./internal/sim")
	cmd.Dir = root
	_, err = output(cmd)
	return test, err
}

// failedTest is what go test prints of a test that fails.
var failedTest = regexp.MustCompile(`(?m)^ *--- FAIL: (\S+)`)

// failing is the innermost of the first of these tests that fail with patches; empty: none does.
func failing(root, dir string, ps []patch) (string, error) {
	over, err := overlay(root, dir, ps)
	if err != nil {
		return "", err
	}
	cmd := exec.Command("go", append([]string{
		"test", "-count=1", "-overlay", over, "-run", amendTests, "-timeout", "9m",
	}, tried...)...)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	found := failedTest.FindAllStringSubmatch(string(out), 2)
	switch {
	case err == nil:
		return "", nil
	case len(found) == 2 && strings.HasPrefix(found[1][1], found[0][1]+"/"):
		return found[1][1], nil
	case len(found) > 0:
		return found[0][1], nil
	case strings.Contains(string(out), "panic:"):
		return "a panic", nil
	}
	return "", fmt.Errorf("the tests do not run: %w\n%s", err, out)
}

// firstViolation is what TestSeeds -fail-fast prints of a run that fails.
var firstViolation = regexp.MustCompile(`seed (\d+): [^ ]+ ([a-z]+):`)

// caught runs the seeds and says which check found the mutant, at which seed.
func caught(test, root string, args []string) (how, seed string) {
	cmd := exec.Command(test, append(args, "-fail-fast")...)
	cmd.Dir = filepath.Join(root, "internal/sim")
	out, err := cmd.CombinedOutput()
	if err == nil {
		return "not caught", ""
	}
	for line := range strings.Lines(string(out)) {
		if x := firstViolation.FindStringSubmatch(line); x != nil {
			return x[2], x[1]
		}
	}
	s := bufio.NewScanner(bytes.NewReader(out))
	for s.Scan() {
		if strings.HasPrefix(s.Text(), "panic:") {
			return s.Text(), "?"
		}
	}
	return "failed otherwise", "?"
}

func show(cmd *exec.Cmd, dir string) error {
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, os.Stdout, os.Stderr
	return cmd.Run()
}

func output(cmd *exec.Cmd) (string, error) {
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, stderr.String())
	}
	return strings.TrimSpace(string(out)), nil
}
