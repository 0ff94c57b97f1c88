package worklists

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/codec"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/users"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file keeps which files users gave here with the results that they handed in. The reference goes to the holder
// of the item with the result; the content stays here until the holder fetches it, also where this node takes no part
// in the instance, and so has no facts that say who may have it: it is for that holder alone.

// PrefixGave begins the keys of such files: the instance's ID and the file follow.
const PrefixGave = 'z'

const (
	// gaveFor is for how long a holder may fetch the content of a file; askGaveAfter, for how long at least: then the
	// holder is asked whether it has it on its own disk.
	gaveFor      = 90 * 24 * time.Hour
	askGaveAfter = 24 * time.Hour
	// lookAtGave is how often it is looked at which of them are over, beside when a partner is connected, and maxGaveAsks
	// about how many of them partners are asked each time.
	lookAtGave = time.Hour
	// askTookAfter is how soon a holder that took a result is asked whether it has the content, too.
	askTookAfter = time.Minute
	maxGaveAsks  = 64
)

// gave is a file that a user gave here with a result.
type gave struct {
	_        struct{} `cbor:",toarray"`
	Instance workflow.InstanceID
	Item     string // among the data
	File     string
	At       string // the holder that the result is for
	Since    int64  // ms
	Took     bool   // the holder has the result, so that it comes for the content
	User     string
	Task     string
	More     []byte // what people see of it, as gaveMore in JSON
}

// gaveBefore is how versions before 2026-11-29 wrote it.
type gaveBefore struct {
	_        struct{} `cbor:",toarray"`
	Instance workflow.InstanceID
	Item     string
	File     string
	At       string
	Since    int64
}

// gaveMore is what people see of such a file.
type gaveMore struct {
	Workflow      string `json:"workflow"`
	Label         string `json:"label,omitempty"`
	WorkflowLabel string `json:"workflow_label,omitempty"`
	Subject       string `json:"subject,omitempty"`
}

func readGave(b []byte) (*gave, error) {
	var g gave
	err := codec.Decode(b, &g)
	if err == nil {
		return &g, nil
	}
	var before gaveBefore
	if codec.Decode(b, &before) != nil {
		return nil, err
	}
	return &gave{
		Instance: before.Instance, Item: before.Item, File: before.File, At: before.At, Since: before.Since,
	}, nil
}

// DecodesGave returns an error for what cannot be read of the store.
func DecodesGave(b []byte) error {
	_, err := readGave(b)
	return err
}

func (g *gave) key() []byte {
	return fmt.Appendf([]byte{PrefixGave}, "%s %s %s %s", g.Instance, g.At, g.Item, g.File)
}

// loadGave reads them.
func (d *Desk) loadGave() error {
	return d.in.Store.Scan([]byte{PrefixGave}, func(key, value []byte) error {
		g, err := readGave(value)
		if err != nil {
			return err
		}
		d.gave[string(key)] = g
		return nil
	})
}

// give notes, durably, which files among what a user hands in are for the holder of an item, who fetches them
// later, and returns those that were not noted before. Their content must be here: who only names a hash has no file to
// hand in.
func (d *Desk) give(
	ctx context.Context, who users.Who, r *Row, outputs map[string]string,
) (noted []*gave, err error) {
	if r.At == d.in.Self {
		return nil, nil // as the holder this node looks at it with the definition at hand
	}
	seen, err := json.Marshal(gaveMore{
		Workflow: string(r.Workflow), Label: r.Label, WorkflowLabel: r.WorkflowLabel, Subject: r.Subject,
	})
	if err != nil {
		seen = nil // people see less of it
	}
	for _, name := range slices.Sorted(maps.Keys(outputs)) {
		f, err := workflow.ParseFile(outputs[name])
		if err != nil {
			continue // a value of another type; the holder says so if it is to be a file
		}
		if !d.in.Has(f) {
			if !d.isFile(ctx, who, r, name) {
				continue // its holder says that it is no file
			}
			return noted, api.Errorf(api.Refused, "%s: the content of file %s is not at this node", name, f.Name).
				WithHint("give the file itself: --file %s=PATH", name)
		}
		if err := d.in.Give(f, r.Instance); err != nil {
			return noted, api.Errorf(api.Refused, "%s: %v", name, err)
		}
		g := &gave{
			Instance: r.Instance, Item: name, File: f.String(), At: string(r.At),
			Since: d.in.Clock.Now().Wall.UnixMilli(), User: who.ID, Task: string(r.Task), More: seen,
		}
		isNew, err := d.keepGave(g)
		if err != nil {
			return noted, err
		}
		if isNew {
			noted = append(noted, g)
		}
	}
	return noted, nil
}

