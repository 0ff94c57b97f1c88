package node

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file keeps materialised data for the Optimizer: data sets are registered
// where they are, advertised in the partner record, and read by nodes that start
// an instance that would otherwise produce them. A data set is small: its values
// go into the instance.

// MaxData is the largest data set that can be registered, in bytes.
const MaxData = 64 << 10

// storedData is a data set as it is kept.
type storedData struct {
	_       struct{} `cbor:",toarray"`
	Name    string
	Content []byte
	Terms   dataTerms
	// author lists the workflow of which a task made it. It is stored in the key.
	author workflow.PartnerID
}

// dataTerms are what holds of a data set besides its content.
type dataTerms struct {
	_       struct{} `cbor:",toarray"`
	ByTask  bool     // a task made it; else a user registered it
	Made    int64    // ms since 1970, this node's clock
	Until   int64    // when it ceases to be valid; 0: never
	Readers []string
	From    []byte // of what it was made; see membership.DataSet
}

// valid reports whether a data set may still be used at a moment, in ms since 1970.
func (d dataTerms) valid(now int64) bool { return d.Until == 0 || now < d.Until }

// dataKey is the key of what a user registered, d.key that of any data set: what users
// register and what tasks make is stored side by side.
func dataKey(name string) []byte { return append([]byte{prefixData}, name...) }

func (d storedData) key() []byte { return dataKey(d.id()) }

// id tells data sets of one name apart.
func (d storedData) id() string {
	if !d.Terms.ByTask {
		return dataID(d.Name, "")
	}
	return dataID(d.Name, d.author)
}

// dataID is how a data set is asked for: by its name, and the author for whom a task
// made it; none: a user registered it.
func dataID(name string, author workflow.PartnerID) string {
	if author == "" {
		return name
	}
	return name + "\x00" + string(author)
}

// decodeData reads a stored data set. Those from before there were terms have none.
func decodeData(value []byte) (storedData, error) {
	var d storedData
	err := decode(value, &d)
	if err == nil {
		return d, nil
	}
	var old struct {
		_       struct{} `cbor:",toarray"`
		Name    string
		Content []byte
	}
	if decode(value, &old) != nil {
		return d, err
	}
	return storedData{Name: old.Name, Content: old.Content}, nil
}

// loadData reads the data sets. What a crash left beside what a user registered goes, and
// what is more than there may be.
func (p *people) loadData() error {
	p.data = map[string]storedData{}
	var gone []storedData
	err := p.store.Scan([]byte{prefixData}, func(key, value []byte) error {
		d, err := decodeData(value)
		if err != nil {
			return fmt.Errorf("a stored data set cannot be read: %w", err)
		}
		_, author, _ := strings.Cut(string(key[1:]), "\x00")
		if d.author = workflow.PartnerID(author); d.Terms.ByTask && author == "" {
			gone = append(gone, storedData{Name: string(key[1:])}) // whose workflow that was is not known
			return nil
		}
		p.data[d.id()] = d
		return nil
	})
	now := p.clock.Now().Wall.UnixMilli()
	for id, d := range p.data {
		if d.Terms.ByTask && p.registered(d.Name, now) {
			gone = append(gone, d)
			delete(p.data, id)
		}
	}
	for _, id := range p.superfluous("", 0) {
		gone = append(gone, p.data[id])
		delete(p.data, id)
	}
	p.clear(gone)
	return err
}

// registered reports whether a user registered a data set of a name that is valid at a
// moment: as long as it is, no task makes another here. The caller holds mu, or is the
// only one that knows p.
func (p *people) registered(name string, now int64) bool {
	d, known := p.data[dataID(name, "")]
	return known && d.Terms.valid(now)
}

// offer is a data set as a partner's record has it.
func (d storedData) offer() membership.DataSet {
	return membership.DataSet{
		Name: d.Name, Hash: sha256.Sum256(d.Content), Size: uint64(len(d.Content)),
		Made: d.Terms.Made, Until: d.Terms.Until, Readers: d.Terms.Readers, From: d.Terms.From, Author: d.author,
	}
}

// maxMade bounds what a record says of data sets that tasks made, in bytes: every
// partner gets it, and what users registered comes first.
const maxMade = 4 << 10

// spareRecord is what a record keeps free for its signature and for longer addresses.
const spareRecord = 1 << 10

