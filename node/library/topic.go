package library

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/ration"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Clock reads this node's clocks.
type Clock interface{ Now() moment.Now }

// Peers are the members that are connected.
type Peers interface {
	UpPeers() []workflow.PartnerID
	Transmit(p workflow.PartnerID, m *wire.Message)
	// Refuse counts what was refused of a peer.
	Refuse(why string, p workflow.PartnerID)
}

// Members is the partner list.
type Members interface {
	Known(p workflow.PartnerID) bool
	// Name is what people call a partner, Called the name that it has, if any. Say is an
	// error in words for people.
	Name(p workflow.PartnerID) string
	Called(p workflow.PartnerID) string
	Say(err error) string
}

// Surroundings are what this topic needs of the rest of a node.
type Surroundings struct {
	Clock   Clock
	Log     *slog.Logger
	Peers   Peers
	Members Members
	// Refused are the reasons for which a start would refuse a definition here, and what it would note.
	Refused func(context.Context, workflow.Hash) (why, notes []string, err error)
	// Publish tells people what happened.
	Publish func(api.Event)
}

var (
	// readingRation is in bytes of definitions: 4 MiB at once, and one every minute.
	readingRation = ration.Ration{Burst: 4 << 20, Each: time.Minute / (1 << 20)}
	// greetingRation is in greetings that are answered.
	greetingRation = ration.Ration{Burst: 8, Each: 10 * time.Second}
)

// Topic is what partners say to one another of definitions: on contact what they list,
// and then what changes.
type Topic struct {
	definitions *Definitions
	in          Surroundings
	reading     *ration.Budgets // of definitions, in bytes
	greetings   *ration.Budgets

	next time.Duration // Awake: when partners are asked again

	mu sync.Mutex // guards missing
	// missing are claims that a partner has and this node has not, with the number
	// of the partner's last notice.
	missing map[workflow.PartnerID]map[wire.Claim]uint64
}

// New is the topic of these definitions.
func New(d *Definitions, in Surroundings) *Topic {
	return &Topic{
		definitions: d, in: in, reading: ration.New(readingRation), greetings: ration.New(greetingRation),
		missing: map[workflow.PartnerID]map[wire.Claim]uint64{},
	}
}

// Greet says what is listed here, and that this is a greeting: it is answered with what
// this node lacks.
func (lib *Topic) Greet(_ workflow.PartnerID, m *wire.Message) {
	m.Have, m.Greeting = lib.definitions.stamps(), true
}

// Take takes in definitions, and sends those that a greeting peer lacks.
func (lib *Topic) Take(from workflow.PartnerID, m *wire.Message) {
	for _, d := range m.Definitions {
		lib.takeOne(from, d)
	}
	if !m.Greeting {
		return
	}
	lib.note(from, m.Have)
	if !lib.greetings.Spend(from, 1, lib.in.Clock.Now().Awake) {
		lib.in.Peers.Refuse("greetings-too-fast", from)
		return
	}
	size := 0
	for d, err := range lib.definitions.newer(m.Have) {
		if err != nil {
			lib.in.Log.Error("a definition that a partner lacks cannot be read", "to", from, "error", err)
			continue
		}
		lib.in.Peers.Transmit(from, &wire.Message{Definitions: []wire.Definition{d}})
		if size += len(d.Canonical); size > maxAnswer {
			return // it asks for the rest
		}
	}
}

// takeOne takes in what a partner says of one definition, and passes it on if
// it is news.
func (lib *Topic) takeOne(from workflow.PartnerID, d wire.Definition) {
	now := lib.in.Clock.Now()
	news, author, err := lib.definitions.merge(d, now.Wall, func(author workflow.PartnerID, bytes int) bool {
		if !lib.in.Members.Known(author) { // the signer pays, and else the sender
			author = from
		}
		return lib.reading.Spend(author, bytes, now.Awake)
	})
	if errors.Is(err, errNoRoom) {
		lib.in.Publish(api.Event{At: now.Wall, Kind: "trouble", Text: lib.in.Members.Say(err)})
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
		lib.in.Peers.Refuse(reason, whose)
		lib.in.Log.Warn("definition refused", "from", from, "author", author, "error", err)
		return
	}
	if news {
		lib.in.Publish(api.Event{At: now.Wall, Kind: "workflow", Text: "changed"})
		lib.share([]wire.Definition{d}, from)
	}
}

