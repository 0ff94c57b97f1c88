package web

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mutirao-mesh/mutirao/node/worklists"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// A reason that people can be told on the page has a line in Portuguese. It is looked for in the sources, so that a new
// one is not forgotten: why something waits, why an item is not given, and what is refused for now.
func TestEveryReasonInTheSourcesIsSaid(t *testing.T) {
	pt := languages()[1]
	found := map[string]string{}
	for _, dir := range []string{"../../choreo", "../../choreo/state", "../../worklist", "../../partition"} {
		collect(t, dir, found, reasonsAt)
	}
	if len(found) < 60 {
		t.Fatalf("only %d reasons were found: are they written in another way now?", len(found))
	}
	for text, at := range found {
		if letters(text) < 7 { // as in "x is x": what is told by so little would be told of the words of people, too
			continue
		}
		if !saidIn(pt, text) {
			t.Errorf("%s: nothing in reasons.pt-BR.txt says %q: it is %q", at, text, pt.reason(text))
		}
	}
}

// Why a task is passed on, stays, fails or is called off has a line in Portuguese as well: what functions are given as
// a reason, and what is called one where it is set.
func TestEveryReasonThatIsHandedOnIsSaid(t *testing.T) {
	pt := languages()[1]
	dirs := []string{"../../choreo", "../../choreo/state", "../../node", "../../node/show", "../../node/worklists",
		"../../node/filing", "../../node/runner"}
	takers := map[string]int{}
	for _, dir := range dirs {
		collect(t, dir, map[string]string{}, func(n ast.Node) []string { return takesReason(n, takers) })
	}
	found := map[string]string{}
	for _, dir := range dirs {
		collect(t, dir, found, func(n ast.Node) []string { return handedOnAt(n, takers) })
	}
	if len(takers) < 6 || len(found) < 25 {
		t.Fatalf("only %d reasons of %d functions were found: are they written in another way now?", len(found),
			len(takers))
	}
	for text, at := range found {
		name := !strings.Contains(text, " ") // of a number that is counted, or of a field
		if letters(text) < 7 || name || onlyCommandsSay[text] {
			continue
		}
		if !saidIn(pt, text) {
			t.Errorf("%s: nothing in reasons.pt-BR.txt says %q: it is %q", at, text, pt.reason(text))
		}
	}
}

// takesReason notes which parameter of a function is a reason, if one is.
func takesReason(n ast.Node, takers map[string]int) []string {
	f, ok := n.(*ast.FuncDecl)
	if !ok {
		return nil
	}
	i := 0
	for _, field := range f.Type.Params.List {
		for _, name := range field.Names {
			if name.Name == "reason" && called(field.Type) == "string" {
				takers[f.Name.Name] = i
			}
			i++
		}
	}
	return nil
}

// handedOnAt are the reasons that one piece of source hands on to such functions, or sets.
func handedOnAt(n ast.Node, takers map[string]int) (out []string) {
	switch x := n.(type) {
	case *ast.CallExpr:
		name := called(x.Fun)
		if sel, ok := x.Fun.(*ast.SelectorExpr); ok {
			name = sel.Sel.Name
		}
		if i, ok := takers[name]; ok && i < len(x.Args) {
			out = append(out, sampleOf(x.Args[i]))
		}
	case *ast.KeyValueExpr:
		if called(x.Key) == "Reason" {
			out = append(out, sampleOf(x.Value))
		}
	case *ast.CompositeLit:
		for _, e := range x.Elts {
			if kv, ok := e.(*ast.KeyValueExpr); ok {
				if called(kv.Key) != "Why" {
					continue
				}
				e = kv.Value
			}
			// Why something stays is an error.
			if c, ok := e.(*ast.CallExpr); called(x.Type) == "Stay" && ok && len(c.Args) > 0 {
				out = append(out, sampleOf(c.Args[0]))
			}
		}
	}
	return out
}

// What a request is refused for has a line in Portuguese, and what to do then, as far as the page asks for it.
func TestEveryRefusalInTheSourcesIsSaid(t *testing.T) {
	pt := languages()[1]
	found := map[string]string{}
	for _, dir := range []string{"", "/worklists", "/users", "/library", "/files", "/filing", "/runner", "/index"} {
		collect(t, "../../node"+dir, found, refusalsAt)
	}
	if len(found) < 300 {
		t.Fatalf("only %d refusals were found: are they written in another way now?", len(found))
	}
	for text, at := range found {
		file, _, _ := strings.Cut(at, ":")
		if letters(text) < 7 || onlyCommands[file] || onlyCommandsSay[text] {
			continue
		}
		wholes := ends[text]
		if wholes == nil {
			wholes = []string{text}
		}
		for _, whole := range wholes {
			if !saidIn(pt, whole) && !saidIn(pt, attached.ReplaceAllString(whole, "$1")) {
				t.Errorf("%s: nothing in reasons.pt-BR.txt says %q: it is %q", at, whole, pt.reason(whole))
			}
		}
	}
}

