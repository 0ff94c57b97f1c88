package sim

import (
	"math/rand/v2"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file makes what plans have from Claimed on: users, who claim people's tasks, and what goes
// wrong with that. They are rough ones otherwise.

// Claimed is the first seed whose people's tasks are claimed by users.
const Claimed = 20_000_000

// User is a person with keys of its own, who is signed in at some nodes.
type User struct {
	Roles []workflow.RoleName // at first
	At    []int
}

// enlist gives a plan its users.
func (p *Plan) enlist(r *rand.Rand) {
	for range 2 + r.IntN(4) {
		u := User{At: []int{r.IntN(p.Nodes)}}
		for _, role := range Roles {
			if r.IntN(3) > 0 {
				u.Roles = append(u.Roles, role)
			}
		}
		if other := r.IntN(p.Nodes); other != u.At[0] && r.IntN(2) == 0 {
			u.At = append(u.At, other)
		}
		p.Users = append(p.Users, u)
	}
}

// administer lets whoever has a role decide about the instances of two fifths of the definitions.
func administer(r *rand.Rand, text string) string {
	if k := r.IntN(5); k < len(Roles) {
		return strings.Replace(text, "workflow: random\n",
			"workflow: random\nadministrators: "+string(Roles[k])+"\n", 1)
	}
	return text
}

// offered has the items of three in ten definitions offered to some of their role only, by a policy.
func offered(r *rand.Rand, text string) string {
	k := r.IntN(10)
	if k == 0 || k >= len(policies) {
		return text
	}
	notify := "notify: " + policies[k]
	if strings.Contains(text, "distribution: {") {
		return strings.Replace(text, "distribution: {", "distribution: {"+notify+", ", 1)
	}
	return strings.Replace(text, "workflow: random\n", "workflow: random\ndistribution: {"+notify+"}\n", 1)
}

// dispute adds what goes wrong with people's work. A third of the plans have nothing else.
func dispute(r *rand.Rand, p *Plan) {
	if r.IntN(3) == 0 {
		p.Faults = nil
	}
	for i := range p.Faults { // with a clock a day behind a node takes nobody's certificate, until it is set
		if f := &p.Faults[i]; f.Kind == Clock && f.Other == 0 {
			f.For = min(f.For, 5*time.Hour)
		}
	}
	soon := func() time.Duration {
		return min(p.Starts[r.IntN(len(p.Starts))].At+between(r, time.Minute, 20*time.Minute*p.Scale),
			p.Length-time.Minute)
	}
	user := func() int { return r.IntN(len(p.Users)) }
	if r.IntN(3) == 0 { // a user is out of reach, with all at that node
		away := p.Users[user()].At[0]
		p.Faults = append(p.Faults, p.cutOff(away, soon(), between(r, time.Minute, 20*time.Minute*p.Scale))...)
	}
	if r.IntN(3) == 0 { // a holder comes back as it was
		p.Faults = append(p.Faults, Fault{
			At: soon(), Kind: OldDisk, Node: r.IntN(p.Nodes), For: between(r, time.Minute, 10*time.Minute*p.Scale),
		})
	}
	if r.IntN(5) == 0 { // leases run out, by a clock that is ahead for a while, as its node goes by it
		const day = 24 * time.Hour
		f := Fault{At: soon(), Kind: Clock, Node: r.IntN(p.Nodes), Other: 2, For: between(r, day, 9*day)}
		again := Fault{At: f.At + time.Second, Kind: Crash, Node: f.Node, For: 5 * time.Second}
		if p.reboots() { // somebody sets the clock while it is off
			again.Kind, again.At = Reboot, f.At-time.Second
		}
		back := Fault{At: f.At + between(r, time.Minute, 10*time.Minute), Kind: Clock, Node: f.Node, For: f.For}
		p.Faults = append(p.Faults, f, again, back)
	}
	if r.IntN(4) == 0 {
		p.Faults = append(p.Faults, Fault{At: soon(), Kind: Dismiss, Other: user()})
	}
	for range r.IntN(4) {
		p.Faults = append(p.Faults, Fault{At: soon(), Kind: Role, Other: user()})
	}
	if r.IntN(3) == 0 {
		p.Faults = append(p.Faults, Fault{
			At: soon(), Kind: Impostor, Node: r.IntN(p.Nodes), For: between(r, time.Minute, 20*time.Minute*p.Scale),
		})
	}
}

// reboots reports whether a node is off while its clock is set, in later seeds: where it only crashes it goes by a clock
// that nobody sets (waits.Lease).
func (p *Plan) reboots() bool {
	switch {
	case p.Seed >= Driven:
		return p.Seed >= 50_005_000
	case p.Seed >= Linked:
		return p.Seed >= 40_060_000
	case p.Seed >= Equipped:
		return p.Seed >= 30_060_000
	}
	return p.Seed >= Absences
}
