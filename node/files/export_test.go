package files

// The shares of what waits to come here, for tests.
const (
	MaxAhead    = maxAhead
	MemberAhead = memberAhead
	OthersAhead = othersAhead
	MemberTurns = memberTurns
)

// Waiting is how many contents are to come here, for how many wants of tasks, and how many
// references were looked at for that.
func (t *Topic) Waiting() (contents, ahead, steps int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.coming), t.ahead, t.steps
}

// Idle reports whether nothing is remembered of what came.
func (t *Topic) Idle() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.coming)+len(t.lines)+len(t.needs)+t.ahead+t.aheadOfOthers+t.running+t.others == 0
}
