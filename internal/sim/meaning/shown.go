package meaning

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// What is read of a fingerprint (choreo.Machine.Fingerprint).
var (
	shownInstance = regexp.MustCompile(`^instance \S+ (\S+) `)
	shownSlot     = regexp.MustCompile(`^(slot \S+ \S+ current=\S+ pick=\S+ held=\S+) `)
	shownAttempt  = regexp.MustCompile(`^  (attempt \S+ of \S+ at \S+) .*stands=(\d) .*(tries=\d+)`)
	shownData     = regexp.MustCompile(`^(data \S+) = .* (by \S+ conflict=\S+)$`)
	shownFact     = regexp.MustCompile(`^fact \d+ (\S+) .*counted=true`)
)

// Shown are the lines of a fingerprint that a meaning has too (Meaning.Lines), sorted.
func Shown(print []byte) (out []string) {
	for line := range strings.Lines(string(print)) {
		line = strings.TrimRight(line, "\n")
		if x := shownInstance.FindStringSubmatch(line); x != nil {
			out = append(out, "instance "+x[1])
		} else if x := shownSlot.FindStringSubmatch(line); x != nil {
			out = append(out, x[1])
		} else if x := shownAttempt.FindStringSubmatch(line); x != nil {
			out = append(out, fmt.Sprintf("%s stands=%t %s", x[1], x[2] == "2", x[3]))
		} else if x := shownData.FindStringSubmatch(line); x != nil {
			out = append(out, x[1]+" "+x[2])
		} else if x := shownFact.FindStringSubmatch(line); x != nil {
			out = append(out, "counts "+x[1])
		}
	}
	slices.Sort(out)
	return out
}
