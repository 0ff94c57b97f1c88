package choreo

import (
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Giving is that a partner gave a file to an instance, whether or not it counts now.
type Giving struct {
	Item workflow.DataName
	File workflow.File
	// By is whoever wrote that it gave it; empty: it was adopted, from people's words.
	By workflow.PartnerID
}

// FilesGiven are all files that an instance ever had among its data, each once for each
// partner that gave it.
func (m *Machine) FilesGiven() (out []Giving) {
	seen := map[Giving]bool{}
	take := func(values map[workflow.DataName]workflow.Value, by workflow.PartnerID) {
		for n, v := range values {
			text, is := v.(string)
			if !isFile(m.state.decls[n]) || !is {
				continue
			}
			f, err := workflow.ParseFile(text)
			if g := (Giving{n, f, by}); err == nil && !seen[g] {
				seen[g], out = true, append(out, g)
			}
		}
	}
	take(m.state.genesis.Input, m.log.genesis.strand.chain.id.Author)
	for _, sl := range m.state.slots {
		for _, a := range sl.Attempts {
			for _, ok := range a.successes {
				var by workflow.PartnerID
				if ok.fact.Body.Success != nil {
					by = ok.strand.chain.id.Author
				}
				take(ok.gave(), by)
			}
		}
	}
	return out
}