// onlyCommands are sources of what the page asks for nowhere, and onlyCommandsSay are texts of such requests that stand
// in other sources.
var (
	onlyCommands = map[string]bool{
		"node/amend.go": true, "worklists/amend.go": true, // amend
		"node/dates.go": true, "node/orchestrate.go": true, // start --warnings, --transfer, --notify, --coordination
		"node/leave.go": true, "node/service_mesh.go": true, // leave
		"node/tasks.go":     true,                        // task complete, task fail
		"library/listed.go": true,                        // workflow add, workflow remove
		"node/list.go":      true, "index/roll.go": true, // instances, by pieces
		"worklists/hand.go": true, "worklists/list.go": true, // worklist move, worklist --order
	}
	onlyCommandsSay = set(
		// The folder of a node.
		`make one with "mutirao init" or "mutirao join", or name another folder with --dir`,
		"run it: mutirao up; or name another folder with --dir",
		"join again with an empty folder and a new invitation; this one can be deleted, or kept to look at",
		"is that partner running, and on a network that you can reach? Try again with the same folder: that takes no second use",
		// leave.
		"it is in quarantine: mutirao doctor says why", "not everybody has acknowledged yet what happened here",
		"x decides about it, and when this node is gone another has to do what is decided: mutirao task again, skip or continue x x, or mutirao cancel x",
		// Elections.
		"the founder signs the next: mutirao coordinator electorate --set … --override",
		// user add, user remove, role grant.
		"there is a user x already, who is signed in nowhere",
		"for another token leave --role out; roles: mutirao role grant x ROLE",
		"there is a x x already", "the name x looks like that of the x x", "use another name",
		"to remove it from the mesh: mutirao evict x",
		"x is a partner: its roles are those of its certificate",
		"it gets others by joining again with an invitation that gives them; or add a user who signs in there: mutirao user add NAME --role x",
		"user x has x roles: at most x",
		// user sign-in, user link, user sign-out.
		"a token for x: want more than 0 and at most 366d",
		"this device of user x was linked by a device that was linked, x in a row: it cannot link another",
		"link it on another device of the user",
		"x, which made the token, cannot be reached",
		"try again when it can be: with the same token at this node that takes no second use",
		"what x did here waits to be handed in, and would be lost: x",
		"mutirao outbox shows it, and who it waits for; when that one can be reached it goes by itself (mutirao worklist reconnect). To sign out all the same: mutirao user sign-out x --discard",
		`no user "x" is signed in at this node`, "mutirao user list shows who is: HERE",
		"several users who are signed in here are called x: use an ID", "mutirao user list -v shows the IDs",
	)
)

// ends are texts that others end: what they are then.
var ends = map[string][]string{
	"x, who holds x, x": {
		"x, who holds x, did not answer; it may have written it down all the same", "x, who holds x, could not write it down now",
	},
	"x is due in x, and passes to x with x left": {
		"x is due in x, and passes to you with x left", "x is due in x, and passes to the responsible user with x left",
	},
	"xx: you may go on, but what you make of it may not count": {
		"x is presumed to have failed, and y stands in for it: you may go on, but what you make of it may not count",
	},
	"instance x x": {
		"instance x ended so long ago that only its ID is known", "instance x ended (x) on x, and only its summary is kept",
	},
	"this node is away already, and x when it went: that it is to be x cannot be told to partners now": {
		"this node is away already, and no time was announced when it went: that it is to be x cannot be told to partners now",
		"this node is away already, and x was announced when it went: that it is to be x cannot be told to partners now",
	},
}

func set(texts ...string) map[string]bool {
	out := map[string]bool{}
	for _, x := range texts {
		out[x] = true
	}
	return out
}