// ungive forgets files that were given with a result which their holder refused: it never comes for them.
func (d *Desk) ungive(of []*gave) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var keys []string
	for _, g := range of {
		if key := string(g.key()); d.gave[key] == g {
			keys = append(keys, key)
		}
	}
	d.forgetGaveLocked(keys)
}

// forgetGaveLocked forgets files that were given here. The caller holds d.mu.
func (d *Desk) forgetGaveLocked(keys []string) {
	if len(keys) == 0 {
		return
	}
	var writes []kv.Write
	for _, key := range keys {
		writes = append(writes, kv.Write{Key: []byte(key), Delete: true})
	}
	if err := kv.CommitAll(d.in.Store, writes); err != nil {
		d.in.Log.Warn("it cannot be forgotten which files users gave whose time is over", "error", err)
		return // once more, later
	}
	for _, key := range keys {
		delete(d.gave, key)
	}
}

// took notes, durably, that a holder has what a user made of an item, with which files were given here: so they are
// awaited there. Those that were given with another result of it are not.
func (d *Desk) took(k *kept, outputs map[string]string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var writes []kv.Write
	var now []*gave
	for key, g := range d.gave {
		of := g.User == k.User && g.Task == k.Task && g.Instance == k.Instance && g.At == k.At
		if !of || g.Took || !g.among(outputs) {
			continue
		}
		next := *g
		next.Took = true
		writes, now = append(writes, kv.Write{Key: []byte(key), Value: codec.Encode(next)}), append(now, &next)
	}
	if len(writes) == 0 {
		return
	}
	if err := kv.CommitAll(d.in.Store, writes); err != nil {
		d.in.Log.Warn("it cannot be noted that a result has arrived whose files are only here", "task", k.Task, "error", err)
		return
	}
	for i, w := range writes {
		d.gave[string(w.Key)] = now[i]
	}
	d.gaveNext = min(d.gaveNext, d.in.Clock.Now().Awake+askTookAfter)
	d.in.Nudge()
}

// among reports whether a file is what a result sets.
func (g *gave) among(outputs map[string]string) bool {
	f, err := workflow.ParseFile(outputs[g.Item])
	return err == nil && f.String() == g.File
}

// FilesAlone are the files that users gave here with results which counted, of instances in which this node takes no
// part, and that the partners do not have yet for which they are.
func (d *Desk) FilesAlone() []api.Undelivered {
	out := []api.Undelivered{}
	d.mu.Lock()
	all := slices.Collect(maps.Values(d.gave))
	d.mu.Unlock()
	for _, g := range all {
		f, err := workflow.ParseFile(g.File)
		at := workflow.PartnerID(g.At)
		if err != nil || !g.Took || !d.in.OnlyHere(f) || d.in.Instances.Here(g.Instance) || d.in.Gone(at) {
			continue
		}
		var m gaveMore
		if json.Unmarshal(g.More, &m) != nil {
			m = gaveMore{}
		}
		u := FileAlone(workflow.DataName(g.Item), f)
		u.Instance, u.Task, u.Label, u.Workflow = g.Instance.String(), g.Task, m.Label, m.Workflow
		u.Elsewhere = true
		u.WorkflowLabel, u.Subject, u.Since = m.WorkflowLabel, m.Subject, time.UnixMilli(g.Since).UTC()
		u.User, u.WaitsFor = d.in.People.Called(worklist.User(g.User)), []string{d.in.Name(at)}
		out = append(out, u)
	}
	slices.SortFunc(out, func(a, b api.Undelivered) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Instance, b.Instance), cmp.Compare(a.File, b.File))
	})
	return out
}

// FileAlone is a file that is only here, for the outbox.
func FileAlone(item workflow.DataName, f workflow.File) api.Undelivered {
	return api.Undelivered{
		What: "file " + f.Name + ", for " + string(item), File: string(item), FileName: f.Name,
	}
}

