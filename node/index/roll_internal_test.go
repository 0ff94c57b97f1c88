package index

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Pages of any length, one after the other, are the list as sorting all instances gives it; and an ID's beginning
// finds those that begin so: while instances come, end, are set aside, taken back and given up.
func TestPagesAreTheWholeList(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 11))
	x := New()
	id := func(n int) (id workflow.InstanceID) {
		id[0], id[1], id[15] = byte(n*37), byte(n*11), byte(n)
		return id
	}
	states := []workflow.InstanceState{
		workflow.InstanceRunning, workflow.InstanceSucceeded, workflow.InstanceFailed, workflow.InstanceBlocked,
	}
	for range 3_000 {
		switch n := id(r.IntN(60)); r.IntN(5) {
		case 0:
			x.SetAside(n, SetAside{Since: 5, Why: "cannot be read"})
		case 1:
			if _, aside := x.AsideOf(n); aside {
				x.TakeBack(n)
			}
		case 2:
			if x.Has(n) {
				x.Drop(n)
			}
		default:
			x.Put(n, Summary{State: states[r.IntN(len(states))], Started: int64(1 + r.IntN(20)), Workflow: "w"})
		}
		if r.IntN(20) > 0 {
			continue
		}
		all := r.IntN(2) == 0
		var want, got []string
		rows := []api.InstanceSummary{}
		for n := range x.all {
			if all || x.open(n) {
				rows = append(rows, x.row(n))
			}
		}
		api.NewestFirst(rows)
		for _, row := range rows {
			want = append(want, row.ID)
		}
		length := 1 + r.IntN(9)
		for behind := (*Rank)(nil); ; {
			page := x.Page(all, behind, length)
			for _, row := range page {
				got = append(got, row.ID)
			}
			if len(page) == 0 {
				break
			}
			last := page[len(page)-1]
			p, _, err := ReadMark(Rank{last.Started.UnixMilli(), IDOf(last.ID)}.Mark())
			if err != nil {
				t.Fatal(err)
			}
			behind = &p
		}
		if !slices.Equal(got, want) {
			t.Fatalf("pages of %d, all %v: %v, want %v", length, all, got, want)
		}
		prefix := id(r.IntN(60)).String()[:r.IntN(6)]
		found := map[workflow.InstanceID]bool{}
		for _, n := range x.Find(prefix) {
			found[n] = true
		}
		for n := range x.all {
			if found[n] != strings.HasPrefix(n.String(), prefix) {
				t.Fatalf("%s begins with %q: found %v", n, prefix, found[n])
			}
		}
	}
}

func TestMarks(t *testing.T) {
	id := workflow.InstanceID{1, 2, 3}
	for _, c := range []struct {
		mark      string
		want      Rank
		summaries bool
	}{
		{Rank{1_700_000_000_000, id}.Mark(), Rank{1_700_000_000_000, id}, false},
		{AtSummaries, Rank{}, true},
		{AfterSummary(id), Rank{0, id}, true},
	} {
		if got, summaries, err := ReadMark(c.mark); err != nil || got != c.want || summaries != c.summaries {
			t.Errorf("%s: %v %v %v", c.mark, got, summaries, err)
		}
	}
	for _, bad := range []string{
		"", "x", "12", "12-", "12-ff", "-ff", "a-" + id.String(), "12-" + id.String() + "00", fmt.Sprintf("1e3-%s", id),
	} {
		if _, _, err := ReadMark(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