// offerData enters the data sets that are valid now into a record: those that users
// registered, and of those that tasks made the newest of each author, in turn, as far as
// there is room.
func offerData(r *membership.Record, data map[string]storedData, now int64) {
	r.DataSets = nil
	var made []storedData
	for _, id := range slices.Sorted(maps.Keys(data)) {
		switch d := data[id]; {
		case !d.Terms.valid(now):
		case d.Terms.ByTask:
			made = append(made, d)
		default:
			r.DataSets = append(r.DataSets, d.offer())
		}
	}
	slices.SortStableFunc(made, func(a, b storedData) int { return cmp.Compare(b.Terms.Made, a.Terms.Made) })
	turn, of := map[string]int{}, map[workflow.PartnerID]int{}
	for _, d := range made {
		turn[d.id()] = of[d.author]
		of[d.author]++
	}
	slices.SortStableFunc(made, func(a, b storedData) int { return cmp.Compare(turn[a.id()], turn[b.id()]) })
	room := min(maxMade, membership.MaxRecord-spareRecord-len(membership.EncodeRecord(*r)))
	for _, d := range made {
		offer := d.offer()
		if room -= len(encode(offer)); room < 0 || len(r.DataSets) == membership.MaxItems {
			break
		}
		r.DataSets = append(r.DataSets, offer)
	}
	slices.SortFunc(r.DataSets, func(a, b membership.DataSet) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Author, b.Author))
	})
}

// add registers a data set, durably, and publishes it.
func (ds *datasets) add(name string, content []byte, terms api.DataTerms) (*api.DataSet, error) {
	if rule := workflow.NameRule(name); rule != "" {
		return nil, api.Errorf(api.Invalid, "data set %q: want %s", name, rule)
	}
	switch {
	case len(content) == 0:
		return nil, api.Errorf(api.Invalid, "data set %s is empty", name)
	case len(content) > MaxData:
		return nil, api.Errorf(api.Invalid, "data set %s has %d bytes, at most %d can be registered", name, len(content), MaxData).
			WithHint("its values become part of the instances that read it; register a reference to what is larger")
	case terms.Valid < 0:
		return nil, api.Errorf(api.Invalid, "data set %s is to be valid for %s: want more than 0, or nothing for ever", name, terms.Valid)
	case len(terms.Readers) > workflow.MaxReaders:
		return nil, api.Errorf(api.Invalid, "data set %s has %d readers: at most %d are allowed", name, len(terms.Readers), workflow.MaxReaders).
			WithHint("give them a role in common, and name that")
	}
	for _, reader := range terms.Readers {
		if rule := workflow.NameRule(reader); rule != "" {
			return nil, api.Errorf(api.Invalid, "reader %q: want a role, or a partner's name or ID: %s", reader, rule)
		}
	}
	d := storedData{Name: name, Content: content, Terms: dataTerms{Made: ds.clock.Now().Wall.UnixMilli(), Readers: terms.Readers}}
	d.Terms.Until = until(d.Terms.Made, terms.Valid)
	if err := ds.people.keepData(d); err != nil {
		return nil, ds.people.shown(err)
	}
	if err := ds.announce(); err != nil {
		return nil, ds.people.shown(err)
	}
	sum := sha256.Sum256(content)
	out := &api.DataSet{
		Name: name, Hash: hex.EncodeToString(sum[:]), Size: len(content), Values: []string{},
		ValidUntil: moment(d.Terms.Until), Readers: d.Terms.Readers,
	}
	if values := valuesIn(content); values != nil {
		out.Values = slices.Sorted(maps.Keys(values))
	}
	return out, nil
}

// until is when something ceases to be valid that was made at a moment, in ms since
// 1970; 0: never.
func until(made int64, valid time.Duration) int64 {
	if valid == 0 {
		return 0
	}
	return made + max(1, valid.Milliseconds())
}

// moment is a time in ms since 1970 for programs; nil: none.
func moment(ms int64) *time.Time {
	if ms == 0 {
		return nil
	}
	t := time.UnixMilli(ms).UTC()
	return &t
}

// remove takes all data sets of a name that this node has off the catalogue. Instances
// that read them keep their values.
func (ds *datasets) remove(name string) error {
	if err := ds.people.dropData(name); err != nil {
		return ds.people.shown(err)
	}
	return ds.people.shown(ds.announce())
}

