package main

// tried are the tests of mutants of amendments, by package. What they do not catch is run on seeds from claimed on.
var tried = []string{"./choreo", "./dataflow", "./workflow/amendments"}

// amendTests are those of them that are about amendments.
const amendTests = "^(TestScenarios|TestATaskIsThereForThoseWhoKnewOfIt|TestAnInstanceTakesSoManyAmendments|" +
	"TestRandomClaims|TestRandomLoops|TestRandomStandIns|TestWho.*|TestStandIns.*|TestALoop.*|TestRounds.*|TestAsMany.*|TestConstraintsThat.*|TestAPatch.*|TestPatches.*|TestWhat.*|TestThereIsRoomForAllPatches|TestAmended.*|" +
	"TestAChanged.*|TestChanged.*|TestATrigger.*|TestAnyAmendedFlow)$"

// ofAmendments are mutants of changes of the definition by which an instance runs (docs/amendments.md).
var ofAmendments = []mutant{
	{name: "amended-by-anybody", what: "an amendment counts whoever said it", patches: []patch{{
		"choreo/state/claims.go", `	} else if Decides(body) {
`, `	} else if _, amends := body.(worklist.Amend); Decides(body) && !amends {
`}}},
	{name: "amended-unfit", what: "an amendment counts that does not fit what its author knew", patches: []patch{{
		"choreo/state/amend.go", `		f.patch, err = s.Fits(known, p)
`, `		f.patch, _ = s.Fits(known, p)
`}}},
	{name: "reads-as-now", what: "what was begun reads what others amended meanwhile", patches: []patch{{
		"choreo/state/attempts.go", `		if in := v.reading(a); !slices.Equal(`, `		if in := a.Task.In; !slices.Equal(`}}},
	{name: "misses-as-now", what: "who knew of no file under in may say that it is lost", patches: []patch{{
		"choreo/state/files.go", `		v = v.s.EvidenceOf(began)
`, `		v = v.s.EvidenceOf(nil)
`}}},
	{name: "amended-without-end", what: "an instance takes more amendments than it has room for", patches: []patch{{
		"choreo/state/claims.go", `		return amendments.MaxPatches
`, `		return 10 * amendments.MaxPatches
`}}},
	{name: "amended-last-to-first", what: "of two amendments that set one key the earlier counts", patches: []patch{{
		"choreo/state/edition.go", `	slices.SortFunc(s.amends, log.ByTime)
	for _, e := range s.amends {`, `	slices.SortFunc(s.amends, func(a, b *log.Entry) int { return log.ByTime(b, a) })
	for _, e := range s.amends {`}}},
	{name: "amended-as-they-come", what: "amendments count in the order in which they came", patches: []patch{{
		"choreo/state/edition.go", `	slices.SortFunc(s.amends, log.ByTime)
	for _, e := range s.amends {`, `	for _, e := range s.amends {`}}},
	{name: "amended-once", what: "only the last amendment counts", patches: []patch{{
		"choreo/state/fold.go", `		patches := s.patches()
`, `		patches := s.patches()
		if len(patches) > 1 {
			s.amends = s.amends[len(patches)-1:]
			patches = s.patches()
		}
`}}},
	{name: "judged-by-now", what: "a fact is judged by amendments of which its author had not heard", patches: []patch{{
		"choreo/state/evidence.go", `	if v.of == nil || len(s.edition.heavy) == 0 {
		return s.def`, `	if v.of != nil || len(s.edition.heavy) == 0 {
		return s.def`}}},
	{name: "judged-by-before", what: "a fact is judged as if its author knew of no amendment", patches: []patch{{
		"choreo/state/evidence.go", `		case len(s.edition.heavy):
			v.def = s.def
`, `		case len(s.edition.heavy):
			v.def = s.original
`}}},
	{name: "answered-as-now", what: "a failure is answered as an amendment says of which its judge had not heard",
		patches: []patch{{
			"choreo/state/verdicts.go", `	t := cmp.Or(s.EvidenceOf(e).task(a.Task), a.Task)
`, `	t := a.Task
`}}},
	{name: "stand-in-heard-everywhere", what: "a task hears of what stands in for it, and may wait for itself",
		patches: []patch{{"choreo/state/circles.go", `	keep(&s.rounds, s.manyEditions(), key, round)
	return round
`, `	keep(&s.rounds, s.manyEditions(), key, round)
	return false
`}}},
	{name: "stand-in-for-its-own-alone", what: "what stands in for a task by way of another is not held to come after it",
		patches: []patch{{"workflow/graph.go", `	c := d.Task(t.Contingency)
	for range maxContingencies {`, `	c := d.Task(t.Contingency)
	for range 1 {`}}},
	{name: "stand-in-forgotten", what: "what stood in for others is lost once no other names it", patches: []patch{{
		"workflow/amendments/patch.go", `	stand = slices.Compact(stand)
`, `	stand = slices.Compact(stand)
	for _, t := range stand {
		delete(out, Part{OfTask, string(t)})
	}
	stand = nil
`}}},
	{name: "stand-in-unseen", what: "rules do not hear of what stands in by an earlier definition", patches: []patch{{
		"choreo/state/standins.go", `	if len(s.edition.heavy) == 0 || s.filled[at] ||
`, `	if len(s.edition.heavy) >= 0 || s.filled[at] ||
`}}},
	{name: "stand-in-as-first",
		what: "what two add unlike to stand in does what the first says, though it was given as the other",
		patches: []patch{{
			"choreo/state/standins.go", `	return s.amended(cmp.Or(s.EvidenceOf(e).under().Task(t), s.def.Task(t)))
`, `	return cmp.Or(s.def.Task(t), s.EvidenceOf(e).under().Task(t))
`}}},
	{name: "begun-is-steered", what: "what a task waits for that has begun is amended", patches: []patch{{
		"choreo/state/claims.go", `why == "" && s.EvidenceOf(e).SteersBegun(s.fittings[e.ID].patch) {`,
		`why == "" && len(s.fittings[e.ID].patch.Patch) < 0 {`}, {
		"choreo/orders.go", `	case d.state.EvidenceOf(nil).SteersBegun(patch):`, `	case len(patch.Patch) < 0:`}}},
	{name: "left-out-is-done", what: "a task that is left out is done all the same", patches: []patch{{
		"choreo/state/rights.go", `	return t == nil || t.Disabled
}

// MayReady`, `	return t == nil
}

// MayReady`}}},
	{name: "added-by-name", what: "the first attempt of a task that was added is named by its task alone",
		patches: []patch{{
			"choreo/state/edition.go", `	id := fact.AttemptID{Fact: fact.ID(sha256.Sum256([]byte(text))), Slot: t}
`, `	_ = sha256.Sum256([]byte(text))
	id := fact.AttemptID{Slot: t}
`}}},
	{name: "added-for-all", what: "a task that was added is there for those who had not heard of it", patches: []patch{{
		"choreo/state/edition.go", `return true, slices.ContainsFunc(x.by, func(a *log.Entry) bool { return s.log.Knew(e, a) })`,
		`return true, slices.ContainsFunc(x.by, func(a *log.Entry) bool { return e != a })`}}},
	{name: "added-elsewhere", what: "of two that add one task unlike, what the second's holder did is not in charge",
		patches: []patch{{
			"choreo/state/edition.go", `		if slices.Contains(begun, a) {
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
	{name: "round-is-gone", what: "a round that no loop has any more is not there, though facts name it", patches: []patch{{
		"workflow/amendments/patch.go", `			if _, there := all[t]; !there { // of several the first counts
`, `			if _, there := all[t]; !there && len(patches) == 0 {
`}}},
	{name: "round-of-each", what: "a round that two add alike is two attempts", patches: []patch{{
		"workflow/amendments/meant.go", `		return fmt.Sprintf("round %s of %s %s, in %s", x.Round, x.Of, x.Beside, x.home), x.home
`, `		return m.Text(), x.home
`}}},
	{name: "round-forgotten", what: "a loop has fewer rounds than have begun", patches: []patch{{
		"workflow/amendments/meant.go", `			if round.Beside == "" {
				m.steered`, `			if round.Beside == "no" {
				m.steered`}}},
	{name: "rounds-without-end", what: "an amendment adds more rounds than there is room for", patches: []patch{{
		"workflow/amendments/meant.go", `	if tasks <= most && bytes <= mostBytes {
`, `	if tasks <= most || bytes <= mostBytes {
`}}},
	{name: "added-key-by-key", what: "constraints of one name that two add unlike are put together key by key", patches: []patch{{
		"workflow/amendments/patch.go", `			case p.alone[x.Part] && before[x.Part] != nil: // another has added it
`, `			case p.alone[x.Part] && before == nil:
`}}},
	{name: "circle-of-two", what: "two amendments that make a circle both count nothing, with all others",
		patches: []patch{{
			"workflow/amendments/patch.go", `if odd || p.IsHeavy() && unsure && made(some[:i+1]) == nil {`,
			`if odd || p.IsHeavy() && unsure && len(some) == 0 {`}}},
	{name: "undone-as-now", what: "a compensation that has begun goes on as another that was put in its place elsewhere",
		patches: []patch{{
			"choreo/state/attempts.go", `	if a.Start == e {
`, `	if a.Start == nil {
`}}},
	{name: "undone-by-nobody", what: "a compensation that has begun counts no more, as it was taken out elsewhere",
		patches: []patch{{
			"choreo/state/attempts.go", `	s.undoneElsewhere(b.Attempt, e)
`, ``}}},
	{name: "turned-by-two", what: "two amendments together make a task one that only undoes others", patches: []patch{{
		"choreo/state/edition.go", `	if t, why := amendments.Turned(x.Def, d); why != "" {`,
		`	if t, why := amendments.Turned(x.Def, d); why == "?" {`}}},
	{name: "trigger-of-now", what: "that a trigger fired counts no more, as it was taken out elsewhere", patches: []patch{{
		"choreo/state/rights.go", `	case trigger && v.task(a.Slot.Task).TimeToWait == 0:`,
		`	case trigger && a.Slot.Task.TimeToWait == 0:`}}},
	{name: "limit-from-now", what: "a limit that is new counts from when it was heard of", patches: []patch{{
		"choreo/ownclocks.go", `		from = max(from, d.noticedFor(a))
`, `		from = max(from, 0)
`}}},
	{name: "trigger-from-now", what: "the trigger of a task that is new counts from when that was heard of",
		patches: []patch{{
			"choreo/ownclocks.go", `	return was == nil || limit(was) == 0
`, `	return was != nil && limit(was) == 0
`}}},
	{name: "limit-gone-for-all", what: "with a limit that goes and a time-to-wait that needs it no amendment counts",
		patches: []patch{{
			"workflow/amendments/patch.go", `x.Key == "timeout" && len(x.Value) == 0
`, `x.Key == "timeout" && len(x.Value) == 1
`}}},
	{name: "passing-by-now", what: "a transfer by a deadline counts no more, as that was taken away elsewhere",
		patches: []patch{{
			"choreo/state/passing.go", `	switch t := v.task(a.Task); {
`, `	switch t := a.Task; {
`}, {"choreo/state/passing.go", `s.transferBy(v.under(), t) == 0`, `s.transferBy(s.def, t) == 0 && v != nil`}}},
	{name: "extended-for-ever", what: "what was extended is never due by an amendment that comes later", patches: []patch{{
		"worklist/rights.go", `	if f.isBefore(it.Task.Renewed) {
`, `	if f.isBefore(it.Task.Renewed) && it.due == nil && f.User == "" {
`}}},
	{name: "passed-for-ever", what: "what has passed on passes by no deadline any more that it is given by an amendment",
		patches: []patch{{
			"worklist/rights.go", `	return r.IsZero() || b.knew(f.ID, r)
`, `	return r.IsZero() || f.ID != r
`}}},
	{name: "due-from-now", what: "a new deadline counts from when the node was started", patches: []patch{{
		"choreo/deadline.go", `	if a.Noticed == m.loaded {
`, `	if a.Noticed == m.loaded && m.loaded == 0 {
`}}},
	{name: "start-prevails", what: "what an instance's start says of warnings and transfers is in place of an amendment",
		patches: []patch{{
			"choreo/state/people.go", `x.Transfer > 0 && is == cmp.Or(was.Transfer, s.original.Transfer):`,
			`x.Transfer > 0:`}, {"choreo/state/people.go", `	x, was := s.log.Genesis().Fact.Body.Annex, cmp.Or(s.original.Task(t.Name), &workflow.Task{})
	is := cmp.Or(t.Transfer, d.Transfer)
`, `	x, is := s.log.Genesis().Fact.Body.Annex, cmp.Or(t.Transfer, d.Transfer)
`}}},
	{name: "placed-as-the-first", what: "a task in a partition that two add unlike is at whoever the first named",
		patches: []patch{{
			"choreo/state/placing.go", `(at == "" || x.Moves) && s.log.Knew(e, x.By) {`, `(at == "" || x.Moves) && e != nil {`}}},
	{name: "placed-at-nobody", what: "an amendment counts that says of no new partition who has it", patches: []patch{{
		"choreo/state/placing.go", `	if len(parts) > 0 {
`, `	if len(parts) > len(at)+1 {
`}}},
	{name: "brought-in-by-nobody", what: "to whom an amendment gives a partition takes no part", patches: []patch{{
		"choreo/state/claims.go", `			s.join(who, e)
		}
	}
	s.peoples.unheard`, `			s.former[who] = nil
		}
	}
	s.peoples.unheard`}}},
	{name: "moved-for-ever", what: "what came by somebody who knew of a move is given back", patches: []patch{{
		"choreo/giveon.go", `to != m.self && !m.log.Knew(a.Assigned, by)`, `to != m.self && by != nil`}}},
	{name: "added-where-it-was", what: "a task that is new in a partition that moved is at whoever had that first",
		patches: []patch{{
			"choreo/state/placing.go", `(at == "" || x.Moves) && s.log.Knew(e, x.By) {`, `at == "" && s.log.Knew(e, x.By) {`}}},
	{name: "undoing-takes-over", what: "what others began is gone where a task of its name is added that only undoes",
		patches: []patch{{
			"workflow/amendments/patch.go", `		if odd || p.IsHeavy()`, `		if odd && len(p.Patch) == 0 || p.IsHeavy()`}}},
	{name: "undoing-for-ever", what: "what undoes nothing any more is not gone, and what takes it away does not count",
		patches: []patch{{
			"workflow/amendments/patch.go", `		if !named[t] {
			delete(out,`, `		if !named[t] && t == "" {
			delete(out,`}}},
	{name: "clash-unseen", what: "that two set one key unlike is not shown", patches: []patch{{
		"choreo/state/incidents.go", `			for _, c := range amendments.Clashes(a.Patch, b.Patch) {`,
		`			for _, c := range amendments.Clashes(a.Patch, b.Patch)[:0] {`}}},
	{name: "amended-when-ended", what: "an instance that has ended is amended", patches: []patch{{
		"choreo/orders.go", `	case !amendable(overall):`, `	case overall == "" && !amendable(overall):`}}},
	{name: "flow-goes-by-all", what: "a history goes by amendments of which whoever kept it had not heard", patches: []patch{{
		"choreo/state/line.go", `s.flowBy(s.heavyIn(s.edition.heavy, e))`, `s.flowBy(s.edition.heavy)`}}},
	{name: "flow-never-taken-up", what: "whoever keeps the data states goes by no amendment", patches: []patch{{
		"choreo/flows.go", `	case d.state.TakesUp():`, `	case d.state.TakesUp() && a.Slot == nil:`}}},
	{name: "fired-as-now", what: "what was fired does what its trigger says after an amendment of which nobody knew",
		patches: []patch{{
			"choreo/state/flow.go", `	by := s.EvidenceOf(e).under()
`, `	by := s.def
`}}},
	{name: "defaults-unseen", what: "new data of a flow have no default", patches: []patch{{
		"dataflow/amend.go", `		case d.Default != nil && b.flow.def.Datum(d.Name) == nil:`,
		`		case d.Default != nil && d.Name == "":`}}},
	{name: "end-with-pending", what: "an end that is new ends an instance although transitions are pending", patches: []patch{{
		"dataflow/board.go", `	case b.isFinal() && len(b.pending) == 0:`, `	case b.isFinal():`}}},
	{name: "end-too-early-where-new", what: "where an end is new, a result is final while others are pending",
		patches: []patch{{
			"dataflow/board.go", `	before := b.write(b.differing(updates))
	final := b.isFinal() && b.strict == 0`, `	was := b.isFinal()
	before := b.write(b.differing(updates))
	final := !was && b.isFinal() && b.strict == 0`}}},
	{name: "end-new-at-once", what: "a flow goes by an end that is new though several transitions are pending",
		patches: []patch{{
			"dataflow/amend.go", `	if left < 2 || f.final < 0 {`, `	if left < 9 || f.final < 0 {`}}},
	{name: "pending-for-nobody", what: "what is pending of a trigger that is gone stays so", patches: []patch{{
		"dataflow/amend.go", `		if _, has := f.of[p.Task.Name]; !has {`, `		if _, has := f.of[p.Task.Name]; !has && at < 0 {`}}},
	{name: "past-as-it-was", what: "equivalence is asked by conditions that there are no more", patches: []patch{{
		"dataflow/amend.go", `		r.satisfies, r.broken = string(past.bits), past.broken
`, `		r.broken = past.broken
`}}},
	{name: "left-out-though-ready", what: "what was ready by its holder's word is not done, as it was left out elsewhere",
		patches: []patch{{
			"choreo/state/rights.go", `	case v.disabled(sl) && !v.begun(sl): //`, `	case v.disabled(sl): //`}}},
	{name: "unfit-value-stays", what: "data have a value that they may not have, as somebody added them unlike",
		patches: []patch{{
			"choreo/state/data.go", `	return workflow.HasType(it.decl, v)
}

// unwritten`, `	return workflow.HasType(it.decl, v) || true
}

// unwritten`}}},
	{name: "narrowed-value-is-gone",
		what: "a value is gone that was within the limits as its author knew, as others narrowed them",
		patches: []patch{{
			"choreo/state/data.go", `	return workflow.HasType(it.decl, v)
`, `	_, err := workflow.CheckValue(it.decl, v)
	return err == nil
`}}},
	{name: "keeper-of-now", what: "a unit does not count that was given as its keeper knew the resource",
		patches: []patch{{
			"choreo/state/resources.go", `		decl := resourceOf(knew, r)
`, `		decl := resourceOf(s.def, r)
		_ = knew
`}}},
	{name: "keeper-by-the-first",
		what: "a unit does not count that was given where others put the partition elsewhere first",
		patches: []patch{{
			"choreo/state/resources.go", `own == nil && s.firstAt(part, e) != author`,
			`own == nil && s.holder[part] != author`}}},
	{name: "data-of-now", what: "a result is judged by data of which its author did not know", patches: []patch{{
		"choreo/state/evidence.go", `	def := v.under()
	if def == v.s.def {
		return v.s.decls[n]`, `	def := v.under()
	if def != nil {
		return v.s.decls[n]`}}},
	{name: "left-with-its-tasks", what: "of an amendment that does not go together with others no task is there",
		patches: []patch{{
			"workflow/amendments/patch.go", `	return []Patch{adds, idle, nil}`, `	return []Patch{adds, idle[:0], nil}`}}},
}