// isFile reports whether what a result sets is a file, as far as this node can know: else it is taken for one.
func (d *Desk) isFile(ctx context.Context, who users.Who, r *Row, name string) bool {
	s := d.askSheet(ctx, who, r)
	if k := d.keptFor(who.ID, r.ID()); s == nil && k != nil {
		s = k.more().Sheet
	}
	if s == nil {
		return true
	}
	return !slices.ContainsFunc(s.Fields, func(f api.Field) bool {
		return f.Name == name && f.Type != string(workflow.TypeFile)
	})
}

// keepGave keeps one of them. It reports whether none was kept like it.
func (d *Desk) keepGave(g *gave) (isNew bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	key := g.key()
	if err := d.in.Store.CommitWait([]kv.Write{{Key: key, Value: codec.Encode(*g)}}); err != nil {
		return false, err
	}
	isNew = d.gave[string(key)] == nil
	d.gave[string(key)] = g
	return isNew, nil
}

// Gives reports whether a file was given here with a result for an item that a partner holds.
func (d *Desk) Gives(to workflow.PartnerID, id workflow.InstanceID, item workflow.DataName, f workflow.File) bool {
	g := gave{Instance: id, Item: string(item), File: f.String(), At: string(to)}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.gave[string(g.key())] != nil
}

// Vouched asks the partners that a file was given for here whether another may read it, too: this node need take no
// part in the instance, and so cannot tell. They have a right to the content, and could give it on. given is false
// where nobody here gave it with a result; nil: one of them says that it may.
func (d *Desk) Vouched(
	ctx context.Context, reader workflow.PartnerID, user string,
	id workflow.InstanceID, item workflow.DataName, f workflow.File,
) (given bool, err error) {
	var holders []workflow.PartnerID
	d.mu.Lock()
	for _, g := range d.gave {
		if g.Instance == id && g.Item == string(item) && g.File == f.String() {
			holders = append(holders, workflow.PartnerID(g.At))
		}
	}
	d.mu.Unlock()
	if len(holders) == 0 {
		return false, nil
	}
	req, err := wire.EncodeFileReader(wire.FileReader{
		Instance: id, Item: item, File: f.String(), Reader: reader, User: user,
	})
	if err != nil {
		return true, err
	}
	slices.Sort(holders)
	for _, p := range holders {
		if err = d.asksHolder(ctx, p, req); err == nil {
			return true, nil
		}
	}
	return true, err
}

// ErrUnasked is why it is not known whether somebody may read a file that was given here.
var ErrUnasked = errors.New("cannot be asked from there now whether others may read it")

// asksHolder is Vouched of one of them.
func (d *Desk) asksHolder(ctx context.Context, p workflow.PartnerID, req []byte) error {
	if !d.in.Peers.Up(p) {
		return fmt.Errorf("it is for %s, which %w", d.in.Name(p), ErrUnasked)
	}
	_, err := d.in.Peers.Request(ctx, p, nil, ProtocolReader, req, listPatience)
	var no interface {
		error
		Answer() string
	}
	switch {
	case errors.As(err, &no):
		return fmt.Errorf("it is for %s, which says: %s", d.in.Name(p), no.Answer())
	case err != nil:
		return fmt.Errorf("it is for %s, which %w", d.in.Name(p), ErrUnasked)
	}
	return nil
}

// AnswerReader answers a partner, at which a file was given for this node, whether another may read it.
func (d *Desk) AnswerReader(from workflow.PartnerID, req []byte) ([]byte, error) {
	q, err := wire.DecodeFileReader(req)
	if err != nil {
		return nil, err
	}
	f, err := workflow.ParseFile(q.File)
	if err != nil {
		return nil, err
	}
	if err := d.spend(from); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), listPatience)
	defer cancel()
	if err := d.in.Vouch(ctx, from, q.Reader, q.User, q.Instance, q.Item, f); err != nil {
		return nil, err
	}
	return []byte("yes"), nil
}

// mindGave forgets now and then what is over.
func (d *Desk) mindGave(now moment.Now) time.Duration {
	d.mu.Lock()
	due := len(d.gave) > 0 && now.Awake >= d.gaveNext
	if due || len(d.gave) == 0 {
		d.gaveNext = now.Awake + lookAtGave
	}
	left := d.gaveNext - now.Awake
	d.mu.Unlock()
	if due {
		d.in.Aside(d.forgetGave)
	}
	return left
}