// What a partition lacks is said in Portuguese, however much of it there is.
func TestWhatAPartitionLacksIsSaid(t *testing.T) {
	pt := languages()[1]
	for text, want := range map[string]string{
		"partition main: no partner has database depot (a-asks) and application weigh (b) (a partner configures it: databases in its config.yaml; van comes nearest and lacks database depot (a-asks))": "partition main: nenhum parceiro tem o banco de dados depot (a-asks) e a aplicação weigh (b) (um parceiro precisa configurá-lo: databases no config.yaml dele; van é o que chega mais perto e não tem o banco de dados depot (a-asks))",
	} {
		if got := pt.reason(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

// englishWords are words that no text in Portuguese has.
var englishWords = regexp.MustCompile(`(?i)(^|[ (])(the|is|are|not|and|of|which|who|has|have|was|it|its|with|by|cannot|this|that|there|then)([ ,;:.)]|$)`)

// saidIn reports whether a language says a text to its end.
func saidIn(l *language, text string) bool {
	said := l.reason(text)
	return said != text && !englishWords.MatchString(said)
}

// What people should look at, and why a partner was chosen, has a line in Portuguese, too: whatever the sources call
// IncidentView.What, or Choice.Why, or a variable that becomes one.
func TestEveryIncidentAndChoiceIsSaid(t *testing.T) {
	pt := languages()[1]
	found := map[string]string{}
	for _, dir := range []string{"../../choreo", "../../choreo/state", "../../partition", "../../node/show", "../../node/overview",
		"../../node/certificates"} {
		collect(t, dir, found, incidentsAndChoicesAt)
	}
	if len(found) < 40 {
		t.Fatalf("only %d were found: are they written in another way now?", len(found))
	}
	for text, at := range found {
		if strings.HasPrefix(at, "partition/optimizer.go") { // which is for authors, on the command line
			continue
		}
		// As it is read: alone, after who said or did it, or in the sentence of which it is a part.
		said := letters(text) < 7
		for _, before := range []string{"", "x: ", "it waits for x, ", "x: it is pinned to x, which "} {
			whole := before + text
			if before == "x: it is pinned to x, which " {
				whole += " (x)"
			}
			said = said || pt.reason(whole) != whole && !strings.Contains(pt.reason(whole), text)
		}
		if !said {
			t.Errorf("%s: nothing in reasons.pt-BR.txt says %q", at, text)
		}
	}
}

// What the history of an instance says of each fact has a line in Portuguese, too.
func TestEveryFactIsSaid(t *testing.T) {
	pt := languages()[1]
	found := map[string]string{}
	collect(t, "../../node/show", found, factsAt)
	n := 0
	for text, at := range found {
		if !strings.HasPrefix(at, "show/log.go") && !strings.HasPrefix(at, "show/claims.go") {
			continue
		}
		n++
		wholes := []string{text}
		if granted(text) { // also of several tasks
			wholes = append(wholes, "weigh, feed "+text)
		}
		for _, whole := range wholes {
			if got := pt.reason(whole); got == whole || strings.Contains(got, text) {
				t.Errorf("%s: nothing in reasons.pt-BR.txt says %q: it is %q", at, whole, got)
			}
		}
	}
	if n < 30 {
		t.Fatalf("only %d were found: are they written in another way now?", n)
	}
}

// Why a result does not count, and why somebody lost an item, has a line in Portuguese, in each sentence that says so, also
// where the data follow.
func TestEveryReasonWhyAResultDoesNotCountIsSaid(t *testing.T) {
	pt := languages()[1]
	found := map[string]string{}
	collect(t, "../../worklist", found, uncountedAt)
	if len(found) < 15 {
		t.Fatalf("only %d were found: are they written in another way now?", len(found))
	}
	for _, c := range []worklist.Cause{
		worklist.ByLease, worklist.ByRemoval, worklist.ByDeadline, worklist.ByOrder, worklist.ByDelegation,
		worklist.ByEscalation, worklist.ByReturn,
	} {
		if whole := "taken back: " + string(c); !saidIn(pt, whole) {
			t.Errorf("nothing in reasons.pt-BR.txt says %q: it is %q", whole, pt.reason(whole))
		}
	}
	for text, at := range found {
		because := worklists.Because(text)
		for _, whole := range []string{
			because, "a result of bia is kept and does not count, " + because,
			"a result of bia is kept and does not count, " + because + ": w = 1, note = it: is",
			"bia said that it failed, which does not count, " + because,
			"bia said that it failed, which does not count, " + because + "; the reason given: Ok",
			"it does not count, " + because + "; it is kept there", "the result of weigh does not count, " + because + "; it is kept",
		} {
			said := strings.TrimSuffix(pt.reason(whole), "it: is")
			if said == whole || englishWords.MatchString(said) {
				t.Errorf("%s: nothing in reasons.pt-BR.txt says %q: it is %q", at, whole, said)
			}
		}
	}
}

// uncountedAt are the reasons that one piece of source words why a result does not count, or why somebody lost an item.
func uncountedAt(n ast.Node) (out []string) {
	add := func(e ast.Expr) {
		if text := sampleOf(e); text != "x" && text != "" {
			out = append(out, text)
		}
	}
	switch x := n.(type) {
	case *ast.ReturnStmt:
		if len(x.Results) == 2 && called(x.Results[0]) == "false" {
			add(x.Results[1])
		}
	case *ast.CallExpr:
		sel, _ := x.Fun.(*ast.SelectorExpr)
		switch {
		case sel != nil && sel.Sel.Name == "lose" && len(x.Args) == 2:
			add(x.Args[1])
		case sel != nil && sel.Sel.Name == "finish" && len(x.Args) == 3 && sampleOf(x.Args[2]) != "done": // which is no loss
			add(x.Args[2])
		case called(x.Fun) == "cmp.Or" && len(x.Args) == 2 && called(x.Args[0]) == "it.Why":
			add(x.Args[1])
		}
	case *ast.AssignStmt:
		for i, l := range x.Lhs {
			if i < len(x.Rhs) && called(l) == "l.Why" {
				add(x.Rhs[i])
			}
		}
	case *ast.ValueSpec:
		is := func(name *ast.Ident) bool {
			return slices.Contains([]string{"neverCounted", "notTaken", "wasStopped"}, name.Name)
		}
		if called(x.Type) == "Cause" || slices.ContainsFunc(x.Names, is) {
			for _, v := range x.Values {
				add(v)
			}
		}
	}
	return out
}

// Why a file does not come has a line in Portuguese: of one partner, and of several.
func TestEveryReasonWhyAFileDoesNotComeIsSaid(t *testing.T) {
	pt := languages()[1]
	found := map[string]string{}
	collect(t, "../../node/files", found, func(n ast.Node) []string {
		if x, ok := n.(*ast.CallExpr); ok && slices.Contains([]string{"errors.New", "fmt.Errorf"}, called(x.Fun)) {
			return []string{sampleOf(x.Args[0])}
		}
		return nil
	})
	n := 0
	for text, at := range found {
		file, _, _ := strings.Cut(at, ":")
		if !slices.Contains([]string{"files/search.go", "files/pace.go", "files/fetch.go"}, file) || letters(text) < 7 {
			continue
		}
		n++
		for _, whole := range []string{
			"waits for file plan.pdf: " + text, "waits for file plan.pdf: tec: " + text + "; bia: " + text + "; gil: is gone for good",
		} {
			if !saidIn(pt, whole) {
				t.Errorf("%s: nothing in reasons.pt-BR.txt says %q: it is %q", at, whole, pt.reason(whole))
			}
		}
	}
	if n < 8 {
		t.Fatalf("only %d were found: are they written in another way now?", n)
	}
}

// What is said after something else is said as it is alone, and so is what is before it.
func TestWhatIsJoinedIsSaid(t *testing.T) {
	pt := languages()[1]
	const waits = "waits for file plan.pdf: tec: it is not here; gil: is gone for good"
	after := pt.reason(waits)
	if englishWords.MatchString(after) {
		t.Fatalf("%q is %q", waits, after)
	}
	b, err := texts.ReadFile("strings/reasons.pt-BR.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		english, _, ok := strings.Cut(strings.TrimSpace(line), " => ")
		text := blank.ReplaceAllString(english, "x${1}x")
		if !ok || strings.HasPrefix(line, "#") || !strings.Contains(text, " ") {
			continue
		}
		if got, want := pt.reason(text+"; "+waits), pt.reason(text)+"; "+after; got != want && whole(text) {
			t.Errorf("%q with something after it is %q, want %q", text, got, want)
		}
		// What has a semicolon itself is said after nothing else.
		if got, want := pt.reason(waits+"; "+text), after+"; "+pt.reason(text); got != want && !strings.Contains(text, "; ") {
			t.Errorf("%q with something before it is %q, want %q", text, got, want)
		}
	}
}

// whole reports whether all brackets of a text are closed: else it is a part of another.
func whole(text string) bool { return strings.Count(text, "(") == strings.Count(text, ")") }

// What a message says has a line in Portuguese, whatever the reason is that it names.
func TestEveryMessageIsSaid(t *testing.T) {
	pt := languages()[1]
	found := map[string]string{}
	collect(t, "../../worklist", found, messagesAt)
	n := 0
	for text, at := range found {
		if !strings.HasPrefix(at, "worklist/message.go") {
			continue
		}
		n++
		wholes := ends[text]
		if wholes == nil {
			wholes = []string{text}
		}
		for _, whole := range wholes {
			if !saidIn(pt, whole) {
				t.Errorf("%s: nothing in reasons.pt-BR.txt says %q: it is %q", at, whole, pt.reason(whole))
			}
		}
	}
	if n < 9 {
		t.Fatalf("only %d were found: are they written in another way now?", n)
	}
	b, err := texts.ReadFile("strings/reasons.pt-BR.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		why, _, ok := strings.Cut(line, " => ")
		if !ok || strings.HasPrefix(line, "#") || strings.Contains(why, "{") || why == "no reason was given" ||
			strings.Contains(why, "mutirao ") { // what to do then, which is no reason
			continue
		}
		if got, want := pt.reason("t11 has failed: "+why), "t11 falhou: "+pt.reason(why); got != want {
			t.Errorf("that a task has failed for %q is said as %q", why, got)
		}
	}
}

// messagesAt are the texts of messages that one piece of source words.
func messagesAt(n ast.Node) (out []string) {
	if x, ok := n.(*ast.CallExpr); ok && called(x.Fun) == "fmt.Sprintf" {
		if text := sampleOf(x); letters(text) > 6 {
			out = append(out, text)
		}
	}
	return out
}

// granted reports whether a fact says that somebody has an item.
func granted(text string) bool {
	return strings.HasSuffix(text, " (lock)") || strings.HasPrefix(text, "kept for ")
}

// attached is what may follow a word, such as which try it is, and is left out as often.
var attached = regexp.MustCompile(`([a-z ]{4})x+$`)

// partOf is how a text begins that stands after another one.
var partOf = regexp.MustCompile(`^x[^ ]|^x \(`)

// factsAt are the texts of facts that one piece of source words: what is returned after a task, or becomes text.
func factsAt(n ast.Node) (out []string) {
	add := func(e ast.Expr) {
		text := sampleOf(e)
		text = strings.ReplaceAll(attached.ReplaceAllString(text, "$1"), "(x)", "(lock)")
		if letters(text) > 6 && !strings.HasPrefix(text, ",") && !strings.HasPrefix(text, " ") && !partOf.MatchString(text) {
			out = append(out, text)
		}
	}
	switch x := n.(type) {
	case *ast.ReturnStmt:
		if len(x.Results) == 2 {
			add(x.Results[1])
		}
		// Of one that words a part of a fact.
		if len(x.Results) == 1 {
			if c, ok := x.Results[0].(*ast.CallExpr); ok && called(c.Fun) == "fmt.Sprintf" {
				add(c)
			}
		}
	case *ast.AssignStmt:
		for i, l := range x.Lhs {
			if i < len(x.Rhs) && called(l) == "text" && x.Tok != token.ADD_ASSIGN {
				add(x.Rhs[i])
			}
		}
	}
	return out
}

// incidentsAndChoicesAt are the incidents that one piece of source words, and the reasons of choices.
func incidentsAndChoicesAt(n ast.Node) (out []string) {
	add := func(text string) {
		part := strings.HasPrefix(text, "; ") || strings.HasSuffix(text, "; ") || text == "a result of x"
		if strings.Trim(text, "x") != "" && !part {
			out = append(out, text)
		}
	}
	switch x := n.(type) {
	case *ast.CompositeLit:
		key := map[string]string{
			"IncidentView": "What", "state.IncidentView": "What", "Choice": "Why", "partition.Choice": "Why", "api.Incident": "What",
		}[called(x.Type)]
		for _, e := range x.Elts {
			if kv, ok := e.(*ast.KeyValueExpr); ok && key != "" && called(kv.Key) == key {
				add(sampleOf(kv.Value))
			}
		}
	case *ast.AssignStmt:
		for i, l := range x.Lhs {
			if i < len(x.Rhs) && x.Tok != token.ADD_ASSIGN && slices.Contains([]string{"what", "x.What", "why"}, called(l)) {
				add(sampleOf(x.Rhs[i]))
			}
		}
	}
	return out
}

// letters is how many letters of a sample are written in the source.
func letters(text string) (n int) {
	for word := range strings.FieldsSeq(strings.Trim(text, ".:")) {
		if word = strings.Trim(word, ",:;()"); word != "x" {
			n += len(word)
		}
	}
	return n
}

// collect finds what the sources in a folder word at pieces of them, with a sample for what they leave blank.
func collect(t *testing.T, dir string, found map[string]string, at func(ast.Node) []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has %d sources: %v", dir, len(files), err)
	}
	set := token.NewFileSet()
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			for _, text := range at(n) {
				line := set.Position(n.Pos()).Line
				found[text] = filepath.Base(dir) + "/" + filepath.Base(name) + ":" + strconv.Itoa(line)
			}
			return true
		})
	}
}

