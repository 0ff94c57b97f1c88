package node_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
)

// answers starts a workflow at base, and says who answers for the instance, as base and another
// node show it.
func (tm *team) answers(r api.StartRequest) (who string, notes []string) {
	tm.t.Helper()
	st, err := tm.p["base"].node.Start(tm.t.Context(), r)
	if err != nil {
		tm.t.Fatal(err)
	}
	synctest.Wait()
	return string(tm.show("base", st.ID).Responsible), st.Notes
}

// Who answers for an instance is whom the start names, else the definition, else who starts it.
func TestWhoAnswersForAnInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm, _ := nurses(t) // bia at the tablet, ana at base
		tm.add("base", strings.Replace(rota, "workflow: rota", "workflow: led\nresponsible: bia", 1))
		for _, x := range []struct {
			in   api.StartRequest
			want string
		}{
			{api.StartRequest{Workflow: "rota"}, "ana"}, // the one user who is signed in
			{api.StartRequest{Workflow: "rota", User: "base"}, "base"},
			{api.StartRequest{Workflow: "rota", Responsible: "tablet"}, "tablet"},
			{api.StartRequest{Workflow: "rota", Responsible: "bia", User: "base"}, "bia"},
			{api.StartRequest{Workflow: "led"}, "bia"},
			{api.StartRequest{Workflow: "led", Responsible: "ana"}, "ana"},
		} {
			if who, notes := tm.answers(x.in); who != x.want || slices.ContainsFunc(notes, func(n string) bool { return strings.Contains(n, "responsible") }) {
				t.Errorf("%+v: %s answers, want %s; notes %q", x.in, who, x.want, notes)
			}
		}
		who, notes := tm.answers(api.StartRequest{Workflow: "rota", Responsible: "nix"})
		if text := strings.Join(notes, "; "); who != "ana" || !strings.Contains(text, "ana decides about the instance in place of nix") {
			t.Errorf("%s answers; notes %q", who, notes)
		}
		_, err := tm.p["base"].node.Start(t.Context(), api.StartRequest{Workflow: "rota", User: "bia"})
		wantCode(t, err, api.Refused, "is not signed in at this node")

		// Where several users are signed in, the partner starts what nobody is named for.
		if err := tm.signIn("base", tm.addUser("base", "rui", "nurse")); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		if who, _ := tm.answers(api.StartRequest{Workflow: "rota"}); who != "base" {
			t.Errorf("%s answers, want base", who)
		}
	})
}
