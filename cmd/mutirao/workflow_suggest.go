package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// asMany asks for as many partitions as come naturally.
const asMany = "natural"

// suggester suggests cuts of definitions, if it was asked to.
type suggester struct {
	number string // of partitions; empty: not asked to
	found  []suggestion
}

// suggestion is a cut as programs read it.
type suggestion struct {
	File       string          `json:"file"`
	Partitions []suggestedPart `json:"partitions"`
}

type suggestedPart struct {
	Name  workflow.PartitionName `json:"name"`
	Tasks []workflow.TaskName    `json:"tasks"`
}

func (s *suggester) flag(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.number, "suggest-partitions", "", "suggest a cut, into this `number` of partitions if one is given")
	f.Lookup("suggest-partitions").NoOptDefVal = asMany
}

// count is how many partitions are wanted; 0: as many as come naturally.
func (s *suggester) count() (int, error) {
	if s.number == "" || s.number == asMany {
		return 0, nil
	}
	n, err := strconv.Atoi(s.number)
	if err != nil || n < 1 {
		return 0, usagef("--suggest-partitions=%s: want a number from 1", s.number)
	}
	return n, nil
}

// suggest notes a cut of a definition without mistakes.
func (s *suggester) suggest(file string, def *workflow.Definition, count int) {
	if s.number == "" {
		return
	}
	cut := suggestion{File: file}
	for _, p := range partition.Suggest(def, count) {
		cut.Partitions = append(cut.Partitions, suggestedPart{p.Name, p.Tasks})
	}
	s.found = append(s.found, cut)
}

// result is what programs read: the mistakes, and what was suggested if that was asked for.
func (s *suggester) result(found *checked) any {
	if s.number == "" {
		return append(slices.Clone(found.mistakes), found.warnings...)
	}
	return struct {
		Mistakes    []mistake    `json:"mistakes"`
		Warnings    []mistake    `json:"warnings"`
		Suggestions []suggestion `json:"suggestions"`
	}{found.mistakes, append([]mistake{}, found.warnings...), append([]suggestion{}, s.found...)}
}

// write prints the cuts as they may be put into the definitions.
func (s *suggester) write(w io.Writer) {
	for _, cut := range s.found {
		if len(s.found) > 1 {
			fmt.Fprintf(w, "# %s\n", cut.File)
		}
		fmt.Fprintln(w, "partitions:")
		for _, p := range cut.Partitions {
			tasks := make([]string, len(p.Tasks))
			for i, t := range p.Tasks {
				tasks[i] = scalar(string(t))
			}
			fmt.Fprintf(w, "  %s: [%s]\n", scalar(string(p.Name)), strings.Join(tasks, ", "))
		}
	}
}

// scalar is a name as YAML writes it: in quotes where it would be something else.
func scalar(name string) string {
	b, err := yaml.Marshal(name)
	if err != nil {
		return strconv.Quote(name)
	}
	return strings.TrimSpace(string(b))
}
