package main

// tried are the tests of mutants of amendments, by package. What they do not catch is run on seeds from claimed on.
var tried = []string{"./choreo", "./workflow/amendments"}

// amendTests are those of them that are about amendments.
const amendTests = "^(TestScenarios|TestATaskIsThereForThoseWhoKnewOfIt|TestAnInstanceTakesSoManyAmendments|" +
	"TestRandomClaims|TestAPatch.*|TestPatches.*|TestWhat.*|TestThereIsRoomForAllPatches|TestAmend.*|TestAnyAmended.*)$"

// ofAmendments are mutants of changes of the definition by which an instance runs (docs/amendments.md).
var ofAmendments = []mutant{
	{name: "amended-by-anybody", what: "an amendment counts whoever said it", patches: []patch{{
		"choreo/state/claims.go", `	} else if Decides(body) {
`, `	} else if _, amends := body.(worklist.Amend); Decides(body) && !amends {
`}}},
	{name: "amended-unfit", what: "an amendment counts that does not fit what its author knew", patches: []patch{{
		"choreo/state/amend.go", `			err = s.Fits(known, f.patch)
`, `			_ = s.Fits(known, f.patch)
`}}},
	{name: "amended-without-end", what: "an instance takes more amendments than it has room for", patches: []patch{{
		"choreo/state/claims.go", `		return amendments.MaxPatches
`, `		return 10 * amendments.MaxPatches
`}}},
	{name: "amended-last-to-first", what: "of two amendments that set one key the earlier counts", patches: []patch{{
		"choreo/state/amend.go", `	slices.SortFunc(s.amends, log.ByTime)
	for _, e := range s.amends {`, `	slices.SortFunc(s.amends, func(a, b *log.Entry) int { return log.ByTime(b, a) })
	for _, e := range s.amends {`}}},
	{name: "amended-as-they-come", what: "amendments count in the order in which they came", patches: []patch{{
		"choreo/state/amend.go", `	slices.SortFunc(s.amends, log.ByTime)
	for _, e := range s.amends {`, `	for _, e := range s.amends {`}}},
	{name: "amended-once", what: "only the last amendment counts", patches: []patch{{
		"choreo/state/amend.go", `		patches := s.patches()
`, `		patches := s.patches()
		if len(patches) > 1 {
			s.amends = s.amends[len(patches)-1:]
			patches = s.patches()
		}
`}}},
	{name: "judged-by-now", what: "a fact is judged by amendments of which its author had not heard", patches: []patch{{
		"choreo/state/amend.go", `	if v.of == nil || len(s.edition.heavy) == 0 {
		return s.def`, `	if v.of != nil || len(s.edition.heavy) == 0 {
		return s.def`}}},
	{name: "judged-by-before", what: "a fact is judged as if its author knew of no amendment", patches: []patch{{
		"choreo/state/amend.go", `		case len(s.edition.heavy):
			v.def = s.def
`, `		case len(s.edition.heavy):
			v.def = s.original
`}}},
	{name: "begun-is-steered", what: "what a task waits for that has begun is amended", patches: []patch{{
		"choreo/state/claims.go", `why == "" && s.EvidenceOf(e).SteersBegun(s.fittings[e.ID].patch) {`,
		`why == "" && s.fittings[e.ID].patch == nil {`}, {
		"choreo/orders.go", `	case d.state.EvidenceOf(nil).SteersBegun(patch):`, `	case patch == nil:`}}},
	{name: "left-out-is-done", what: "a task that is left out is done all the same", patches: []patch{{
		"choreo/state/rights.go", `	return t == nil || t.Disabled
}

// MayReady`, `	return t == nil
}

// MayReady`}}},
	{name: "added-by-name", what: "the first attempt of a task that was added is named by its task alone",
		patches: []patch{{
			"choreo/state/amend.go", `	id := fact.AttemptID{Fact: fact.ID(sha256.Sum256([]byte("a task that is added: " + what.Text()))), Slot: t}
`, `	_ = sha256.Sum256([]byte(what.Text()))
	id := fact.AttemptID{Slot: t}
`}}},
	{name: "added-for-all", what: "a task that was added is there for those who had not heard of it", patches: []patch{{
		"choreo/state/amend.go", `return true, slices.ContainsFunc(x.by, func(a *log.Entry) bool { return s.log.Knew(e, a) })`,
		`return true, slices.ContainsFunc(x.by, func(a *log.Entry) bool { return e != a })`}}},
	{name: "added-elsewhere", what: "of two that add one task unlike, what the second's holder did is not in charge",
		patches: []patch{{
			"choreo/state/amend.go", `		if slices.Contains(begun, a) {
			return a
		}
`, `		if slices.Contains(begun, a) && a.Slot == nil {
			return a
		}
`}}},
	{name: "added-as-the-last", what: "of two that add one task unlike it is as the last of them says", patches: []patch{{
		"workflow/amendments/patch.go", `		case !patch.adds(x.Part) || before[x.Part] != nil:
			continue`, `		case !patch.adds(x.Part) || before == nil:
			continue`}}},
	{name: "circle-of-two", what: "two amendments that make a circle both count nothing, with all others",
		patches: []patch{{
			"workflow/amendments/patch.go", `if doubtful != nil && p.IsHeavy() && doubtful(i) && made(some[:i+1]) == nil {`,
			`if doubtful != nil && p.IsHeavy() && doubtful(i) && len(some) == 0 {`}}},
	{name: "clash-unseen", what: "that two set one key unlike is not shown", patches: []patch{{
		"choreo/state/amend.go", `			for _, c := range amendments.Clashes(a.Patch, b.Patch) {`,
		`			for _, c := range amendments.Clashes(a.Patch, b.Patch)[:0] {`}}},
	{name: "amended-when-ended", what: "an instance that has ended is amended", patches: []patch{{
		"choreo/orders.go", `	case !amendable(overall):`, `	case overall == "" && !amendable(overall):`}}},
}
