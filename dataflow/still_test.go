package dataflow_test

import "testing"

// Transitions that change nothing are counted while they follow one another.
func TestTransitionsThatChangeNothingAreCounted(t *testing.T) {
	s := begin(t, parse(t, asks), values{"a": int64(0)})
	wants := func(n int) {
		t.Helper()
		got, _ := s.b.Still()
		s.wants("in a row", got, n)
	}
	wants(0)
	for range 3 {
		s.wants("asked", s.done("ask", values{}), "")
	}
	wants(3)
	s.wants("with a note", s.done("ask", values{"note": "late"}), "")
	wants(0)
	s.wants("the same note", s.done("ask", values{"a": int64(0), "note": "late"}), "")
	wants(1)
}
