package workflow

import (
	"slices"
	"strings"
)

// People read labels, and type them where a name is asked for. What they may have meant is said by name.

// MeantTask is the name, or are those, of the tasks that somebody may have meant by a text that is none: those with
// that label, or else the one whose name or label is nearest; empty: nobody can tell.
func (d *Definition) MeantTask(text string) string {
	var names, labels []string
	for i := range d.Tasks {
		names, labels = append(names, string(d.Tasks[i].Name)), append(labels, d.Tasks[i].Label)
	}
	return Meant(text, names, labels)
}

// MeantData is the same of data.
func (d *Definition) MeantData(text string) string {
	var names, labels []string
	for i := range d.Data {
		names, labels = append(names, string(d.Data[i].Name)), append(labels, d.Data[i].Label)
	}
	return Meant(text, names, labels)
}

// MeantPartition is the same of partitions.
func (d *Definition) MeantPartition(text string) string {
	var names, labels []string
	for i := range d.Partitions {
		names, labels = append(names, string(d.Partitions[i].Name)), append(labels, d.Partitions[i].Label)
	}
	return Meant(text, names, labels)
}

// mostMeant bounds the names that a hint has.
const mostMeant = 3

// Meant finds the same among names with their labels, of which some are empty.
func Meant(text string, names, labels []string) string {
	words := func(s string) string { return strings.ToLower(strings.Join(strings.Fields(s), " ")) }
	is := words(text)
	var same []string
	for i, l := range labels {
		if l != "" && words(l) == is && len(same) < mostMeant && !slices.Contains(same, names[i]) {
			same = append(same, names[i])
		}
	}
	if len(same) > 0 {
		return strings.Join(same, " or ")
	}
	if near := Nearest(text, names); near != "" {
		return near
	}
	var known []string
	for _, l := range labels {
		if l != "" && len(l) <= MaxName {
			known = append(known, l)
		}
	}
	if near := Nearest(text, known); near != "" {
		return names[slices.Index(labels, near)]
	}
	return ""
}
