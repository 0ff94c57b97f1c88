package main

// linked is the first seed with people's tasks that wait for one another (sim.Linked).
const linked = 40_000_000

// ofLinks are mutants of work ahead and of joint locks (rules 5 and 9 of docs/worklists.md). They are run from that
// seed on.
var ofLinks = []mutant{
	{name: "ahead-not-put-off", what: "what was made from something counts, whether or not that does", patches: []patch{{
		"worklist/rights.go", `		if !b.tookAsKnown(of, f) {`, `		if of.Word.IsZero() {`}, {
		"worklist/decide.go", `		if d.b.founded(w.Result) {`, `		if w != nil {`}}},
	{name: "joint-kept-in-memory", what: "what a device has to give back of a joint lock is in memory only", patches: []patch{{
		"node/worklists/joint.go", `	if err := d.in.Store.CommitWait([]kv.Write{{Key: []byte(key), Value: codec.Encode(*x)}}); err != nil {
		return err
	}
`, `	_ = codec.Encode(*x)
`}}},
	{name: "joint-never-given-back", what: "what a joint lock left is not given back later", patches: []patch{{
		"node/worklists/joint.go", `			d.settle(context.Background(), map[string]bool{}, who, key, x)
		}
		done()`, `			_ = who
		}
		done()`}}},
	{name: "joint-takes-back-all", what: "a device gives back what its user has by whatever word", patches: []patch{{
		"worklist/fact.go", `return by == asked || slices.Contains(x.Anew, by) }`, `return true }`}}},
	{name: "joint-not-anew", what: "who asks for an item anew at another device has it by the earlier word", patches: []patch{{
		"worklist/ask.go", ` || slices.Contains(r.Anew, b.heldBy(it)) {`, ` {`}}},
	{name: "lock-refused-unheard", what: "what a holder refuses to lock is told to be locked", patches: []patch{{
		"node/worklists/ask.go", `	got, err := d.grant(soon, who, of[0], g)
	if err != nil {
		return err
	}
	for i := range of {`, `	got, err := d.grant(soon, who, of[0], g)
	if err != nil && (mode != worklist.Lock || of[0].At == d.in.Self) {
		return err
	}
	for i := range of {`}}},
	{name: "joint-some", what: "what some gave of a joint lock is kept though another refused", patches: []patch{{
		"worklist/joint.go", `	case j.failed != nil && j.given < j.keeps:
		return JointStep{Part: j.parts[j.keeps-1-j.given]}, true
`, ``}, {
		"node/worklists/joint.go", `	d.settle(ctx, mute, who, key, x)
	if errors.Is(err, errNoAnswer) {`, `	d.forgetJoint(key)
	if errors.Is(err, errNoAnswer) {`}}},
	{name: "ahead-never-counts", what: "what was made from something is put off for ever", patches: []patch{{
		"worklist/ahead.go", `	return !slices.ContainsFunc(r.Upon, func(of Basis) bool { return !b.counts(of) })
`, `	return len(r.Upon) == 0
`}}},
	{name: "put-off-forgotten", what: "a device forgets what its holder put off", patches: []patch{{
		"node/worklists/deliver.go", `		case err == nil && done.Kept == "" && done.Waits:
`, `		case err == nil && done.Kept == "" && done.Waits && k.Slot == "":
`}}},
	{name: "ahead-from-nothing", what: "what an item waits for need not be done before it", patches: []patch{{
		"node/worklists/ahead.go", `		if !is {
			return nil, d.notDone(`, `		if !is {
			continue
		}
		if t == "" {
			return nil, d.notDone(`}, {
		"choreo/claims.go", `	case len(board.Unnamed(x)) > 0:
`, `	case x.Item.Slot == "" && len(board.Unnamed(x)) > 0:
`}}},
}