// reasonsAt are the reasons that one piece of source words: an error of state.ErrNotNow, the text of a
// worklist.Refusal, why a task waits (Machine.nobody), and what stands against an assignment (partition.Refusal).
func reasonsAt(n ast.Node) (out []string) {
	switch x := n.(type) {
	case *ast.CallExpr:
		if called(x.Fun) == "fmt.Errorf" && len(x.Args) > 1 && strings.HasSuffix(called(x.Args[1]), "ErrNotNow") {
			if text := sampleOf(x.Args[0]); strings.HasPrefix(text, "x: ") {
				out = append(out, strings.TrimPrefix(text, "x: "))
			}
		}
	case *ast.CompositeLit:
		why, change := "", ""
		for i, e := range x.Elts {
			if called(x.Type) == "Refusal" && len(x.Elts) == 3 && i > 0 { // of an assignment, without keys
				why, change = change, sampleOf(e)
			}
			kv, ok := e.(*ast.KeyValueExpr)
			if !ok {
				continue
			}
			switch kind, key := called(x.Type), called(kv.Key); {
			case (kind == "Refusal" || kind == "worklist.Refusal") && key == "Text":
				out = append(out, "x: "+sampleOf(kv.Value))
			case kind == "Refusal" && key == "Why":
				why = sampleOf(kv.Value)
			case kind == "Refusal" && key == "Change":
				change = sampleOf(kv.Value)
			}
		}
		if why != "" && change != "" {
			out = append(out, why+" ("+change+")")
		}
	case *ast.AssignStmt:
		for i, l := range x.Lhs {
			at, ok := l.(*ast.IndexExpr)
			if ok && i < len(x.Rhs) && slices.Contains([]string{"d.nobody", "d.unseen"}, called(at.X)) {
				if text := sampleOf(x.Rhs[i]); text != "x" {
					out = append(out, text)
				}
			}
		}
	}
	return out
}

