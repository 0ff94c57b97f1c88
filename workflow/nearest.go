package workflow

import (
	"fmt"
	"strings"
)

// didYouMean is a hint that names the candidate nearest to word, or the empty
// string when none is near, or when many such hints have been looked for already.
// Of two equally near the first wins.
func (m *memory) didYouMean(word string, candidates []string) string {
	for _, c := range candidates {
		m.compared += 1 + len(word)*len(c)
	}
	if m.compared > maxCompared {
		return ""
	}
	if best := Nearest(word, candidates); best != "" {
		return fmt.Sprintf("did you mean %q?", best)
	}
	return ""
}

// maxCompared bounds what all hints of one definition cost together: pairs of
// letters that are compared.
const maxCompared = 1 << 22

// Nearest is the candidate that word was probably meant to be: within a third of
// word's length, at least one change and at most three; empty if there is none.
// Of two equally near the first wins.
func Nearest(word string, candidates []string) string {
	if len(word) > MaxName {
		return ""
	}
	lower := []rune(strings.ToLower(word))
	best, limit := "", min(3, max(1, len(lower)/3))
	for _, c := range candidates {
		if c == word {
			continue
		}
		if strings.EqualFold(c, word) {
			return c
		}
		if d := distance(lower, []rune(strings.ToLower(c))); d <= limit {
			best, limit = c, d-1
		}
	}
	return best
}

// distance is the Damerau-Levenshtein distance (insertion, deletion, change, swap of
// neighbours) of two texts of which one is no longer than a name. Any beyond 3 is 4.
func distance(a, b []rune) int {
	if abs(len(a)-len(b)) > 3 {
		return 4
	}
	var rows [3][MaxName + 4]int // a is no longer than a name, b at most 3 more
	before, prev, cur := rows[0][:len(b)+1], rows[1][:len(b)+1], rows[2][:len(b)+1]
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], before[j-2]+1)
			}
		}
		before, prev, cur = prev, cur, before
	}
	return prev[len(b)]
}

func abs(n int) int {
	if n < 0 {
		return -n
	}
	return n
}
