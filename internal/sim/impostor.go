package sim

import (
	"crypto/ed25519"
	"encoding/json"
	"math/rand/v2"
	"slices"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/membership/users"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/node/worklists"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file is what a member that lies can do about people's work: have people say what they did not,
// claim what others hold, give one item to two, end items with results that nobody signed, and bring
// words without end.

// impersonate adds claims under a liar's own proper signature: a chain of some.
func (w *world) impersonate(m *machine, f *wire.Facts) {
	closed, twice := w.closedItem(m, f.Instance)
	verdict, again := w.falseAgain(m, f.Instance)
	if !twice && again == nil && w.r.IntN(3) > 0 { // few chains of one author are taken in, so not too soon
		return
	}
	id, known, err := w.read.raw(f.Facts[w.r.IntN(len(f.Facts))].Raw)
	if err != nil {
		return
	}
	k := w.r.IntN(4)
	twice, again = twice && k < 2, map[bool]*fact.Body{k == 2: again}[true]
	if gid, g := genesisIn(m, f.Instance); g != nil && (twice || again == nil && w.r.IntN(3) == 0) {
		id, known = gid, g // it has heard of nothing, it says
	}
	of, result, late := w.aResult(m, f.Instance)
	late = late && k == 3
	switch facts := m.disk.factsOf(f.Instance); {
	case again != nil:
		id, known = verdict, facts[verdict]
	case late:
		id, known = result, facts[result]
	}
	l := &lying{w, m, f, w.fresh(m, f, known, id, fact.Body{})}
	if twice {
		l.giveTwice(closed)
	}
	switch {
	case again != nil:
		l.add(*again, true)
	case late: // whatever became of the grant, as it knew
		l.add(fact.Body{Claim: saying(worklist.Close{Item: of, Result: worklist.ID(result)})}, false)
	}
	for range 1 + w.r.IntN(5) {
		claim, forged := w.falseClaim(m, f.Instance)
		if claim == nil || !l.add(fact.Body{Claim: claim}, forged) {
			continue
		}
		if _, closes := claim.Body().(worklist.Close); !closes {
			continue
		}
		// What was closed has been done, though the liar lacks the role: that counts only if somebody
		// had it whose result the liar knew (peoplesWork).
		a := claim.About()[0]
		if t := w.task(a.Slot); t.ByRole() && !slices.Contains(RolesOf(m.i), string(t.Role)) {
			l.add(fact.Body{Start: &fact.Start{Attempt: a, Try: 1}}, false)
		}
	}
}

// lying is a chain of lies that goes with a machine's true facts.
type lying struct {
	w    *world
	m    *machine
	f    *wire.Facts
	next *fact.Fact
}

// add adds a lie, and says whether it could.
func (l *lying) add(b fact.Body, forged bool) bool {
	l.next.Body = b
	x, id, ok := l.w.sign(l.m, l.next)
	if !ok {
		return false
	}
	l.f.Facts = append(l.f.Facts, x)
	l.w.checks.lies[id] = true
	if forged {
		l.w.checks.forged[id] = b.Kind()
	}
	l.next = &fact.Fact{Instance: l.next.Instance, Chain: l.next.Chain, Seq: l.next.Seq + 1, Prev: id}
	return true
}

// giveTwice says that what somebody has done had been given to the liar's own user before the liar heard of that;
// and, now and then, that this one had done it.
func (l *lying) giveTwice(i worklist.Item) {
	grant := worklist.Grant{
		Items: []worklist.Item{i}, Mode: worklist.Select, Lease: worklist.DefaultLease(worklist.Select),
	}
	claim := l.w.inOwnName(l.m, l.f.Instance, grant)
	if claim == nil || !l.add(fact.Body{Claim: claim}, false) || l.w.r.IntN(2) == 0 {
		return
	}
	result := worklist.Result{Item: i, Grant: worklist.ID(l.next.Prev), Failed: true, Reason: "a lie"}
	if claim = l.w.inOwnName(l.m, l.f.Instance, result); claim != nil && l.add(fact.Body{Claim: claim}, false) {
		l.add(fact.Body{Claim: saying(worklist.Close{Item: i, Result: worklist.ID(l.next.Prev)})}, false)
	}
}

// falseClaim is a claim of a liar's, and whether it must not count; nil: it finds none.
func (w *world) falseClaim(m *machine, id workflow.InstanceID) (c *fact.Claim, forged bool) {
	mine, others := w.itemsOf(m)
	switch k := w.r.IntN(15); {
	case k == 12: // to whom items are offered, whoever it is
		return w.falseDecision(m, id, worklist.Notify{Policy: worklist.Policy{Name: workflow.NotifyAll}})
	case k == 13 && len(others) > 0: // that another offers an item to its own user
		i := others[w.r.IntN(len(others))]
		return saying(worklist.Offer{Item: i, To: []worklist.User{worklist.User(m.id)}}), true
	case k == 14 && len(mine) > 0: // that an item is offered by a policy that there is not
		i := mine[w.r.IntN(len(mine))]
		return saying(worklist.Offer{
			Item: i, To: []worklist.User{worklist.User(m.id)}, Under: worklist.ID(w.random(32)),
		}), false
	case k == 8 && len(mine) > 0: // it decides, whoever it is
		return w.falseDecision(m, id, worklist.Order{
			Item: mine[w.r.IntN(len(mine))], What: anOrder(w.r), Reason: "a lie",
		})
	case k == 9: // that the instance ends
		return w.falseDecision(m, id, worklist.Order{What: worklist.Cancel, Reason: "a lie"})
	case k == 10: // what is kept counts
		of, result, ok := w.aResult(m, id)
		if !ok {
			return nil, false
		}
		return w.falseDecision(m, id, worklist.Adopt{Item: of, Result: worklist.ID(result)})
	case k == 11: // what is kept ends its item, or an order that there may be
		of, result, ok := w.aResult(m, id)
		if !ok {
			return nil, false
		}
		return saying(worklist.Close{Item: of, Result: worklist.ID(result)}), false
	case k == 0 && len(others) > 0: // of what another holds, by a user of its own
		return w.inOwnName(m, id, w.anyGrant(others)), true
	case k == 1 && len(mine) > 0: // in the name of somebody who did not ask
		return w.forgedWord(m, id, w.anyGrant(mine)), true
	case k == 2 && len(mine) > 0: // a word that was for another instance, or for another item
		return w.replayedWord(m, id)
	case k == 3 && len(mine) > 0: // nobody's result
		return saying(worklist.Close{Item: mine[w.r.IntN(len(mine))], Result: worklist.ID(w.random(32))}), false
	case k == 4 && len(mine) > 0: // what it really has is given away, or taken back
		return w.anyRevoke(m, id), false
	case k == 5 && len(mine) > 0: // to a user of its own, whoever has it
		return w.inOwnName(m, id, w.anyGrant(mine)), false
	case k == 6: // a result in the name of whoever has it
		return w.forgedResult(m, id), true
	case k == 7: // a true word that came to it, whatever became of it
		return w.heardWord(m, id)
	}
	return nil, false
}

// genesisIn is the first fact of an instance, as a machine's disk has it; nil: it does not.
func genesisIn(m *machine, id workflow.InstanceID) (factID, *fact.Fact) {
	for fid, f := range m.disk.factsOf(id) {
		if f.Body.Genesis != nil {
			return fid, f
		}
	}
	return factID{}, nil
}

// anOrder is one about a task.
func anOrder(r *rand.Rand) string {
	return []string{worklist.Again, worklist.Stop, worklist.Continue, worklist.Cancel}[r.IntN(4)]
}

// falseDecision has the machine's partner, or a user there, decide something, and says whether it must not count: as
// that one does not decide about the instance.
func (w *world) falseDecision(m *machine, id workflow.InstanceID, b worklist.Body) (*fact.Claim, bool) {
	c := w.inOwnName(m, id, b)
	if c == nil {
		return nil, false
	}
	who, known := w.checks.voices(id)(c)
	all := w.checks.onDiskOf(m, id)
	if all == nil {
		return nil, false
	}
	return c, !known || !all.Decides(who.User, who.Roles)
}

// falseAgain begins a task of the machine's once more that failed, which no order asked for, and by which verdict it
// failed; nil: there is none.
func (w *world) falseAgain(m *machine, id workflow.InstanceID) (verdict factID, again *fact.Body) {
	facts := m.disk.factsOf(id)
	var ids []factID
	for fid, f := range facts {
		if v := f.Body.Verdict; v != nil && f.Chain.Author == m.id && v.Actions[0].Kind == workflow.FailBlock {
			ids = append(ids, fid)
		}
	}
	if len(ids) == 0 {
		return verdict, nil
	}
	slices.SortFunc(ids, compareFacts(facts))
	verdict = ids[w.r.IntN(len(ids))]
	a, order := facts[verdict].Body.Verdict.Actions[0].Attempt, fact.ID(w.random(len(fact.ID{})))
	task := a.Slot
	if from := facts[a.Fact]; from != nil && from.Body.Assign != nil {
		task = from.Body.Assign.Task
	}
	if w.r.IntN(2) == 0 {
		order = verdict // that is none
	}
	return verdict, &fact.Body{
		Assign: &fact.Assign{After: a, Verdict: verdict, Task: task, Partner: m.id},
		Annex:  &fact.Annex{Order: &order},
	}
}

// closedItem is one of a machine's items, from the start of an instance, that it closed with a result.
func (w *world) closedItem(m *machine, id workflow.InstanceID) (of worklist.Item, ok bool) {
	mine, _ := w.itemsOf(m)
	facts := m.disk.factsOf(id)
	for _, i := range mine {
		for _, f := range facts {
			if f.Body.Claim == nil || f.Chain.Author != m.id {
				continue
			}
			if x, closes := f.Body.Claim.Body().(worklist.Close); closes && x.Item == i && x.Result != (worklist.ID{}) {
				return i, true
			}
		}
	}
	return of, false
}

// aResult is a result that somebody brought about an item of a machine's, as its disk has it.
func (w *world) aResult(m *machine, id workflow.InstanceID) (of worklist.Item, result factID, ok bool) {
	r, result, ok := aWord[worklist.Result](w, m, id, func(*fact.Fact) bool { return true })
	return r.Item, result, ok
}

// aWord is what somebody said in an instance, as a machine's disk has it, in a fact like that.
func aWord[T worklist.Body](
	w *world, m *machine, id workflow.InstanceID, like func(*fact.Fact) bool,
) (said T, by factID, ok bool) {
	facts := m.disk.factsOf(id)
	var ids []factID
	for fid, f := range facts {
		if f.Body.Claim != nil && like(f) {
			if _, is := f.Body.Claim.Body().(T); is {
				ids = append(ids, fid)
			}
		}
	}
	if len(ids) == 0 {
		return said, by, false
	}
	slices.SortFunc(ids, compareFacts(facts))
	by = ids[w.r.IntN(len(ids))]
	return facts[by].Body.Claim.Body().(T), by, true
}

// itemsOf are the first items of people's tasks that a machine holds, and those of others.
func (w *world) itemsOf(m *machine) (mine, others []worklist.Item) {
	for _, t := range w.def.Tasks {
		at, ok := w.home[t.Name]
		if !ok || t.Type == workflow.Automatic || t.ContingencyOnly {
			continue
		}
		if i := (worklist.Item{Slot: t.Name}); at == m.i {
			mine = append(mine, i)
		} else {
			others = append(others, i)
		}
	}
	return mine, others
}

func (w *world) anyGrant(of []worklist.Item) worklist.Grant {
	mode := []worklist.Mode{worklist.Select, worklist.Lock}[w.r.IntN(2)]
	return worklist.Grant{Items: []worklist.Item{of[w.r.IntN(len(of))]}, Mode: mode, Lease: worklist.DefaultLease(mode)}
}

// saying is a claim that says something; nil: that cannot be said.
func saying(b worklist.Body) *fact.Claim {
	says, err := worklist.Encode(b)
	if err != nil {
		return nil
	}
	return &fact.Claim{Says: says}
}

// inOwnName has the machine's partner, as a user, or a user who is signed in there, say something.
func (w *world) inOwnName(m *machine, id workflow.InstanceID, b worklist.Body) *fact.Claim {
	c := saying(b)
	if c == nil {
		return nil
	}
	c.Nonce = [16]byte(w.random(16))
	signed := fact.SpokenOf(id, c.Says, c.Nonce)
	if said, key, ok := w.wordAt(m); ok && w.r.IntN(2) == 0 {
		said.Signature = users.Sign(key, said.Signature.User, signed)
		c.Word = users.EncodeSpoken(said)
		return c
	}
	c.Word = users.EncodeSpoken(users.SpeakAsPartner(m.member.Key, m.member.Chain, signed))
	return c
}

// wordAt is a word that a user gave at the machine, and the user's key there.
func (w *world) wordAt(m *machine) (said users.Spoken, key ed25519.PrivateKey, ok bool) {
	for _, c := range m.overheard {
		said, err := users.DecodeSpoken(c.Word)
		if key := m.ring.keys[said.Signature.User.String()]; err == nil && key != nil &&
			said.Device.Leaf().Node == m.id {
			return said, key, true
		}
	}
	return said, nil, false
}

// aWord is a word of somebody else that the machine heard, or has in its facts.
func (w *world) aWord(m *machine) (said users.Spoken, ok bool) {
	var words [][]byte
	for _, c := range m.overheard {
		words = append(words, c.Word)
	}
	if len(words) == 0 {
		return said, false
	}
	said, err := users.DecodeSpoken(words[w.r.IntN(len(words))])
	return said, err == nil && said.Device != nil
}

// forgedWord has somebody say something that the liar signs: with its own key, with nothing, with the
// certificate or the roles of another.
func (w *world) forgedWord(m *machine, id workflow.InstanceID, b worklist.Body) *fact.Claim {
	c, key := saying(b), m.member.Key
	said, ok := w.aWord(m)
	if c == nil || !ok || said.Device.Leaf().Node == m.id {
		return nil
	}
	c.Nonce = [16]byte(w.random(16))
	signed := fact.SpokenOf(id, c.Says, c.Nonce)
	switch w.r.IntN(3) {
	case 0: // the key is not the user's
		said.Signature = users.Sign(key, said.Signature.User, signed)
	case 1: // the signature is of something else
	case 2: // the certificate says that the liar's key is the user's, and the liar signed it
		d := *said.Device
		d.Chain = slices.Clone(d.Chain)
		d.Chain[0].Key, d.Chain[0].Node = m.id, m.id
		said.Device, said.Signature = &d, users.Sign(key, said.Signature.User, signed)
	}
	c.Word = users.EncodeSpoken(said)
	return c
}

// replayedWord is a claim with what somebody said truly in another instance.
func (w *world) replayedWord(m *machine, id workflow.InstanceID) (*fact.Claim, bool) {
	for range 8 {
		if len(m.overheard) == 0 {
			break
		}
		c := m.overheard[w.r.IntN(len(m.overheard))]
		if c.Instance != id {
			return &fact.Claim{Says: c.Says, Nonce: c.Nonce, Word: c.Word}, true
		}
		changed := &fact.Claim{Says: c.Says, Nonce: c.Nonce, Word: c.Word}
		if g, is := changed.Body().(worklist.Grant); is && len(g.Items) == 1 {
			mine, _ := w.itemsOf(m)
			if i := slices.IndexFunc(mine, func(i worklist.Item) bool {
				return i != g.Items[0] && !slices.Contains(g.With, i)
			}); i >= 0 {
				g.Items = []worklist.Item{mine[i]}
				other := saying(g)
				other.Nonce, other.Word = c.Nonce, c.Word
				return other, true
			}
		}
	}
	return nil, false
}

// heardWord is a claim with what somebody truly said in this instance: whether it counts the rules say.
func (w *world) heardWord(m *machine, id workflow.InstanceID) (*fact.Claim, bool) {
	for range 8 {
		if len(m.overheard) == 0 {
			break
		}
		if c := m.overheard[w.r.IntN(len(m.overheard))]; c.Instance == id {
			return &fact.Claim{Says: c.Says, Nonce: c.Nonce, Word: c.Word}, false
		}
	}
	return nil, false
}

// aGrant is a grant of the machine's own in an instance, as its disk has it.
func (w *world) aGrant(m *machine, id workflow.InstanceID) (g worklist.Grant, by factID, ok bool) {
	return aWord[worklist.Grant](w, m, id, func(f *fact.Fact) bool { return f.Chain.Author == m.id })
}

func (w *world) anyRevoke(m *machine, id workflow.InstanceID) *fact.Claim {
	g, by, ok := w.aGrant(m, id)
	if !ok {
		return nil
	}
	return saying(worklist.Revoke{Item: g.Items[0], Grant: worklist.ID(by), Cause: worklist.ByLease})
}

func (w *world) forgedResult(m *machine, id workflow.InstanceID) *fact.Claim {
	g, by, ok := w.aGrant(m, id)
	if !ok {
		return nil
	}
	return w.forgedWord(m, id, worklist.Result{
		Item: g.Items[0], Grant: worklist.ID(by), Outputs: map[workflow.DataName]workflow.Value{},
	})
}

// pester brings words without end to the partners that a liar is connected to: it takes what is free and
// gives it back, as its own user, again and again, and asks for what others have.
func (w *world) pester(m *machine) {
	if !slices.Contains(m.does, Impostor) || m.gone {
		return
	}
	w.at(w.now+between(w.r, 20e9, 120e9), func() { w.pester(m) })
	for j, o := range w.nodes {
		if w.links[pair(m.i, j)] == nil || j == m.i || o.node == nil || w.lost(m.i, j) {
			continue
		}
		for range 4 {
			w.takeAndGiveBack(m, o)
		}
		taken := w.rowOf(m, o, func(r worklists.Row) bool { return r.Other != "" && !r.Over })
		if taken != nil {
			w.tell(m, o, taken.Instance,
				worklist.Grant{
					Items: []worklist.Item{taken.Item}, Mode: worklist.Select,
					Lease: worklist.DefaultLease(worklist.Select),
				})
			w.command(m, o, taken)
		}
	}
}

// command orders something about an item that a partner holds, has it pass on to nobody, or adopts a result, as the
// liar's own user, whether or not that one decides.
func (w *world) command(m, o *machine, r *worklists.Row) {
	switch of, result, kept := w.aResult(m, r.Instance); w.r.IntN(4) {
	case 0:
		w.tell(m, o, r.Instance, worklist.Order{Item: r.Item, What: anOrder(w.r), Reason: "a lie"})
	case 1:
		w.tell(m, o, r.Instance, worklist.NewTransfer(r.Item, r.Held, "", "", "a lie"))
	case 2:
		if kept {
			w.tell(m, o, r.Instance, worklist.Adopt{Item: of, Result: worklist.ID(result)})
		}
	}
}

func (w *world) takeAndGiveBack(m, o *machine) {
	free := w.rowOf(m, o, func(r worklists.Row) bool { return r.Mine == "" && r.Other == "" && !r.Over })
	if free == nil {
		return
	}
	grant := worklist.Grant{
		Items: []worklist.Item{free.Item}, Mode: worklist.Select, Lease: worklist.DefaultLease(worklist.Select),
	}
	w.tell(m, o, free.Instance, grant)
	had := w.rowOf(m, o, func(r worklists.Row) bool {
		return r.Item == free.Item && r.Instance == free.Instance && r.Mine != ""
	})
	if had != nil {
		w.tell(m, o, had.Instance, worklist.Release{Item: had.Item, Grant: had.Grant})
	}
}

// rowOf is the first item that a partner has for another, as a user, that is of a kind.
func (w *world) rowOf(m, o *machine, is func(worklists.Row) bool) *worklists.Row {
	req, err := wire.EncodeItems(wire.Items{User: string(m.id)})
	if err != nil {
		return nil
	}
	b, err := w.ask(m, o, worklists.ProtocolItems, req)
	var rows []worklists.Row
	if err != nil || json.Unmarshal(b, &rows) != nil {
		return nil
	}
	if i := slices.IndexFunc(rows, is); i >= 0 {
		return &rows[i]
	}
	return nil
}

// tell brings a word of a machine's partner, as a user, to another.
func (w *world) tell(m, o *machine, id workflow.InstanceID, b worklist.Body) {
	c := saying(b)
	if c == nil {
		return
	}
	c.Nonce = [16]byte(w.random(16))
	c.Word = users.EncodeSpoken(users.SpeakAsPartner(m.member.Key, m.member.Chain,
		fact.SpokenOf(id, c.Says, c.Nonce)))
	req, err := wire.EncodeSpoken(wire.Spoken{Instance: id, Says: c.Says, Nonce: c.Nonce, Word: c.Word})
	if err == nil {
		_, _ = w.ask(m, o, worklists.ProtocolClaim, req)
		w.out.Lies++
	}
}
