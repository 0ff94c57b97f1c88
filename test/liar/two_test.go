//go:build linux

package liar_test

import (
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/internal/test/testliar"
	"github.com/mutirao-mesh/mutirao/internal/test/testnode"
)

// Two members that lie: one begins instances, and names as seen what the other writes
// there beyond its share. The victim keeps within its means, and has room for others.
func TestTwoLiars(t *testing.T) {
	v := newVictims(t)
	mel := testnode.New(t, "mel")
	mel.Configure(small...)
	v.ana.Admit(mel)
	testnode.Within(t, time.Minute, "ana sees mel", func() bool { return v.ana.Sees("active", "mel") })
	mel.End()
	one, two := v.liar(v.begins()), v.liarOf(mel.Dir)
	m := measure(v.ana)
	testliar.Pair(t.Context(), one, two, 30)
	v.idles()
	t.Logf("ana refused of mal: %v, of mel: %v", v.refusals("mal"), v.refusals("mel"))
	u := m.ends()
	t.Logf("%d frames; ana used %s", one.Sent+two.Sent, u)
	if u.anon > maxAnon {
		t.Errorf("%d MiB anonymous memory, at most %d", u.anon, maxAnon)
	}
	v.holds()
}