// lookAtGave has a partner be asked soon that was just connected, if something that was given here is for it.
func (d *Desk) lookAtGave(p workflow.PartnerID) {
	d.mu.Lock()
	due := false
	for _, g := range d.gave {
		due = due || workflow.PartnerID(g.At) == p
	}
	if due {
		d.gaveNext = 0
	}
	d.mu.Unlock()
	if due {
		d.in.Nudge()
	}
}

// forgetGave forgets those whose time is over, and those that their holders say they have.
func (d *Desk) forgetGave() {
	over, ask := d.overGave(d.in.Clock.Now().Wall)
	mute := map[string]bool{}
	for _, key := range ask {
		d.mu.Lock()
		g := d.gave[key]
		d.gaveLast = key
		d.mu.Unlock()
		if g == nil || mute[g.At] {
			continue
		}
		whole, err := d.askGave(g)
		mute[g.At] = err != nil
		if f, no := workflow.ParseFile(g.File); whole && no == nil {
			d.in.Got(f, workflow.PartnerID(g.At)) // it may have had that content before, and never ask for it
		}
		if whole && d.in.Clock.Now().Wall.Sub(time.UnixMilli(g.Since)) > askGaveAfter {
			over = append(over, key)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.forgetGaveLocked(over)
}

// overGave are the keys of those whose time is over, and of those whose holders are to be asked: these in turn.
func (d *Desk) overGave(now time.Time) (over, ask []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var before []string
	for _, key := range slices.Sorted(maps.Keys(d.gave)) {
		g := d.gave[key]
		switch age := now.Sub(time.UnixMilli(g.Since)); {
		case d.waitsOf(g.Instance):
		case age > gaveFor:
			over = append(over, key)
		case age <= askGaveAfter && !d.aloneStill(g) || !d.in.Peers.Up(workflow.PartnerID(g.At)):
		case key <= d.gaveLast:
			before = append(before, key)
		default:
			ask = append(ask, key)
		}
	}
	ask = append(ask, before...)
	return over, ask[:min(len(ask), maxGaveAsks)]
}

// aloneStill reports whether the content of a file is only here as far as is known, though its holder has the result.
func (d *Desk) aloneStill(g *gave) bool {
	f, err := workflow.ParseFile(g.File)
	return err == nil && g.Took && d.in.OnlyHere(f)
}

// askGave asks the holder of an item whether it has a file on its own disk that was given here. An error: it does not
// answer.
func (d *Desk) askGave(g *gave) (whole bool, err error) {
	req, err := wire.EncodeFileAsk(wire.FileAsk{Instance: g.Instance, Item: workflow.DataName(g.Item), File: g.File})
	if err != nil {
		return false, nil // nobody can be asked about it
	}
	ctx, cancel := context.WithTimeout(context.Background(), listPatience)
	defer cancel()
	b, err := d.in.Peers.Request(ctx, workflow.PartnerID(g.At), nil, ProtocolGiven, req, listPatience)
	var no interface {
		error
		Answer() string
	}
	if errors.As(err, &no) {
		return false, nil // it does not know the instance, or not yet
	}
	return err == nil && string(b) == hasWhole, err
}

// hasWhole and hasNot are what a holder answers.
const (
	hasWhole = "whole"
	hasNot   = "not here"
)

// AnswerGiven answers a partner whether a file is here that was given there with a result.
func (d *Desk) AnswerGiven(from workflow.PartnerID, req []byte) ([]byte, error) {
	a, err := wire.DecodeFileAsk(req)
	if err != nil {
		return nil, err
	}
	f, err := workflow.ParseFile(a.File)
	if err != nil {
		return nil, err
	}
	if err := d.spend(from); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), listPatience)
	defer cancel()
	whole, err := d.in.HasGiven(ctx, from, a.Instance, a.Item, f)
	switch {
	case err != nil:
		return nil, errCannot
	case whole:
		return []byte(hasWhole), nil
	}
	return []byte(hasNot), nil
}

// waitsOf reports whether something that was done in an instance waits here to be handed in, or was refused and may still
// be adopted. The caller holds d.mu.
func (d *Desk) waitsOf(id workflow.InstanceID) bool {
	for _, k := range d.kept {
		if k.Instance == id && len(k.Word) > 0 {
			return true
		}
	}
	for _, k := range d.refusals {
		if k.Instance == id {
			return true
		}
	}
	return false
}
