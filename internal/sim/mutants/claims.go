package main

// claimed is the first seed whose people's tasks are claimed (sim.Claimed).
const claimed = 20_000_000

// ofClaims are mutants of what people claim of their work (docs/worklists.md). They are run
// from that seed on.
var ofClaims = []mutant{
	{name: "claims-of-others", what: "anybody claims what others hold", patches: []patch{{
		"choreo/state/claims.go", `	case a.Partner != e.Fact.Chain.Author && !Adopts(c.Body()) && !s.OrderedInStead(e, a, c.Body()):
		return nil, "its author does not hold the attempt"
`, ``}}},
	{name: "in-stead-at-once", what: "anybody has done once more what has not failed, by order", patches: []patch{{
		"choreo/state/instead.go", `	return slices.ContainsFunc(a.Rulings, func(r *Ruling) bool {
		return r.Action.Kind`, `	return len(a.Rulings) == 0 || slices.ContainsFunc(a.Rulings, func(r *Ruling) bool {
		return r.Action.Kind`}}},
	{name: "word-unsigned", what: "a person's word need not be signed by the person", patches: []patch{{
		"node/credentials.go", `		if err := said.Signature.Verify(signed); err != nil {`,
		`		if err := said.Signature.Verify(signed); err != nil && said.Signature.Key == "" {`}}},
	{name: "own-certificate", what: "who certified a user's key is not asked", patches: []patch{{
		"membership/users/spoken.go", `	if err := s.Device.Authentic(m); err != nil {`,
		`	if err := s.Device.Authentic(m); err != nil && len(s.Device.Chain) == 0 {`}}},
	{name: "word-again", what: "a word that was written down before counts again", patches: []patch{{
		"choreo/state/claims.go", `if s.EvidenceOf(e).any(said) {`, `if len(said) > 1000 {`}}},
	{name: "role-not-shown", what: "a grant to somebody without the role counts", patches: []patch{{
		"worklist/rights.go", `	case !it.maydo(b, f.User, f.Roles):`, `	case f.Partner == "":`}}},
	{name: "nobodys-close", what: "a task that asks for a role ends by a close with nobody's result", patches: []patch{{
		"choreo/state/claims.go", `	s.peoples.closed = append(s.peoples.closed, a.ID)
`, `	s.peoples.closed = append(s.peoples.closed, a.ID)
	s.peoples.done[a.ID] = firstOf(s.peoples.done[a.ID], e)
`}}},
	{name: "given-twice", what: "what somebody has is given to others who ask", patches: []patch{{
		"worklist/ask.go", `	case it.open != nil && !mine:
`, `	case it.open != nil && !mine && r.User == "":
`}}},
	{name: "late-is-refused", what: "a result under a grant that ended is refused and not kept", patches: []patch{{
		"choreo/claims.go", `	case to != p.User:
		return Claimed{}, fmt.Errorf("%w: %s was not given to you: select it first"`, `	case !open || to != p.User:
		return Claimed{}, fmt.Errorf("%w: %s was not given to you: select it first"`}}},
	{name: "release-ignored", what: "what is given back stays with whoever had it", patches: []patch{{
		"worklist/rights.go", `		it.finish(h, f, "given back")
`, ``}}},
	{name: "passed-on-and-kept", what: "whoever had an item that is passed on keeps it", patches: []patch{{
		"worklist/rights.go", `		it.finish(it.open, f, string(x.Cause))
	}
	if x.To == "" {`, `		_ = it.open
	}
	if x.To == "" {`}}},
	{name: "passed-by-anybody", what: "whoever asks passes an item on", patches: []patch{{
		"worklist/pass.go", `	case !has && b.MayOrder(by.User, by.Roles) != "":`,
		`	case !has && by.User == "":`}}},
	{name: "passed-to-nobody", what: "people do not see what was passed to their role", patches: []patch{{
		"node/items.go", `		switch may := sees && entitled(v.Role, who, at, r.At); {`,
		`		switch may := sees && entitled(v.Task.Role, who, at, r.At); {`}}},
	{name: "passed-role-does-not-count",
		what: "an item that was passed to a role is not ended by whoever shows that one", patches: []patch{{
			"choreo/state/people.go", `			out = append(out, x.Role)
`, `			_ = x
`}}},
	{name: "passed-from-the-next", what: "an item that somebody else has taken meanwhile is passed on",
		patches: []patch{{
			"worklist/pass.go", `	case h != nil && !h.has(x.Grant):`, `	case h != nil && x.Item.Slot == "":`}, {
			"worklist/rights.go", `	case !x.Grant.IsZero() && (it.open == nil || !it.open.has(x.Grant)):`,
			`	case !x.Grant.IsZero() && x.Item.Slot == "":`}}},
	{name: "dismissed-keeps", what: "a user who is removed or loses the role keeps what it has", patches: []patch{{
		"worklist/decide.go", `	if !known && !p.Unsure || !it.maydo(d.b, h.User, p.Roles) {`,
		`	if !known && it.maydo(d.b, h.User, p.Roles) && h.User == "" {`}}},
	{name: "first-grant-prevails", what: "of two grants that did not know of each other the first counts, whatever was done under it", patches: []patch{{
		"worklist/rights.go", `	case it.prevails(b, h, was):`, `	case false && it.prevails(b, h, was):`}}},
	{name: "read-as-they-come", what: "claims are read in the order in which they came", patches: []patch{{
		"worklist/item.go", `	if at == len(it.facts)-1 && !it.mayUnseat(b, f) {`,
		`	if at >= 0 || !it.mayUnseat(b, f) {`}}},
	{name: "told-early", what: "a person is told before the commit", patches: []patch{{
		"node/round.go", `s.batch.after = append(s.batch.after, ending{e.of, e.after})`, `e.after(nil)`}}},
	{name: "kept-in-memory", what: "what was done out of reach is kept in memory only", patches: []patch{{
		"node/worklists/kept.go", `	if err := d.in.Store.CommitWait(append(with, k.write())); err != nil {
		return err
	}
	d.nowKept(k)
	return nil`, `	d.nowKept(k)
	return nil`}}},
	{name: "never-handed-in", what: "what was done out of reach is not handed in", patches: []patch{{
		"node/worklists/deliver.go", `			if err := d.handIn(ctx, k); err != nil {`, `			if k.Slot != "" {
				continue
			}
			if err := d.handIn(ctx, k); err != nil {`}}},
	{name: "never-closed", what: "a result of whoever has an item does not end it", patches: []patch{{
		"worklist/decide.go", `		if it.open == nil || w.hold != it.open || w.void() != "" {
			continue`, `		if it.open == nil || w.hold != it.open || w.fact.User != "" {
			continue`}}},
	{name: "results-empty", what: "a task ends without what the person handed in", patches: []patch{{
		"choreo/tries.go", `		if end.Outputs, err = d.state.Written(a.Task, res); err != nil {`,
		`		if _, err = d.state.Written(a.Task, res); err != nil {`}}},
	{name: "given-without-end", what: "one person may take one item again and again", tested: true, patches: []patch{{
		"choreo/idled.go", `n >= fact.MaxGrants {`, `n >= 100*fact.MaxGrants {`}}},
	{name: "first-role-only", what: "of a person's roles only the first counts for a list", patches: []patch{{
		"node/items.go", `	for _, r := range who.Roles {
		if r == role {
			return true
		}
	}`, `	for i, r := range who.Roles {
		if i == 0 && r == role {
			return true
		}
	}`}}},
	{name: "locked-anyway", what: "what may not be done out of reach is locked", patches: []patch{{
		"worklist/rights.go", `	case x.Mode == Lock && !it.Task.Offline:`,
		`	case x.Mode == Lock && f.Partner == "":`}, {
		"worklist/ask.go", `	case (r.Mode == Lock || len(r.With) > 0) && !it.Task.Offline:`,
		`	case len(r.With) > 0 && !it.Task.Offline:`}}},
	{name: "ordered-by-anybody", what: "an order counts whoever gave it", patches: []patch{{
		"choreo/state/claims.go", `	} else if Decides(body) {
`, `	} else if Adopts(body) {
`}}},
	{name: "ordered-when-told", what: "a node writes down and carries out what anybody orders", patches: []patch{{
		"worklist/board.go", `	if f.User != "" && f.User == b.terms.Responsible {`, `	if f.User != "" {`}, {
		"choreo/orders.go", `	return u == s.Responsible() || s.Definition()`, `	return u != "" || s.Definition()`}}},
	{name: "again-without-order", what: "what failed is done once more though nobody ordered it", patches: []patch{{
		"choreo/state/verdicts.go", `	case !orderedAgain(o, a) || !s.log.Knew(e, o):`,
		`	case o != nil && !orderedAgain(o, a) && o.ID == (fact.ID{}):`}}},
	{name: "again-once-more", what: "an order to do something again is carried out without end", patches: []patch{{
		"choreo/state/verdicts.go", `	case slices.ContainsFunc(a.Assigns, followed):`,
		`	case len(a.Assigns) > 1000 && slices.ContainsFunc(a.Assigns, followed):`}, {
		"choreo/state/converge.go", `			if next := s.doneAgain(sl.Current); next != nil {
				sl.Current = next
				continue
			}
`, `			if next := s.doneAgain(sl.Current); next != nil && len(sl.Attempts) > 1000 {
				sl.Current = next
				continue
			}
`}}},
	{name: "stopped-goes-on", what: "what is stopped by order goes on", patches: []patch{{
		"choreo/tries.go", `		return d.stop(a, o)
`, `		_ = o
		return false
`}}},
	{name: "adopted-by-anybody", what: "a result is adopted whoever says so", patches: []patch{{
		"choreo/state/claims.go", `	} else if Decides(body) {
`, `	} else if Decides(body) && !Adopts(body) {
`}}},
	{name: "adopted-twice", what: "a result is adopted although its task is done", patches: []patch{{
		"choreo/state/adopting.go", `	case slices.ContainsFunc(a.Slot.Attempts, ended), s.closedWell(e, a):`,
		`	case a.Slot.Dropped != nil && (slices.ContainsFunc(a.Slot.Attempts, ended) || s.closedWell(e, a)):`}, {
		"choreo/state/adopting.go", `	case slices.ContainsFunc(a.Slot.Attempts, done), taken && !took.Failed:`,
		`	case took.Failed && taken && done(a):`}}},
	{name: "adopted-failure", what: "a result that says that the task failed is adopted as a success",
		patches: []patch{{
			"choreo/state/adopting.go", `	case x.Failed:
		return nil, "there is nothing to adopt of a failure"
`, ``}}},
	{name: "adopted-empty", what: "an adopted result brings no data", patches: []patch{{
		"choreo/state/adopting.go", `	e.Word.Adopted = out
`, `	_ = out
`}}},
	{name: "adopted-and-kept", what: "whoever has the item of which a result is adopted keeps it", patches: []patch{{
		"worklist/rights.go", `		it.finish(it.open, f, "a result was adopted")
`, `		_ = it.open
`}}},
	{name: "revoked-is-closed", what: "a close by a holder that lies takes a result under a grant that it had ended",
		patches: []patch{{
			"worklist/rights.go", `	case slices.ContainsFunc(w.hold.after, func(id ID) bool { return b.knew(f.ID, id) }):`, `	case len(w.hold.after) > 1000:`}}},
	{name: "administrators-decide-nothing", what: "who has the role of administrators may not decide",
		patches: []patch{{
			"worklist/board.go", `f.hasRole(b.terms.Administrators) {`,
			`f.hasRole(b.terms.Administrators) && f.User == "" {`}}},
	{name: "revoked-counts", what: "a result counts although its holder knew that the grant had ended",
		patches: []patch{{
			"worklist/rights.go", `	case slices.ContainsFunc(w.hold.after, func(id ID) bool { return b.knew(f.ID, id) }):`, `	case len(w.hold.after) > 1000:`}, {
			"worklist/decide.go", `		if it.open == nil || w.hold != it.open || w.void() != "" {
			continue`, `		if w.hold == nil {
			continue`}}},
	{name: "given-unoffered", what: "an item is given to somebody to whom it was not offered", patches: []patch{{
		"worklist/ask.go", `	return it.under == b.policyFact() && (it.all || it.to[u])
`, `	return true
`}}},
	{name: "offered-to-the-gone", what: "an item is not offered anew when nobody is here of those who were told",
		patches: []patch{{
			"worklist/policy.go", `	case first || lost:
`, `	case first:
`}}},
	{name: "first-policy-stays", what: "a change of policy counts only if there was none before", patches: []patch{{
		"worklist/board.go", `	if b.notify == nil || b.notify.compare(f) < 0 {`, `	if b.notify == nil {`}}},
	{name: "offered-by-no-policy", what: "an offer by a policy that there is not takes earlier ones back",
		patches: []patch{{
			"worklist/rights.go", `	case !x.Under.IsZero() && !b.changes(x.Under, f):
		return "it names no change of policy that it knew"
`, ``}}},
	{name: "pulled-for-all", what: "whom a mechanism does not let see an item may take it", patches: []patch{{
		"choreo/state/items.go", `Limited: s.Pulled(a),`, `Limited: s.Pulled(a) && a.Slot == nil,`}}},
	{name: "pulled-drawn", what: "a performer is drawn for what waits to be taken", tested: true, patches: []patch{{
		"choreo/perform.go", `o.state.ForOthers(a) || waits:`, `o.state.ForOthers(a) || waits && a.Slot == nil:`}}},
	{name: "pulled-after-given", what: "what was given to a partner still waits to be taken by the apt", tested: true, patches: []patch{{
		"choreo/state/offers.go", `s.Mechanism().Pulls() && !a.given()`, `s.Mechanism().Pulls()`}}},
	{name: "pulled-for-ever", what: "the patience of Sel-push-pull has no end", tested: true, patches: []patch{{
		"choreo/untaken.go", `	return offered < patience,`, `	return offered < patience || a.Slot != nil,`}}},
}
