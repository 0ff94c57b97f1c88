package main

// equipped is the first seed whose tasks hold resources (sim.Equipped).
const equipped = 30_000_000

// ofUnits are mutants of resources (rule 12 of docs/worklists.md). They are run from that seed on.
var ofUnits = []mutant{
	{name: "units-more-than-there-is", what: "units are given away without end", patches: []patch{{
		"worklist/resource.go", `	return s.Capacity - s.firm
`, `	return s.Capacity
`}}},
	{name: "units-not-waited-for", what: "a task begins without its units", patches: []patch{{
		"choreo/decide.go", `if d.state.HasUnits(a) && !d.later(a)`, `if !d.later(a)`}, {
		"choreo/look.go", `a.Task.ByNode() && m.state.HasUnits(a) ||`, `a.Task.ByNode() ||`}, {
		"choreo/state/rights.go", `	case v.unitless(a) != "":
		return v.unitless(a)
`, ``}}},
	{name: "units-once-had", what: "a task begins with what it was given, though others have all there is",
		patches: []patch{{
			"choreo/decide.go", `if d.state.HasUnits(a) && !d.later(a)`, `if !d.later(a)`}, {
			"choreo/look.go", `a.Task.ByNode() && m.state.HasUnits(a) ||`, `a.Task.ByNode() ||`}}},
	{name: "units-of-no-keeper", what: "whoever takes part gives units away", patches: []patch{{
		"worklist/resource.go", `d.b.stores[next[0]].Keepers[0].Partner != d.self {`, `d.self == "" {`}}},
	{name: "units-never-back", what: "what has ended keeps its units", patches: []patch{{
		"worklist/resource.go", `	return it.placed && it.InCharge && it.Ready && !it.Over && it.end() == nil
`, `	return it.placed && (it.InCharge && it.Ready && !it.Over && it.end() == nil || it.Begun)
`}}},
	{name: "units-of-a-lost-keeper", what: "nobody takes over whose keeper is gone", patches: []patch{{
		"choreo/waits.go", `		if !goesOn(d.watchKeeper(part, later)) {
`, `		if !goesOn(part == "" && d.watchKeeper(part, later)) {
`}}},
	{name: "units-of-the-first-keeper", what: "who kept resources gives them out though another does", patches: []patch{{
		"choreo/state/resources.go", `	if s.keptLater(e, part, own) {
		return "another keeps the resource, as its author knew"
	}
`, ``}, {
		"choreo/state/units.go", `		store.Keepers = append(store.Keepers, worklist.Keeping{Partner: s.holder[r.Partition]})
`, `		store.Keepers = append([]worklist.Keeping{{Partner: s.holder[r.Partition]}}, store.Keepers...)
`}}},
	{name: "units-out-of-order", what: "resources of several partitions are asked for at once", patches: []patch{{
		"worklist/resource.go", `		case s.have[it] || found && s.Partition > part:
`, `		case s.have[it] || found && s.reservation(it) != nil:
`}}},
	{name: "units-lost-as-passed-on", what: "what is passed on has none of its units", patches: []patch{{
		"choreo/state/units.go", `	for a.after != nil && a.passedOn() {
		a = a.after
	}
`, ``}}},
	{name: "units-of-the-presumed", what: "what is presumed to have failed has units before others", patches: []patch{{
		"worklist/resource.go", `	case it.Presumed:
		return presumed
`, ``}}},
	{name: "units-last-come-first", what: "of what was given away on two sides the last counts", patches: []patch{{
		"worklist/resource.go", `return s.reservation(x).compare(s.reservation(y)) })`, `return s.reservation(y).compare(s.reservation(x)) })`}}},
}
