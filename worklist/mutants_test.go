package worklist

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var mutate = flag.String("mutants", "", "break the source in these ways, or all, and see that the tests notice")

// mutant is a way to break the source, one for each rule of docs/worklists.md but 18 and 19, of which the simulator has
// them (internal/sim/mutants).
type mutant struct{ name, file, old, new string }

var mutants = []mutant{
	{"1-order-of-arrival", "item.go", `if at == len(it.facts)-1 && !it.mayUnseat(b, f) {`, `if true {`},
	{"2-anybody-orders", "board.go", `if f.User != "" && f.User == b.terms.Responsible {`, `if true {`},
	{"3-anybody-grants", "rights.go", "\tcase f.Partner != it.Holder:\n\t\treturn notHolder\n\tcase f.User == \"\":",
		"\tcase f.User == \"\":"},
	{"3-any-role", "rights.go", "\tcase !it.maydo(b, f.User, f.Roles):\n\t\treturn noRole\n", ""},
	{"3-lock-anything", "rights.go", "\tcase x.Mode == Lock && !it.Task.Offline:\n\t\treturn \"the task may not be done offline\"\n", ""},
	{"3-no-signature", "rights.go", "\tcase f.User == \"\":\n\t\treturn \"nobody signed the request for it\"\n", ""},
	{"4-no-late-comers", "policy.go", `late := p.Connected > d.b.heard[it.offer] || policy.All() ||`,
		`late := false ||`},
	{"4-forgotten", "policy.go", `case first || lost:`, `case first:`},
	{"4-old-offers-stay", "rights.go", `if x.Under != it.under || len(it.to)`, `if len(it.to)`},
	{"5-some", "ask.go", `return Grant{}, no`, `continue`},
	{"5-any-order", "joint.go", `cmp.Compare(x.Partition, y.Partition)`, `cmp.Compare(y.Partition, x.Partition)`},
	{"5-keeps", "joint.go", `case j.failed != nil && j.given < j.keeps:`, `case false:`},
	{"6-for-ever", "decide.go", `if d.now.Boot >= over {`, `if false {`},
	{"6-away-ends-by-lease", "decide.go", `over = max(end, h.away)`, `over = end`},
	{"6-away-for-ever", "decide.go", `min(p.Back, end+MostAway)`, `p.Back`},
	{"6-removed-stays", "decide.go", `if !known && !p.Unsure || !it.maydo(d.b, h.User, p.Roles) {`, `if !known && p.Active {`},
	{"7-both", "rights.go", `h.lose(was.leased, "another grant prevails")`, `_ = was`},
	{"7-built-upon-falls", "rights.go", `case it.prevails(b, h, was):`, `case false:`},
	{"8-dropped", "rights.go", "\th := it.holdOf(x.Grant)\n\tit.works",
		"\th := it.holdOf(x.Grant)\n\tif h == nil || h.Ended != \"\" {\n\t\treturn noGrant\n\t}\n\tit.works"},
	{"8-lease-first", "decide.go", `if body := d.closing(it); body != nil {`, `if it.open != nil { if body := d.ending(it); body != nil { return body } }
		if body := d.closing(it); body != nil {`},
	{"9-revoked-counts", "rights.go", `case slices.ContainsFunc(w.hold.after, func(id ID) bool { return b.knew(f.ID, id) }):`, `case false:`},
	{"9-lost-counts", "rights.go", `case w.hold.Lost && b.knew(f.ID, w.hold.By):`, `case false:`},
	{"9-upon-nothing", "rights.go", `if !b.tookAsKnown(of, f) {`, `if of.Word.IsZero() {`},
	{"9-not-put-off", "decide.go", `if d.b.founded(w.Result) {`, `if true {`},
	{"9-unfounded", "ahead.go", `return over || brought && !mayCount`,
		`return over && brought && !mayCount && of.Word.IsZero()`},
	{"5-with-nothing", "ask.go", `if len(lacks) > 0 {`, `if false {`},
	{"5-another-has-it", "ask.go", `if other != "" {`, `if false {`},
	{"5-unanswered", "joint.go", "\t\tj.keeps++\n\t\tj.failed = err\n", "\t\tj.failed = err\n"},
	{"5-anew-is-had", "ask.go", ` || slices.Contains(r.Anew, b.heldBy(it)) {`, ` {`},
	{"5-anew-whatever", "ask.go", `case mine && len(r.Anew) > 0 && b.heldBy(it) != r.Word`, `case mine && r.Mode == "" && b.heldBy(it) != r.Word`},
	{"5-anew-goes-back", "fact.go", `return by == asked || slices.Contains(x.Anew, by)`, `return true`},
	{"9-adopt-over-done", "rights.go", `if !e.Failed && b.knew(f.ID, e.By) {`, `if e == nil {`},
	{"10-never-passes", "decide.go", `if left > it.Task.Transfer {`, `if true {`},
	{"10-handed-is-taken", "rights.go", `early: h != nil && h.Mode == Handed`, `early: false`},
	{"10-another-has-it", "rights.go", `case !x.Grant.IsZero() && (it.open == nil || !it.open.has(x.Grant)):`,
		`case false:`},
	{"10-another-had-it", "pass.go", `case h != nil && !h.has(x.Grant):`, `case false:`},
	{"10-done-before", "pass.go", `return w.hold == h && w.void() == "" && b.Takes(w.Result) })`, `return w == nil })`},
	{"10-any-role", "pass.go", `case x.To != "" && !it.maydo(b, x.To, to.Roles):`, `case false:`},
	{"10-anybody-passes", "pass.go", `case !has && b.MayOrder(by.User, by.Roles) != "":`, `case false:`},
	{"10-anybody-hands-on", "rights.go", `if it.open == nil || it.open.User != f.User {`, `if false {`},
	{"11-twice", "decide.go", `if it.used[o.ID] || it.cannot[o.ID] {`, `if it.cannot[o.ID] {`},
	{"11-without-order", "rights.go", `return !it.used[order] && slices.ContainsFunc`,
		`return true || slices.ContainsFunc`},
	{"12-more-than-there-is", "resource.go", `case len(s.have) < s.Capacity:`, `case true:`},
	{"12-anybody-keeps", "resource.go", `if s == nil || !s.keptBy(b, f) {`, `if s == nil {`},
	{"12-overtaken", "resource.go", `-taken[r] > 0 && !barred[r]`, `-taken[r] > 0`},
	{"12-nobody-looks", "resource.go", `if !had[it] {`, `if !had[it] && false {`},
	{"12-free-while-used", "resource.go", `return s.Capacity - s.firm`, `return s.Capacity`},
	{"12-out-of-order", "resource.go", `case it.rank() != underWay && b.lacksBefore(it, s.Partition):`, `case false:`},
	{"12-begun-first", "resource.go", `case it.underWay():`, `case false:`},
	{"12-presumed", "resource.go", `case it.Presumed:`, `case false:`},
	{"12-waits-with-it", "resource.go", `case !s.have[it] && !s.goesOn(it):`, `case !s.have[it]:`},
	{"12-used-by-who-waits", "resource.go", `if s.goesOn(it) {`, `if true {`},
	{"12-not-in-use-yet", "resource.go", `if len(x.Begun) > s.Capacity {`, `if len(x.Begun) > 0 {`},
	{"12-passed-on", "resource.go", `if it.Root.Slot != "" {`, `if false {`},
	{"13-last-heard-wins", "list.go", `moved && !s.newer(&was) {`, `moved && s == was {`},
	{"13-others-items", "list.go", `case h != nil && h.User != u, h == nil`, `case h == nil`},
	{"14-all-are-told", "message.go", `if !answers && (it.open == nil || it.open.User != u) {`, `if false {`},
	{"16-not-named", "device/leave.go", `len(open) > 0 && !d.accepted(NotLocked)`, `false`},
	{"16-too-slow", "device/leave.go", `case d.tooSlow(p, left) != "" && !d.accepted(TooSlow):`, `case false:`},
	{"16-no-space", "device/leave.go", `case d.Lacks > 0 && (`, `case false && (`},
	{"16-goes-without", "device/leave.go", `case len(coming) == 0:`, `case true:`},
	{"16-waits-for-ever", "device/leave.go", `case len(stuck) > 0 && !d.accepted(Missing):`, `case false:`},
	{"17-from-the-start", "device/leave.go", `d.Files[id].Size - d.Files[id].Here`, `d.Files[id].Size`},
	{"15-selected-goes-along", "../node/worklists/finish.go", "if r.Mine == worklist.Lock && (errors",
		"if r.Mine != \"\" && (errors"},
	{"20-locks-anyhow", "../node/device.go", `b.Percent > p.Config.LockAbove`, `b.Percent > 0`},
	{"20-locks-nothing", "../node/device.go", `b == nil || b.Charging || `, `b == nil || `},
	{"21-opens-anything", "device/advise.go", `case l.Takes > tooLong:`, `case false:`},
	{"21-advises-out-of-reach", "device/advise.go", `case !l.Reachable:`, `case false:`},
	{"21-locks-what-may-not", "device/advise.go", `case l.Offline && !l.Locked:`, `case !l.Locked:`},
}