// keepData stores what a user registers, in the place of all that is here under its name.
func (p *people) keepData(d storedData) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := maps.Clone(p.data)
	var gone []storedData
	for _, x := range p.named(d.Name) {
		delete(all, x.id())
		if x.id() != d.id() {
			gone = append(gone, x)
		}
	}
	if p.byUsers(all) >= membership.MaxItems { // a clock that is ahead costs no more than it must
		for _, x := range p.longestExpired(all, d.Terms.Made, 1+p.byUsers(all)-membership.MaxItems) {
			delete(all, x.id())
			gone = append(gone, x)
		}
	}
	if registered := p.byUsers(all); registered >= membership.MaxItems {
		return api.Errorf(api.Refused, "there are %d data sets here, no more can be registered: remove one (mutirao resources remove NAME)", registered)
	}
	all[d.id()] = d
	r := p.own
	offerData(&r, all, d.Terms.Made)
	if err := r.Sign(p.member.Key).Verify(); err != nil {
		return api.Errorf(api.Invalid, "%v", err)
	}
	if err := p.store.CommitWait([]kv.Write{{Key: dataKey(d.Name), Value: encode(d)}}); err != nil {
		return err
	}
	p.clear(gone)
	p.data = all
	return nil
}

// named are the data sets of a name, by their authors. The caller holds mu.
func (p *people) named(name string) []storedData {
	var out []storedData
	for _, d := range p.data {
		if d.Name == name {
			out = append(out, d)
		}
	}
	slices.SortFunc(out, func(a, b storedData) int { return cmp.Compare(a.author, b.author) })
	return out
}

// longestExpired are up to so many of the data sets that users registered, and that are not
// valid any more: those that were so for the longest.
func (p *people) longestExpired(data map[string]storedData, now int64, most int) []storedData {
	var expired []storedData
	for _, d := range data {
		if !d.Terms.ByTask && !d.Terms.valid(now) {
			expired = append(expired, d)
		}
	}
	slices.SortFunc(expired, func(a, b storedData) int {
		return cmp.Or(cmp.Compare(a.Terms.Until, b.Terms.Until), cmp.Compare(a.Name, b.Name))
	})
	return expired[:min(most, len(expired))]
}

// byUsers counts the data sets that users registered.
func (p *people) byUsers(data map[string]storedData) int {
	n := 0
	for _, d := range data {
		if !d.Terms.ByTask {
			n++
		}
	}
	return n
}

func (p *people) dropData(name string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	gone := p.named(name)
	if len(gone) == 0 {
		return api.Errorf(api.NotFound, "no data set %s is registered here", name).WithHint("list them: mutirao resources data")
	}
	var writes []kv.Write
	for _, d := range gone {
		writes = append(writes, kv.Write{Key: d.key(), Delete: true})
	}
	if err := p.store.CommitWait(writes); err != nil {
		return err
	}
	for _, d := range gone {
		delete(p.data, d.id())
	}
	return nil
}

// protocolData asks a member for the content of a data set by its dataID.
const protocolData = "/mutirao/data/1.0.0"

// giveData answers protocolData. The asker is the partner that its connection
// proves.
func (p *people) giveData(asker workflow.PartnerID, id []byte) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	d, ok := p.data[string(id)]
	switch {
	case !ok:
		return nil, errors.New("no such data set is registered here")
	case !d.Terms.valid(p.clock.Now().Wall.UnixMilli()):
		return nil, errors.New("the data set is not valid any more")
	case asker != p.member.ID() && !p.mayRead(asker, d.Terms.Readers):
		return nil, errors.New("the data set is for others")
	}
	return d.Content, nil
}

// mayRead reports whether a partner is among the readers of a data set, by its role
// or its name, which are those of its certificate, or by its ID. The caller holds mu.
func (p *people) mayRead(who workflow.PartnerID, readers []string) bool {
	if len(readers) == 0 {
		return true
	}
	x, known := p.list.Get(who)
	return slices.ContainsFunc(readers, func(r string) bool {
		return r == string(who) || known && (r == x.Record.Name() || x.Record.Chain.Leaf().HasRole(workflow.RoleName(r)))
	})
}

// materialised is a task that is not needed, with the values that take its place.
type materialised struct {
	dropped choreo.Dropped
	values  map[workflow.DataName]workflow.Value
}

// dataPatience is how long a holder of a data set may take to answer.
const dataPatience = 3 * time.Second

