package node

import (
	"context"
	"crypto/sha256"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// library is what partners say to one another of definitions: on contact what they list,
// and then what changes. What this node lists is in definitions.
type library struct {
	*contacts
	definitions *definitions
	people      readers
	reading     *budgets // of definitions, in bytes
	greetings   *budgets
	// refused are the reasons for which start would refuse a definition here.
	refused func(context.Context, workflow.Hash) ([]string, error)

	next time.Duration // Awake: when partners are asked again

	mu sync.Mutex // guards missing
	// missing are claims that a partner has and this node has not, with the number
	// of the partner's last notice.
	missing map[workflow.PartnerID]map[wire.Claim]uint64
}

// readers is what the library asks about members.
type readers interface {
	Known(workflow.PartnerID) bool
	name(workflow.PartnerID) string
	Called(workflow.PartnerID) string
	say(error) string
	shown(error) error
}

func newLibrary(c *contacts, d *definitions, p readers, refused func(context.Context, workflow.Hash) ([]string, error)) *library {
	return &library{
		contacts: c, definitions: d, people: p, refused: refused,
		reading: newBudgets(readingRation), greetings: newBudgets(greetingRation),
		missing: map[workflow.PartnerID]map[wire.Claim]uint64{},
	}
}

// Greet says what is listed here, and that this is a greeting: it is answered with what
// this node lacks.
func (lib *library) Greet(_ workflow.PartnerID, m *wire.Message) {
	m.Have, m.Greeting = lib.definitions.stamps(), true
}

// Take takes in definitions, and sends those that a greeting peer lacks.
func (lib *library) Take(from workflow.PartnerID, m *wire.Message) {
	for _, d := range m.Definitions {
		lib.takeOne(from, d)
	}
	if !m.Greeting {
		return
	}
	lib.note(from, m.Have)
	if !lib.greetings.spend(from, 1, lib.clock.Now().Awake) {
		lib.refuse("greetings-too-fast", from)
		return
	}
	size := 0
	for d, err := range lib.definitions.newer(m.Have) {
		if err != nil {
			lib.log.Error("a definition that a partner lacks cannot be read", "to", from, "error", err)
			continue
		}
		lib.transmit(from, &wire.Message{Definitions: []wire.Definition{d}})
		if size += len(d.Canonical); size > maxAnswer {
			return // it asks for the rest
		}
	}
}

// takeOne takes in what a partner says of one definition, and passes it on if
// it is news.
func (lib *library) takeOne(from workflow.PartnerID, d wire.Definition) {
	now := lib.clock.Now()
	news, author, err := lib.definitions.merge(d, now.Wall, func(author workflow.PartnerID, bytes int) bool {
		if !lib.people.Known(author) { // the signer pays, and else the sender
			author = from
		}
		return lib.reading.spend(author, bytes, now.Awake)
	})
	if errors.Is(err, errNoRoom) {
		lib.events.publish(api.Event{At: now.Wall, Kind: "trouble", Text: lib.people.say(err)})
	}
	if err != nil {
		reason, whose := "definition", from
		switch {
		case errors.Is(err, errNotTheir):
			reason, whose = "definition-of-anothers-name", author
		case errors.Is(err, errNoShare):
			reason, whose = "definitions-over-share", author
		case errors.Is(err, errTooFast):
			reason, whose = "definitions-too-fast", author
		}
		lib.refuse(reason, whose)
		lib.log.Warn("definition refused", "from", from, "author", author, "error", err)
		return
	}
	if news {
		lib.events.publish(api.Event{At: now.Wall, Kind: "workflow", Text: "changed"})
		lib.share([]wire.Definition{d}, from)
	}
}

// note notes whether a partner has definitions that this node lacks.
func (lib *library) note(p workflow.PartnerID, theirs []wire.DefinitionStamp) {
	lacking := lib.definitions.lacking(theirs)
	lib.mu.Lock()
	defer lib.mu.Unlock()
	delete(lib.missing, p)
	if len(lacking) > 0 {
		lib.missing[p] = lacking
	}
}

// ask asks the partners again who have definitions that this node still
// lacks: they came too fast, or they did not all fit into one answer.
func (lib *library) ask() {
	var have []wire.DefinitionStamp
	for _, p := range lib.upPeers() {
		lib.mu.Lock()
		missing := lib.missing[p]
		some := len(missing) > 0
		lib.mu.Unlock()
		if !some {
			continue
		}
		if have == nil {
			have = lib.definitions.stamps()
		}
		known := numbers(have)
		lib.mu.Lock()
		maps.DeleteFunc(missing, func(c wire.Claim, number uint64) bool { return known[c] >= number })
		some = len(missing) > 0
		lib.mu.Unlock()
		if some {
			lib.transmit(p, &wire.Message{Have: have, Greeting: true})
		}
	}
}

// share sends entries to all connected partners but one.
func (lib *library) share(ds []wire.Definition, but workflow.PartnerID) {
	for _, p := range lib.upPeers() {
		if p != but {
			for _, d := range ds {
				lib.transmit(p, &wire.Message{Definitions: []wire.Definition{d}})
			}
		}
	}
}

// originOf is where a definition comes from, its authors by their names too.
func (lib *library) originOf(e *definition) configs.Origin {
	o := lib.definitions.origin(e)
	for _, id := range o.Authors {
		if name := lib.people.Called(workflow.PartnerID(id)); name != "" {
			o.Authors = append(o.Authors, name)
		}
	}
	return o
}

// readAhead reads the definition that came with facts, on the goroutine of the peer
// that sent it: an instance that is new here finds it among those read lately.
func (lib *library) readAhead(p workflow.PartnerID, f *wire.Facts) {
	if len(f.Definition) == 0 {
		return
	}
	h := workflow.Hash(sha256.Sum256(f.Definition))
	if lib.definitions.has(h) || lib.definitions.fresh(h) != nil {
		return
	}
	if !lib.reading.spend(p, len(f.Definition), lib.clock.Now().Awake) {
		lib.refuse("definitions-too-fast", p)
		return
	}
	e, err := decodeDefinition(f.Definition)
	if err != nil {
		lib.refuse("definition", p)
		lib.log.Warn("definition refused", "from", p, "instance", f.Instance, "error", err)
		return
	}
	lib.definitions.used(nil, e)
}

// add checks a definition, lists it and spreads it.
func (lib *library) add(ctx context.Context, file string, source []byte) (*api.Workflow, error) {
	def, err := workflow.Parse(file, source)
	if err != nil {
		return nil, api.Errorf(api.Failed, "%v", err)
	}
	l, say, err := lib.definitions.add(def, lib.clock.Now().Wall)
	if err != nil {
		return nil, lib.people.shown(err)
	}
	lib.share(say, "")
	lib.events.publish(api.Event{At: lib.clock.Now().Wall, Kind: "workflow", Text: string(def.Name) + " added"})
	added, err := lib.definitions.whole(l)
	if err != nil {
		return nil, lib.people.shown(err)
	}
	added.Author = lib.people.name(lib.definitions.author(l))
	if added.Refused, err = lib.refused(ctx, l.hash); err != nil {
		return nil, lib.people.shown(err)
	}
	return added, nil
}

// list lists the definitions.
func (lib *library) list() []api.Workflow {
	out := []api.Workflow{}
	editions := map[workflow.Name][]*listing{}
	list := lib.definitions.list()
	for _, l := range list {
		editions[l.about.Name] = append(editions[l.about.Name], l)
	}
	for _, l := range list {
		w := lib.about(l)
		all := editions[w.Name]
		w.Current = len(all) == 1 || l == lib.definitions.newest(all)
		out = append(out, w)
	}
	return out
}

// show shows one definition.
func (lib *library) show(ref string) (*api.Workflow, error) {
	l, err := lib.definitions.find(ref)
	if err != nil {
		return nil, err
	}
	w, err := lib.definitions.whole(l)
	if err != nil {
		return nil, lib.people.shown(err)
	}
	w.Author = lib.people.name(lib.definitions.author(l))
	return w, nil
}

// remove takes all editions off the list that ref names, here and in the mesh,
// and says which. Instances of them go on.
func (lib *library) remove(ref string) ([]api.Workflow, error) {
	editions, err := lib.definitions.editions(ref)
	if err != nil {
		return nil, err
	}
	removed := []api.Workflow{}
	for _, l := range editions {
		about := lib.about(l)
		say, err := lib.definitions.remove(l, lib.clock.Now().Wall)
		lib.share(say, "")
		if err != nil {
			return removed, lib.people.shown(err)
		}
		removed = append(removed, about)
	}
	return removed, nil
}

// about is a listed definition as it is shown in lists.
func (lib *library) about(l *listing) api.Workflow {
	w := l.about
	w.Author = lib.people.name(lib.definitions.author(l))
	return w
}

// maxAnswer is how many bytes of definitions answer one greeting, about.
const maxAnswer = 4 << 20

// askMissing is how often partners are asked for definitions that are missing here.
const askMissing = time.Minute

// Tick asks again for what partners have and this node lacks.
func (lib *library) Tick(now moment.Now) time.Duration {
	if now.Awake >= lib.next {
		lib.next = now.Awake + askMissing
		lib.ask()
	}
	return lib.next - now.Awake
}