// note notes whether a partner has definitions that this node lacks.
func (lib *Topic) note(p workflow.PartnerID, theirs []wire.DefinitionStamp) {
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
func (lib *Topic) ask() {
	var have []wire.DefinitionStamp
	for _, p := range lib.in.Peers.UpPeers() {
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
			lib.in.Peers.Transmit(p, &wire.Message{Have: have, Greeting: true})
		}
	}
}

// share sends entries to all connected partners but one.
func (lib *Topic) share(ds []wire.Definition, but workflow.PartnerID) {
	for _, p := range lib.in.Peers.UpPeers() {
		if p != but {
			for _, d := range ds {
				lib.in.Peers.Transmit(p, &wire.Message{Definitions: []wire.Definition{d}})
			}
		}
	}
}

// OriginOf is where a definition comes from, its authors by their names too.
func (lib *Topic) OriginOf(e *Definition) configs.Origin {
	o := lib.definitions.origin(e)
	for _, id := range o.Authors {
		if name := lib.in.Members.Called(workflow.PartnerID(id)); name != "" {
			o.Authors = append(o.Authors, name)
		}
	}
	return o
}

// ReadAhead reads the definition that came with facts, on the goroutine of the peer
// that sent it: an instance that is new here finds it among those read lately.
func (lib *Topic) ReadAhead(p workflow.PartnerID, f *wire.Facts) {
	if len(f.Definition) == 0 {
		return
	}
	h := workflow.Hash(sha256.Sum256(f.Definition))
	if lib.definitions.has(h) || lib.definitions.Fresh(h) != nil {
		return
	}
	if !lib.reading.Spend(p, len(f.Definition), lib.in.Clock.Now().Awake) {
		lib.in.Peers.Refuse("definitions-too-fast", p)
		return
	}
	e, err := decode(f.Definition)
	if err != nil {
		lib.in.Peers.Refuse("definition", p)
		lib.in.Log.Warn("definition refused", "from", p, "instance", f.Instance, "error", err)
		return
	}
	lib.definitions.used(nil, e)
}

// Add checks a definition, lists it and spreads it.
func (lib *Topic) Add(ctx context.Context, file string, source []byte) (*api.Workflow, error) {
	if workflow.HoldsPieces(source) {
		return lib.addPieces(file, source)
	}
	def, err := workflow.ParseWith(file, source, lib.definitions.Piece)
	if err != nil {
		return nil, api.WrongDefinition(err)
	}
	before, _ := lib.definitions.editions(string(def.Name)) // an error says that there are none
	all, err := lib.list(def.Canonical())
	if err != nil {
		return nil, err
	}
	l, added := all[0].listing, all[0].about
	taken := lib.definitions.hidden(before)
	if editions, err := lib.definitions.editions(string(def.Name)); err == nil { // else it was removed meanwhile
		newest := lib.definitions.newest(editions)
		added.Current, added.Newest = newest.hash == l.hash, newest.ref(editions)
	}
	if added.Refused, added.Notes, err = lib.in.Refused(ctx, l.hash); err != nil {
		return nil, err
	}
	if len(taken) > 0 {
		added.Notes = append(added.Notes, "the name was another's, and is the founder's and the delegates' from now on: "+
			"not listed any more: "+strings.Join(taken, ", "))
	}
	return added, nil
}

