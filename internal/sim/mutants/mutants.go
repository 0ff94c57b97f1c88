package main

import "slices"

// mutant is a broken variant.
type mutant struct {
	name, what string
	patches    []patch
	variant    string // of the simulated world (sim.Variant)
	first      uint64 // the first seed that it is run on; 0: any
	tested     bool   // by the tests of amendments and the scenarios, before any seed
}

// mutants are all.
var mutants = slices.Concat(general, from(claimed, ofClaims), from(equipped, ofUnits), from(linked, ofLinks), from(driven, ofFlows),
	from(prompt, ofInstant), from(absences, ofAbsences), from(claimed, tested(ofAmendments)))

// from has mutants run from a seed on.
func from(first uint64, ms []mutant) []mutant {
	for i := range ms {
		ms[i].first = first
	}
	return ms
}

// tested has mutants run by the tests of amendments first.
func tested(ms []mutant) []mutant {
	for i := range ms {
		ms[i].tested = true
	}
	return ms
}

var general = []mutant{
	{name: "no-fsync", what: "facts are sent before they are synced; a crash loses what was not", variant: "no-sync"},
	{name: "wall-clock", what: "waits are clocked by the wall clock", variant: "wall-clock"},
	{name: "ack-early", what: "an acknowledgement is sent before the commit", patches: []patch{{
		"node/round.go", `	if err := s.commit(b); err != nil {
		s.lose(b, err)
		return
	}
	out := s.n.newOutbox()
	for _, x := range b.ready {
		s.n.index.Put(x.h.id, x.h.sum) // what is started asks whether the instance is here
	}
	s.oweThose(&b)
	for _, k := range slices.SortedFunc(maps.Keys(b.heads), headsKey.compare) {
		s.tellHeads(out, k.to, b.heads[k], k.mode)
	}
`, `	out := s.n.newOutbox()
	s.oweThose(&b)
	for _, x := range b.acks {
		s.tellOwed(out, x.h.id)
	}
	for _, k := range slices.SortedFunc(maps.Keys(b.heads), headsKey.compare) {
		s.tellHeads(out, k.to, b.heads[k], k.mode)
	}
	out.flush()
	out = s.n.newOutbox()
	if err := s.commit(b); err != nil {
		s.lose(b, err)
		return
	}
	for _, x := range b.ready {
		s.n.index.Put(x.h.id, x.h.sum)
	}
`}}},
	{name: "send-early", what: "facts are sent before the commit", patches: []patch{{
		"node/round.go", `	if err := s.commit(b); err != nil {
		s.lose(b, err)
		return
	}
	out := s.n.newOutbox()
`, `	out := s.n.newOutbox()
	for _, x := range b.ready {
		for _, p := range x.r.Tell {
			s.send(out, x.h, p)
		}
	}
	out.flush()
	out = s.n.newOutbox()
	if err := s.commit(b); err != nil {
		s.lose(b, err)
		return
	}
`}}},
	{name: "no-fencing", what: "anybody's word about an attempt counts", patches: []patch{{
		"choreo/state/attempts.go", `	case a.Partner != e.Fact.Chain.Author:
		return "its author does not hold the attempt"
`, ``}}},
	{name: "any-action", what: "a verdict may do to a task what its author did not choose", patches: []patch{{
		"choreo/state/verdicts.go", `return act.Kind == kind && act.Task == t.Contingency`,
		`return act.Kind == kind || act.Task == t.Contingency || true`}}},
	{name: "two-guardians", what: "every partner judges as if it were the first of the succession", patches: []patch{{
		"choreo/office.go", `slices.Index(judges, o.self); i >= 0 {
		return time.Duration(i)`, `slices.Index(judges, o.self); i >= 0 {
		return 0`}}},
	{name: "late-verdict-counts", what: "a verdict counts although its author knew of the success", patches: []patch{{
		"choreo/state/verdicts.go", `return s.certain(e, ok)`, `return false && s.certain(e, ok)`}, {
		"choreo/state/waits.go", `return sl.Dropped == nil && !sl.State.Done() && sl.Pick == nil && sl.Pending == nil && sl.Current.Success() == nil`, `return sl.Pending == nil && len(sl.Current.Rulings) == 0`}}},
	{name: "judged-again", what: "a node that is presumed to have failed is judged again and again", patches: []patch{{
		"choreo/waits.go", `a.Partner == d.self || !sl.Unjudged() || !d.state.Wanted(a)`,
		`a.Partner == d.self || !d.state.Wanted(a) || a.Success() != nil`}}},
	{name: "no-lifting", what: "after a presumed block its holder may not go on", patches: []patch{{
		"choreo/state/converge.go", `a.Off == nil && !sl.over() &&`, `a.Off == nil && sl.Outcome == nil &&`}}},
	{name: "disarmed", what: "a failure disarms an emergency trigger", patches: []patch{{
		"contingency/contingency.go", `	if waits && (f.Dropped`, `	if false && waits && (f.Dropped`}}},
	{name: "overtaking", what: "a contingency starts before what its slot waits for", patches: []patch{{
		"choreo/state/slot.go", `return a.Ready != nil || a.Start != nil })`,
		`return a.Ready != nil || a.Start != nil || a.Depth > 1 })`}}},
	{name: "arrival-order", what: "of two successes the one counts that came first to this node", patches: []patch{{
		"choreo/state/converge.go", `return log.ByTime(a.Success(), b.Success())`,
		`return cmp.Or(a.Success().Index-b.Success().Index, log.ByTime(a.Success(), b.Success()))`}}},
	{name: "undo-early", what: "what lost is compensated before it is settled", patches: []patch{{
		"choreo/state/compensate.go", `return !slices.ContainsFunc(a.Users, builtUponIt) && s.settled(a.Slot)`,
		`return true || slices.ContainsFunc(a.Users, builtUponIt)`}}},
	{name: "undo-what-stands", what: "what lost once is compensated although it stands again", patches: []patch{{
		"choreo/state/compensate.go", `(a.Stands == Superseded || a.toUndo) && a.Success() != nil && a.Undo.Start == nil`,
		`(len(a.Rulings) > 0 || a.toUndo) && a.Success() != nil && a.Undo.Start == nil`}}},
	{name: "no-retry", what: "nothing is sent again", patches: []patch{{
		"node/sending.go", `s.n.up(p) && !h.wantsNoMore(p, s.now.Awake) && s.forget(h, p, f) {`,
		`s.n.up(p) && h.wantsNoMore(p, s.now.Awake) && s.forget(h, p, f) {`}, {
		"node/round.go", `		s.nextCompare = now + antiEntropy
		s.compareAll()
`, `		s.nextCompare = now + antiEntropy
`}}},
	{name: "no-greeting", what: "a new connection does not forget what was under way on the old one, and nothing is compared", patches: []patch{{
		"node/links.go", `		s.n.lineup.Meet(p, id)
		h.m.Greet(p)
		s.sendHeads(p, id, wire.Ask)
`, `		s.n.lineup.Meet(p, id)
`}, {
		"node/round.go", `		s.nextCompare = now + antiEntropy
		s.compareAll()
`, `		s.nextCompare = now + antiEntropy
`}}},
	{name: "waits-forgotten", what: "waits are not restored after a restart", patches: []patch{{
		"contingency/waits/clocks.go", `		cs.of(w.Key)[w.Key] = c
`, `		_ = c
`}}},
	{name: "release-blocks", what: "a release blocks what waits for the task", patches: []patch{{
		"choreo/state/terms.go", `o != nil && o.Action.Kind == workflow.FailRelease {`,
		`o != nil && o.Action.Kind == "" {`}}},
	{name: "timeout-from-known", what: "a time-out runs from when the instance is known", patches: []patch{{
		"choreo/decision.go", `	t := c.RunFrom(from, k, true, d.now.Boot)`, `	if w := c.Get(waits.Key{Kind: waits.WorstCase}); k.Kind == waits.Timeout && w != nil {
		from = w.Read(d.now.Boot)
	}
	t := c.RunFrom(from, k, true, d.now.Boot)`}}},
	{name: "trigger-from-known", what: "an emergency task waits from when the instance is known", patches: []patch{{
		"choreo/ownclocks.go", `		if age < start && !d.state.PredecessorReady(sl) {`,
		`		if start = 0; age < start {`}}},
	{name: "lowest-writer", what: "of the writes of a data item the lowest is current", patches: []patch{{
		"choreo/state/data.go", `cur == nil || log.ByTime(last, cur) > 0 {`, `cur == nil || log.ByTime(last, cur) < 0 {`}}},
	{name: "consumed-nothing", what: "starts do not say upon what they build", patches: []patch{{
		"choreo/state/consumed.go", `sure && !others && only == from.Pick {`, `sure || !others || only == from.Pick {`}}},
	{name: "reconcile-swapped", what: "keep-original and keep-replacement are swapped", patches: []patch{{
		"choreo/state/converge.go", `			n = cmp.Compare(a.replaced, b.replaced)
		case workflow.KeepReplacement:
			n = cmp.Compare(b.replaced, a.replaced)`, `			n = cmp.Compare(b.replaced, a.replaced)
		case workflow.KeepReplacement:
			n = cmp.Compare(a.replaced, b.replaced)`}}},
	{name: "running-claims-nothing", what: "what a running attempt was built upon need not stand", patches: []patch{{
		"choreo/state/converge.go", `		return Superseded
	}
	return Standing
}`, `		return Superseded
	}
	return Superseded
}`}}},
	{name: "one-try-less", what: "a task is tried once less than it says", patches: []patch{{
		"choreo/tries.go", `case try <= a.Task.Retries.Times &&`, `case try < a.Task.Retries.Times &&`}}},
	{name: "names-everything", what: "a start names what it builds upon although that follows from its past",
		patches: []patch{{
			"choreo/state/consumed.go", `sure && !others && only == from.Pick {`,
			`!sure && !others && only == from.Pick {`}}},
	{name: "no-hand-over", what: "a partner that was not reached yet is clocked all the same", patches: []patch{{
		"choreo/guardian.go", `	if len(unheard) == 0 {`, `	if len(unheard) >= 0 {`}}},
	{name: "handed-over-once", what: "what a partner has yet to hear of has only what is left of the time for what came before it", patches: []patch{{
		"choreo/guardian.go", `c != nil && last >= c.Known {`, `c != nil && last >= c.Known+1e9 {`}}},
	{name: "trigger-unheard", what: "the wait for an emergency task begins before its holder has heard of what begins it", patches: []patch{{
		"choreo/guardian.go", `if notReady && a.Slot.Task.TimeToWait > 0 &&`, `if notReady && a.Slot.Task.TimeToWait < 0 &&`}}},
	{name: "old-stretch", what: "what becomes ready later has only what is left of its partition's time",
		patches: []patch{{
			"choreo/waits.go", `c == nil || (c.Note.of == nil && c.Note.joined != part.joined) ||
			(c.Note.of != nil && !subset(of, c.Note.of))
		if joined || c.Note.over != part.over {`, `c == nil || !subset(of, of)
		if joined {`}}},
	{name: "judges-what-waits", what: "time is held against what waits for somebody who can take a contingency",
		patches: []patch{{
			"choreo/guardian.go", `return known.waits(a.Slot) })`, `return known.waits(a.Slot) && false })`}}},
	{name: "abort-does-not-prevail", what: "what a failure blocks takes its own contingency all the same",
		patches: []patch{{
			"contingency/rules.go", `	return r.truth(k) == workflow.Impossible && o.mayBlock(r.slot) && o.waits(r.slot)`, `	_, failed := o.failed[r.slot]
	return !failed && r.truth(k) == workflow.Impossible && o.mayBlock(r.slot) && o.waits(r.slot)`}}},
	{name: "fork-counts", what: "what follows a fork counts", patches: []patch{{
		"choreo/log/fork.go", `		n = max(min(n, s.Chain.Cut()-1), s.Base())`, `		n = max(n, s.Base())`}}},
	{name: "fresh-chain-forgets", what: "an author in a fresh chain may deny what it knew", patches: []patch{{
		"choreo/state/forget.go", `	if len(chains) < 2 || s.log.Knew(x, y) {`,
		`	if len(chains) < 99 || s.log.Knew(x, y) {`}}},
	{name: "no-share", what: "all chains of an author are taken in", patches: []patch{{
		"choreo/admit.go", `		case of.Chains >= fact.MaxChains:
`, `		case of.Chains >= 1000*fact.MaxChains:
`}}},
	{name: "named-refused", what: "what others have named is refused beyond a share", patches: []patch{{
		"choreo/door.go", `!d.isNamed(f, beyond != TooManyForks)`, `f.Fact.Seq != 0`}}},
	{name: "refused-unnamed", what: "what partners have no room for is not set aside", patches: []patch{{
		"choreo/decide.go", `		again = d.nameRefused() || again
`, `		_ = d.nameRefused
`}}},
	{name: "unsigned", what: "signatures of facts are not checked", patches: []patch{{
		"choreo/fact/attest.go", `s.author, AttestDomain, s.root[:], s.sig[:]); err != nil {`,
		`s.author, AttestDomain, s.root[:], s.sig[:]); err != nil && s.author == "" {`}}},
	{name: "gone-at-once", what: "a node that goes down for a while is judged at once", patches: []patch{{
		"membership/list.go", `		if it.State == Active {
			it.become(Unreachable, at)
		}
`, `		it.become(Left, at)
`}}},
	{name: "no-resume", what: "what ran when the node stopped is not run again", patches: []patch{{
		"choreo/tries.go", `	d.running[a.ID] = true
	d.out.Start = append(d.out.Start, d.state.Job(a, a.Try()))
	return false
`, `	return false
`}}},
	{name: "cut-anywhere", what: "a bundle holds facts without their causal past", patches: []patch{{
		"choreo/outgoing.go", `		for _, p := range x.Parents {
			take(p)
		}
`, ``}}},
	{name: "anybody-writes-off", what: "anybody may write anybody off", patches: []patch{{
		"choreo/state/verdicts.go", `	case e.Fact.Chain.Author == s.log.Genesis().Fact.Chain.Author:
`, `	case e != nil:
`}}},
	{name: "role-unasked", what: "the performer of a task need not show its role", patches: []patch{{
		"choreo/state/rights.go", `t.ByRole() && !v.HasRole(`,
		`t.ByRole() && a.Task == nil && !v.HasRole(`}}},
	{name: "other-mesh", what: "certificates of any founder prove roles", patches: []patch{{
		"membership/trust/rights.go", `if err := ch.Authentic(r.Mesh); err != nil {`,
		`if err := ch.Authentic(r.Mesh); err != nil && len(ch) == 0 {`}}},
	{name: "expired-counts", what: "a partner that shows a certificate that ran out is believed", patches: []patch{{
		"node/incoming.go", `if err == nil && author == from {`, `if err == nil && author == "" {`}}},
	{name: "anybody-begins", what: "anybody may begin what only a role may begin", patches: []patch{{
		"choreo/creator.go", `	if def.CreatorRole == "" && len(credentials) == 0 && len(word) == 0 {`,
		`	if def.CreatorRole != "" || len(credentials) == 0 || len(word) == 0 {`}}},
	{name: "passes-others-work", what: "anybody passes on work of others", patches: []patch{{
		"choreo/state/verdicts.go", `case a.Beside() || a.Partner != e.Fact.Chain.Author: // that`,
		`case a.Undoes != nil: // that`}}},
	{name: "pruned-again", what: "an instance is taken in again whose summary is kept", patches: []patch{{
		"node/adopt.go", `if c, found, err := s.n.retention.closings.Of(f.Instance); err != nil || found {`,
		`if c, found, err := s.n.retention.closings.Of(f.Instance); err != nil && found {`}}},
	{name: "pruned-early", what: "what has ended is given up although some lack facts of it", patches: []patch{{
		"node/summary.go", `		sum.Settled = sum.Settled && !waits
`, `		sum.Settled = sum.Settled || waits
`}}},
	{name: "no-byte-share", what: "a member's facts may fill the whole node", patches: []patch{{
		"node/weighing.go", `		Left:  func(p workflow.PartnerID) int { return s.leftIn(h, p, partners) },
		Spare: s.n.spare,
`, ``}}},
	{name: "quarantine-stops", what: "an instance that cannot be read ends the node", patches: []patch{{
		"node/quarantine.go", `	x.quarantine(id, q)
	return x.store.CommitWait([]kv.Write{{Key: quarantineKey(id), Value: encode(q)}})
`, `	x.quarantine(id, q)
	if err := x.store.CommitWait([]kv.Write{{Key: quarantineKey(id), Value: encode(q)}}); err != nil {
		return err
	}
	return u
`}}},
	{name: "machine-panics", what: "a machine panics at the seventh fact of a chain, if that is a success",
		patches: []patch{{
			"choreo/state/attempts.go", `func (s *State) enterSuccess(b *fact.Success, e *log.Entry) (why string) {
`, `func (s *State) enterSuccess(b *fact.Success, e *log.Entry) (why string) {
	if e.Fact.Seq == 7 {
		panic("the seventh fact")
	}
`}}},
	{name: "never-fetched", what: "what was set aside is not taken in from partners", patches: []patch{{
		"node/links.go", `		h, err = s.readmit(from, f, facts)
`, `		return nil, err
`}}},
	{name: "verdict-too-large", what: "a verdict on many attempts is not split", patches: []patch{{
		"choreo/judge.go", `	for part := range slices.Chunk(actions, fact.MaxActions) {
		v :=`, `	for part := range slices.Chunk(actions, 16*fact.MaxActions) {
		v :=`}}},
	{name: "unread-summary", what: "a node cannot read the summary of an ended instance that needs a person",
		patches: []patch{{
			"node/codec/codec.go", `		UTF8: cbor.UTF8DecodeInvalid, `, `		`}, {
			"node/index/summary.go", `	b, _ := json.Marshal(needs) // our own types encode
`, `	_ = json.Marshal
	b := codec.Encode(needs)
`}}},
	{name: "restless", what: "partners compare what they have every second, whether or not one may lack something",
		patches: []patch{{
			"node/round.go", `		s.nextCompare = now + antiEntropy
		s.compareAll()
`, `		s.nextCompare = now + time.Second
		s.compareAll()
`}, {
			"node/sending.go", `s.n.up(p) && h.m.Compares(p) && !h.wantsNoMore(p, s.now.Awake) {`,
			`s.n.up(p) && !h.wantsNoMore(p, s.now.Awake) {`}}},
	{name: "disowned", what: "a node that has written nothing yet believes that it takes no part", patches: []patch{{
		"choreo/fingerprint.go", `	p.facts()
	for _, sl`, `	if len(m.log.ByAuthor()[m.self]) == 0 {
		self := "\nparticipant " + string(m.self) + "\n"
		p.out = *bytes.NewBuffer(bytes.Replace(p.out.Bytes(), []byte(self), []byte("\n"), 1))
	}
	p.facts()
	for _, sl`}}},
}