// refusalsAt are the texts of refusals that one piece of source words, and what to do then.
func refusalsAt(n ast.Node) (out []string) {
	switch x := n.(type) {
	case *ast.CallExpr:
		sel, _ := x.Fun.(*ast.SelectorExpr)
		switch name := called(x.Fun); {
		case name == "api.Errorf" && len(x.Args) > 1:
			out = append(out, sampleOf(x.Args[1]))
		case sel != nil && sel.Sel.Name == "WithHint":
			out = append(out, sampleOf(x.Args[0]))
		case name == "is" && len(x.Args) == 3: // what errors from below mean, in node/explain.go
			out = append(out, sampleOf(x.Args[1]), sampleOf(x.Args[2]))
		}
	case *ast.KeyValueExpr:
		if called(x.Key) == "Hint" {
			out = append(out, sampleOf(x.Value))
		}
	}
	return out
}

// called is an identifier, or one of another, as it is written.
func called(e ast.Expr) string {
	switch x := e.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.SelectorExpr:
		return called(x.X) + "." + x.Sel.Name
	}
	return ""
}

var verb = regexp.MustCompile(`%[a-z]|%\.?[0-9]*[a-z]`)

// sampleOf is a text as it may be read, with x for all that is not written in it.
func sampleOf(e ast.Expr) string {
	switch x := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(x.Value)
		if err != nil {
			return "x"
		}
		text = strings.ReplaceAll(text, "%q", `"x"`)
		return strings.ReplaceAll(verb.ReplaceAllString(text, "x"), "%%", "%")
	case *ast.BinaryExpr:
		return sampleOf(x.X) + sampleOf(x.Y)
	case *ast.CallExpr:
		if called(x.Fun) == "fmt.Sprintf" {
			return sampleOf(x.Args[0])
		}
	}
	return "x"
}