// addPieces lists the models and applications of a file. The answer is the last of them, with all before it.
func (lib *Topic) addPieces(file string, source []byte) (*api.Workflow, error) {
	pieces, err := workflow.ParsePieces(file, source)
	if err != nil {
		return nil, api.WrongDefinition(err)
	}
	var forms [][]byte
	for _, p := range pieces {
		forms = append(forms, p.Canonical())
	}
	listed, err := lib.list(forms...)
	if err != nil {
		return nil, err
	}
	var before []api.Workflow
	for _, x := range listed[:len(listed)-1] {
		x.about.Current = true
		before = append(before, *x.about)
	}
	out := listed[len(listed)-1].about
	out.Current, out.Before = true, before
	return out, nil
}

// listed is something that is listed, as it is shown.
type listed struct {
	*listing
	about *api.Workflow
}

// list lists definitions or pieces, all or none, and spreads them.
func (lib *Topic) list(forms ...[]byte) (out []listed, err error) {
	all, err := lib.definitions.add(lib.in.Clock.Now().Wall, forms...)
	if err != nil {
		return nil, err
	}
	for _, l := range all {
		if len(l.say) > 0 {
			lib.share(l.say, "")
			lib.in.Publish(api.Event{
				At: lib.in.Clock.Now().Wall, Kind: "workflow", Text: string(l.about.Name) + " added",
			})
		}
	}
	for _, l := range all {
		about, err := lib.definitions.whole(l.listing)
		if err != nil {
			return nil, err
		}
		about.Author, about.Already = lib.in.Members.Name(lib.definitions.author(l.listing)), len(l.say) == 0
		out = append(out, listed{l.listing, about})
	}
	return out, nil
}

// List lists the definitions, and the pieces that definitions take.
func (lib *Topic) List() []api.Workflow {
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

// Show shows one definition.
func (lib *Topic) Show(ref string) (*api.Workflow, error) {
	l, err := lib.definitions.find(ref)
	if err != nil {
		return nil, err
	}
	w, err := lib.definitions.whole(l)
	if err != nil {
		return nil, err
	}
	w.Author = lib.in.Members.Name(lib.definitions.author(l))
	editions, err := lib.definitions.editions(string(w.Name))
	w.Current = err == nil && l == lib.definitions.newest(editions) // else it is listed no more
	return w, nil
}

// Remove takes all editions off the list that ref names, here and in the mesh, and says which, and what
// their name starts from then on. Instances of them go on.
func (lib *Topic) Remove(ref string) ([]api.Workflow, error) {
	editions, err := lib.definitions.editions(ref)
	if err != nil {
		return nil, err
	}
	removed := []api.Workflow{}
	for _, l := range editions {
		about := lib.about(l)
		say, err := lib.definitions.remove(l, lib.in.Clock.Now().Wall)
		lib.share(say, "")
		if err != nil {
			return removed, err
		}
		removed = append(removed, about)
	}
	for i := range removed {
		removed[i].Newest = lib.newestOf(removed[i].Name)
	}
	return removed, nil
}

// newestOf is the edition that a name alone starts, of a piece that it has definitions take; empty: none.
func (lib *Topic) newestOf(name workflow.Name) string {
	editions, err := lib.definitions.editions(string(name))
	if err != nil {
		return ""
	}
	return lib.definitions.newest(editions).ref(editions)
}

// about is a listed definition as it is shown in lists.
func (lib *Topic) about(l *listing) api.Workflow {
	w := l.about
	w.Author = lib.in.Members.Name(lib.definitions.author(l))
	return w
}

// maxAnswer is how many bytes of definitions answer one greeting, about.
const maxAnswer = 4 << 20

// askMissing is how often partners are asked for definitions that are missing here.
const askMissing = time.Minute

// Tick asks again for what partners have and this node lacks.
func (lib *Topic) Tick(now moment.Now) time.Duration {
	if now.Awake >= lib.next {
		lib.next = now.Awake + askMissing
		lib.ask()
	}
	return lib.next - now.Awake
}
