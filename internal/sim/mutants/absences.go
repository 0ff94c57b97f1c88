package main

// absences is the first seed with nodes that announce an absence (sim.Absences).
const absences = 20_400_000

// ofAbsences are mutants of who waits for a partner that is away as it announced, and of how long others wait for
// somebody who has an item.
var ofAbsences = []mutant{
	{name: "absence-of-a-connection-time", what: "an announced absence ends with the connection time", patches: []patch{{
		"membership/list.go", `			due = max(it.deadline, l.now+it.Back-l.boot)
`, `			due = it.deadline
`}}},
	{name: "absence-forgotten", what: "after a restart nobody knows of an announced absence", patches: []patch{{
		"membership/sync.go", `		it.Back, it.Until, it.signed = l.boot+left,`,
		`		_, it.Until, it.signed = l.boot+left,`}}},
	{name: "absent-guardian", what: "a guardian who is absent as announced holds the next one up", tested: true,
		patches: []patch{{
			"choreo/office.go", `		func(p workflow.PartnerID) bool { return p == c || !o.present(p) })
`, `		func(p workflow.PartnerID) bool { return p == c || o.partners.Gone(p) })
`}}},
	{name: "absent-keeper", what: "who keeps a resource and is absent holds up those who wait for it", tested: true,
		patches: []patch{{
			"choreo/resources.go", `!slices.Contains(out, r.Partition) && !o.present(k) &&
`, `!slices.Contains(out, r.Partition) && o.partners.Gone(k) &&
`}}},
	{name: "endless-lease", what: "a lease never runs out", tested: true, patches: []patch{{
		"worklist/decide.go", `	if d.now.Boot >= over {`, `	if d.now.Boot >= over+1000*time.Hour {`}}},
	{name: "lease-by-the-wall", what: "after a restart a lease counts from the date of its fact", tested: true,
		patches: []patch{{"choreo/claims.go", `			case c != nil:
`, `			case c != nil && !mine:
`}}},
}