// materialised finds the tasks of a definition whose data sets exist, fit the
// instance's input, and can be read now. missed says of others why they run all the same.
func (ds *datasets) materialised(ctx context.Context, def *workflow.Definition, input map[workflow.DataName]workflow.Value) (found []materialised, missed []string) {
	author, produced := ds.author(def.Hash()), map[workflow.DataName]workflow.Value{}
	for _, name := range def.TopoOrder() {
		t := def.Task(name)
		if t.Produces.Name == "" {
			continue
		}
		holders := ds.people.holders(t.Produces.Name, author)
		if len(holders) == 0 {
			continue
		}
		x, err := ds.read(ctx, def, t, holders, beginning{input, produced})
		if err != nil {
			missed = append(missed, fmt.Sprintf("task %s is not dropped although data set %s exists: %v", name, t.Produces.Name, err))
			continue
		}
		maps.Copy(produced, x.values)
		found = append(found, *x)
	}
	return found, missed
}

// author is the partner that lists a definition; empty: nobody does.
func (ds *datasets) author(h workflow.Hash) workflow.PartnerID {
	if l := ds.definitions.listing(h); l != nil {
		return ds.definitions.author(l)
	}
	return ""
}

// andMissed adds to a refused start which data sets did not help: a user who
// registered one expects that nobody need be able to produce it.
func andMissed(err error, missed []string) error {
	var e *api.Error
	if len(missed) == 0 || !errors.As(err, &e) || e.Code != api.Refused {
		return err
	}
	with := *e
	with.Message += "\n" + strings.Join(missed, "\n")
	return &with
}

// dataOffer is a data set at a partner.
type dataOffer struct {
	membership.DataSet
	at   membership.Partner
	self bool
}

