package worklists

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// A word stays refused for its time. Who brings very many makes the node forget its own, and all together no more than
// there is room for.
func TestRefusedWordsAreRememberedWithinBounds(t *testing.T) {
	var x denials
	no := errors.New("no")
	word := func(p, n int) (w worklist.ID) {
		binary.BigEndian.PutUint32(w[:], uint32(p))
		binary.BigEndian.PutUint32(w[4:], uint32(n))
		return w
	}
	x.note("phone", word(0, 0), no, 0)
	for n := range 3 * maxDeniedOf {
		x.note("liar", word(1, n), no, time.Minute)
	}
	if x.before(word(0, 0), deniedFor-1) == nil {
		t.Error("a liar made the node forget what it refused another")
	}
	if x.before(word(0, 0), deniedFor) != nil {
		t.Error("a word stays refused for too long")
	}
	if got := len(x.of); got != maxDeniedOf+1 {
		t.Errorf("%d words are remembered, want %d", got, maxDeniedOf+1)
	}
	for p := range 2 * maxDenied / maxDeniedOf {
		for n := range maxDeniedOf {
			x.note(workflow.PartnerID(fmt.Sprint("member ", p)), word(2+p, n), no, 2*time.Minute)
		}
	}
	if got := len(x.of); got > maxDenied {
		t.Errorf("%d words are remembered, at most %d", got, maxDenied)
	}
	sum := 0
	for _, words := range x.inTurn {
		sum += len(words)
	}
	if sum != len(x.of) {
		t.Errorf("%d words are in turn, %d remembered", sum, len(x.of))
	}
	for n := range 2 { // the same word, refused once more after its time
		x.note("phone", word(0, 1), no, time.Duration(1+n)*time.Hour)
	}
	if x.before(word(0, 1), 2*time.Hour) == nil || len(x.inTurn["phone"]) > 2 {
		t.Errorf("a word that was refused once more is %v, %d in turn", x.before(word(0, 1), 2*time.Hour), len(x.inTurn["phone"]))
	}
}