// ofNode are the tests of the node that notice a mutant of what a device does (rules 15 and 20).
var ofNode = map[string]string{
	"15-selected-goes-along": "TestOnlyWhatIsLockedIsDoneOutOfReach",
	"20-locks-anyhow":        "TestADeviceLowOnEnergyLocksNothing",
	"20-locks-nothing":       "TestADeviceLowOnEnergyLocksNothing",
}

// TestMutants: the tests notice each mutant. It compiles each, so it runs only when asked:
//
//	go test ./worklist -run TestMutants -mutants all
func TestMutants(t *testing.T) {
	for _, m := range mutants {
		src, err := os.ReadFile(m.file)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(src), m.old); n != 1 {
			t.Errorf("mutant %s: %s has the text to be replaced %d times, not once", m.name, m.file, n)
		} else if *mutate == "all" || *mutate != "" && strings.HasPrefix(m.name, *mutate) {
			m.run(t, strings.Replace(string(src), m.old, m.new, 1))
		}
	}
}

func (m mutant) run(t *testing.T, broken string) {
	t.Run(m.name, func(t *testing.T) {
		dir := t.TempDir()
		src, err := filepath.Abs(m.file)
		if err != nil {
			t.Fatal(err)
		}
		file, overlay := filepath.Join(dir, "broken.go"), filepath.Join(dir, "overlay.json")
		described, err := json.Marshal(map[string]any{"Replace": map[string]string{src: file}})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(broken), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(overlay, described, 0o600); err != nil {
			t.Fatal(err)
		}
		which, tests := "./"+filepath.Dir(m.file), "Scenarios|AnyOrder|Stories|Leave|Hand|Advise|Units"
		if of := ofNode[m.name]; of != "" {
			which, tests = "../node", of
		}
		if out, err := exec.Command("go", "test", "-vet", "off", "-overlay", overlay, "-timeout", "2m", "-failfast",
			"-run", tests, which).CombinedOutput(); err == nil {
			t.Errorf("nobody notices:\n%s", out)
		} else if strings.Contains(string(out), "[build failed]") {
			t.Errorf("it does not compile:\n%s", out)
		}
	})
}