// holders are the data sets of a name at the partners that are here, in the order in which
// they are to be read for a workflow of an author: what users registered, and what was made
// for that author or for those whom this node trusts, before what was made for others; of
// these what this node has, then by the names of the partners.
func (p *people) holders(name string, author workflow.PartnerID) []dataOffer {
	var out []dataOffer
	for _, x := range p.all() {
		for _, d := range x.Record.DataSets {
			if self := x.Record.Partner == p.member.ID(); d.Name == name && (self || x.State == membership.Active) {
				out = append(out, dataOffer{d, x, self})
			}
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	late := func(b bool) int {
		if b {
			return 1
		}
		return 0
	}
	foreign := func(d dataOffer) int { return late(d.Author != "" && d.Author != author && !p.trusts(d.Author)) }
	slices.SortFunc(out, func(a, b dataOffer) int {
		return cmp.Or(foreign(a)-foreign(b), late(!a.self)-late(!b.self), cmp.Compare(a.at.Record.Name(), b.at.Record.Name()),
			cmp.Compare(a.at.Record.Partner, b.at.Record.Partner), late(a.Author != author)-late(b.Author != author), cmp.Compare(a.Author, b.Author))
	})
	return out
}

// read gets the values of a task's data set from the first holder that has what
// fits, and answers.
func (ds *datasets) read(ctx context.Context, def *workflow.Definition, t *workflow.Task, holders []dataOffer, b beginning) (*materialised, error) {
	if ok, why := partition.Droppable(def, t); !ok {
		return nil, errors.New(why)
	}
	var errs []error
	for _, h := range holders {
		err := ds.fits(def, t, h, b)
		var content []byte
		if err == nil {
			content, err = ds.content(ctx, h)
		}
		if err == nil {
			var values map[workflow.DataName]workflow.Value
			if values, err = valuesFor(def, t, content); err == nil {
				return &materialised{choreo.Dropped{Task: t.Name, DataSet: h.Name, Hash: h.Hash, Holder: h.at.Record.Partner}, values}, nil
			}
		}
		errs = append(errs, fmt.Errorf("from %s: %w", ds.people.label(h.at.Record.Partner), err))
	}
	return nil, errors.Join(errs...)
}

// reads reports whether this node is among the readers of a data set.
func (p *people) reads(readers []string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mayRead(p.member.ID(), readers)
}

// fits says why a data set is of no use in place of a task, before it is asked for.
func (ds *datasets) fits(def *workflow.Definition, t *workflow.Task, d dataOffer, b beginning) error {
	now := ds.clock.Now().Wall.UnixMilli()
	oldest := until(d.Made, t.Produces.Valid)
	switch {
	case !d.self && !ds.people.reads(d.Readers):
		return fmt.Errorf("it is for %s", strings.Join(d.Readers, ", "))
	case d.Until != 0 && now >= d.Until:
		return fmt.Errorf("it was valid until %s", time.UnixMilli(d.Until).UTC().Format(time.RFC3339))
	case d.Made != 0 && oldest != 0 && now >= oldest:
		return fmt.Errorf("it was made at %s, and the definition takes what is at most %s old",
			time.UnixMilli(d.Made).UTC().Format(time.RFC3339), workflow.FormatDuration(t.Produces.Valid))
	case len(d.From) == 0:
		return nil
	}
	values := make(map[workflow.DataName]workflow.Value)
	for _, name := range partition.MadeFrom(t) {
		v, known := b.value(def, name)
		if !known {
			return fmt.Errorf("a task made it from %s, which is not known yet", name)
		}
		if v != nil {
			values[name] = v
		}
	}
	if !bytes.Equal(d.From, madeFrom(values)) {
		return errors.New("a task made it from other data")
	}
	return nil
}

// beginning is the data that an instance begins with: its input, and what was
// produced by tasks that are dropped.
type beginning struct {
	input, produced map[workflow.DataName]workflow.Value
}

// value is what every task will read under a name; nil: nothing. It is not known
// where a task will write it.
func (b beginning) value(def *workflow.Definition, name workflow.DataName) (v workflow.Value, known bool) {
	if v, known = b.produced[name]; known {
		return v, true
	}
	if len(def.Writers(name)) > 0 {
		return nil, false
	}
	if v, given := b.input[name]; given {
		return v, true
	}
	if decl := declared(def, name); decl != nil {
		return decl.Default, true
	}
	return nil, true
}

// content is what a holder has, checked against what its record says.
func (ds *datasets) content(ctx context.Context, from dataOffer) (content []byte, err error) {
	id := []byte(dataID(from.Name, from.Author))
	if from.self {
		content, err = ds.people.giveData(ds.member.ID(), id)
	} else {
		content, err = ds.request(ctx, from.at.Record.Partner, from.at.Record.Addresses, protocolData, id, dataPatience)
	}
	if err == nil && (len(content) > MaxData || sha256.Sum256(content) != from.Hash) {
		err = errors.New("what came is not what its record says: it is being changed")
	}
	return content, err
}

// valuesIn reads a data set that is an object of values by their names; nil: it
// is not one.
func valuesIn(content []byte) map[string]any {
	d := json.NewDecoder(bytes.NewReader(content))
	d.UseNumber()
	var out map[string]any
	if d.Decode(&out) != nil || d.More() {
		return nil
	}
	return out
}

// valuesFor are the values that a data set gives to what a task would write:
// all of it. A data set without their names is the only value itself, as text.
func valuesFor(def *workflow.Definition, t *workflow.Task, content []byte) (map[workflow.DataName]workflow.Value, error) {
	given := valuesIn(content)
	out := map[workflow.DataName]workflow.Value{}
	for _, name := range t.Out {
		d := declared(def, name)
		raw, has := given[string(name)]
		var v workflow.Value
		var err error
		switch {
		case has && raw == nil, !has && len(t.Out) != 1:
			return nil, fmt.Errorf("it has no value for %s, which the task would write", name)
		case !has:
			v, err = workflow.ParseValue(d, strings.TrimSuffix(string(content), "\n"))
		default:
			v, err = workflow.CheckValue(d, raw)
		}
		if err != nil {
			return nil, err
		}
		out[name] = v
	}
	return out, nil
}

// takenUp enters a dropped task into a genesis, and says so.
func (x materialised) takenUp(annex *choreo.Annex, input map[workflow.DataName]workflow.Value) string {
	annex.Dropped = append(annex.Dropped, x.dropped)
	maps.Copy(input, x.values)
	return fmt.Sprintf("task %s is dropped: its only purpose, data set %s, exists", x.dropped.Task, x.dropped.DataSet)
}

func droppedOf(found []materialised) []workflow.TaskName {
	out := make([]workflow.TaskName, len(found))
	for i, x := range found {
		out[i] = x.dropped.Task
	}
	return out
}

// datasets are those that this node has to give, and those that it asks others for. Partners
// learn of them with this node's record.
type datasets struct {
	*contacts
	people      *people
	definitions *definitions
	announce    func() error
	made        madeNews
}

// Greet: what is here stands in this node's record.
func (ds *datasets) Greet(workflow.PartnerID, *wire.Message) {}

// Take: what others have stands in theirs.
func (ds *datasets) Take(workflow.PartnerID, *wire.Message) {}
