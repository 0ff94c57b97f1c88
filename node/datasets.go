package node

import (
	"bytes"
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

	"github.com/fxamacker/cbor/v2"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file keeps materialised data for the Optimizer: data sets are registered
// where they are, advertised in the partner record, and read by whoever starts
// an instance that would otherwise produce them. A data set is small: its values
// go into the instance.

// MaxData is the largest data set that can be registered, in bytes.
const MaxData = 64 << 10

// storedData is a data set as it is kept.
type storedData struct {
	_       struct{} `cbor:",toarray"`
	Name    string
	Content []byte
}

func dataKey(name string) []byte { return append([]byte{prefixData}, name...) }

func (p *people) loadData() error {
	p.data = map[string]storedData{}
	return p.store.Scan([]byte{prefixData}, func(_, value []byte) error {
		var d storedData
		if err := cbor.Unmarshal(value, &d); err != nil {
			return fmt.Errorf("a stored data set cannot be read: %w", err)
		}
		p.data[d.Name] = d
		return nil
	})
}

// offered are data sets as a partner's record has them.
func offered(data map[string]storedData) []membership.DataSet {
	var out []membership.DataSet
	for _, name := range slices.Sorted(maps.Keys(data)) {
		d := data[name]
		out = append(out, membership.DataSet{Name: name, Hash: sha256.Sum256(d.Content), Size: uint64(len(d.Content))})
	}
	return out
}

// AddData registers a data set, durably, and publishes it.
func (n *Node) AddData(_ context.Context, name string, content []byte) (*api.DataSet, error) {
	switch rule := workflow.NameRule(name); {
	case rule != "":
		return nil, api.Errorf(api.Invalid, "data set %q: want %s", name, rule)
	case len(content) == 0:
		return nil, api.Errorf(api.Invalid, "data set %s is empty", name)
	case len(content) > MaxData:
		return nil, api.Errorf(api.Invalid, "data set %s has %d bytes, at most %d can be registered", name, len(content), MaxData).
			WithHint("its values become part of the instances that read it; register a reference to what is larger")
	}
	if err := n.people.keepData(storedData{Name: name, Content: content}); err != nil {
		return nil, n.shown(err)
	}
	if err := n.announce(n.carrier.Addrs()); err != nil {
		return nil, n.shown(err)
	}
	sum := sha256.Sum256(content)
	out := &api.DataSet{Name: name, Hash: hex.EncodeToString(sum[:]), Size: len(content), Values: []string{}}
	if values := valuesIn(content); values != nil {
		out.Values = slices.Sorted(maps.Keys(values))
	}
	return out, nil
}

// RemoveData takes a data set off the catalogue. Instances that read it keep
// its values.
func (n *Node) RemoveData(_ context.Context, name string) error {
	if err := n.people.dropData(name); err != nil {
		return n.shown(err)
	}
	return n.shown(n.announce(n.carrier.Addrs()))
}

func (p *people) keepData(d storedData) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.data[d.Name]; !known && len(p.data) >= membership.MaxItems {
		return api.Errorf(api.Refused, "there are %d data sets here, no more can be registered: remove one (mutirao resources remove NAME)", len(p.data))
	}
	all := maps.Clone(p.data)
	all[d.Name] = d
	r := p.own
	r.DataSets = offered(all)
	if err := r.Sign(p.member.Key).Verify(); err != nil {
		return api.Errorf(api.Invalid, "%v", err)
	}
	if err := p.store.CommitWait([]kv.Write{{Key: dataKey(d.Name), Value: encode(d)}}); err != nil {
		return err
	}
	p.data = all
	return nil
}

func (p *people) dropData(name string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.data[name]; !known {
		return api.Errorf(api.NotFound, "no data set %s is registered here", name).WithHint("list them: mutirao resources data")
	}
	if err := p.store.CommitWait([]kv.Write{{Key: dataKey(name), Delete: true}}); err != nil {
		return err
	}
	delete(p.data, name)
	return nil
}

// protocolData asks a member for the content of a data set by its name.
const protocolData = "/mutirao/data/1.0.0"

// giveData answers protocolData.
func (p *people) giveData(_ workflow.PartnerID, name []byte) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	d, ok := p.data[string(name)]
	if !ok {
		return nil, errors.New("no such data set is registered here")
	}
	return d.Content, nil
}

// materialised is a task that is not needed, with the values that take its place.
type materialised struct {
	dropped choreo.Dropped
	values  map[workflow.DataName]workflow.Value
}

// dataPatience is how long a holder of a data set may take to answer.
const dataPatience = 3 * time.Second

// materialised finds the tasks of a definition whose data sets exist and can be
// read now. missed says of others why they run all the same.
func (n *Node) materialised(ctx context.Context, def *workflow.Definition) (found []materialised, missed []string) {
	for _, name := range def.TopoOrder() {
		t := def.Task(name)
		if t.Produces == "" {
			continue
		}
		holders := n.people.holders(t.Produces)
		if len(holders) == 0 {
			continue
		}
		x, err := n.read(ctx, def, t, holders)
		if err != nil {
			missed = append(missed, fmt.Sprintf("task %s is not dropped although data set %s exists: %v", name, t.Produces, err))
			continue
		}
		found = append(found, *x)
	}
	return found, missed
}

// andMissed adds to a refused start which data sets did not help: whoever
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
	at   membership.Partner
	hash [sha256.Size]byte
	self bool
}

// holders are the partners that are here and have a data set: this node first,
// then by name.
func (p *people) holders(name string) []dataOffer {
	var out []dataOffer
	for _, x := range p.all() {
		for _, d := range x.Record.DataSets {
			if self := x.Record.Partner == p.member.ID(); d.Name == name && (self || x.State == membership.Active) {
				out = append(out, dataOffer{x, d.Hash, self})
			}
		}
	}
	slices.SortFunc(out, func(a, b dataOffer) int {
		if a.self != b.self {
			if a.self {
				return -1
			}
			return 1
		}
		return strings.Compare(a.at.Record.Name(), b.at.Record.Name())
	})
	return out
}

// read gets the values of a task's data set from the first holder that answers.
func (n *Node) read(ctx context.Context, def *workflow.Definition, t *workflow.Task, holders []dataOffer) (*materialised, error) {
	if ok, why := partition.Droppable(def, t); !ok {
		return nil, errors.New(why)
	}
	var errs []error
	for _, h := range holders {
		content, err := n.content(ctx, t.Produces, h)
		if err == nil {
			var values map[workflow.DataName]workflow.Value
			if values, err = valuesFor(def, t, content); err == nil {
				return &materialised{choreo.Dropped{Task: t.Name, DataSet: t.Produces, Hash: h.hash, Holder: h.at.Record.Partner}, values}, nil
			}
		}
		errs = append(errs, fmt.Errorf("from %s: %w", h.at.Record.Name(), err))
	}
	return nil, errors.Join(errs...)
}

// content is what a holder has, checked against what its record says.
func (n *Node) content(ctx context.Context, name string, from dataOffer) (content []byte, err error) {
	asker, can := n.carrier.(Requester)
	switch {
	case from.self:
		content, err = n.people.giveData("", []byte(name))
	case !can:
		err = errors.New("this node cannot ask for it")
	default:
		ctx, cancel := context.WithTimeout(ctx, dataPatience)
		defer cancel()
		content, err = asker.Request(ctx, from.at.Record.Partner, from.at.Record.Addresses, protocolData, []byte(name))
	}
	if err == nil && (len(content) > MaxData || sha256.Sum256(content) != from.hash) {
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
