package filing

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/files"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/worklists"
	"github.com/mutirao-mesh/mutirao/workflow"
)

const (
	// Step is how often it is looked at how far a file is that somebody waits for.
	Step = 250 * time.Millisecond
	// StuckAfter is for how long nobody gives a file before that is said.
	StuckAfter = 3 * time.Second
)

// readFirst is how long a file may be to be read as a whole before any of it is given to a
// user. Of a longer one each chunk is verified as it is given, and what is damaged breaks it off.
const readFirst = 64 << 20

// mostTries is how often a file is fetched again that the disk changes right after that.
const mostTries = 3

// Given notes that an instance has files, which were given at this node and must be here; or, if not ownUser, elsewhere, by
// a user whose node has them: what is here by chance nobody is given for that, and what is not, or cannot be noted now as
// the disk is full, is fetched from there, or noted, later (FetchAhead): what a person did does not wait for that.
func (k *Desk) Given(
	def *workflow.Definition, id string, by workflow.PartnerID, values map[workflow.DataName]workflow.Value,
	ownUser bool,
) error {
	for name, v := range values {
		d := def.Datum(name)
		if d == nil || d.Type != workflow.TypeFile || v == nil {
			continue
		}
		f, err := workflow.ParseFile(fmt.Sprint(v))
		switch {
		case err != nil:
			return api.Errorf(api.Invalid, "%s: %v", name, err)
		case k.Files == nil:
			return ErrNone
		case ownUser:
			err = k.givenHere(name, f, id, by)
		case k.has(f):
			if no := k.Files.Use(f, id, string(k.initiator(by)), k.Clock.Now().Wall); no != nil {
				k.Log.Warn("it cannot be noted now that an instance has a file", "instance", id, "data", name, "error", no)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// givenHere notes that an instance has a file which was given at this node.
func (k *Desk) givenHere(name workflow.DataName, f workflow.File, id string, by workflow.PartnerID) error {
	if !k.has(f) {
		return api.Errorf(api.Refused, "%s: the content of file %s is not at this node", name, f.Name).
			WithHint("give the file itself: --file %s=PATH", name)
	}
	if err := k.Files.Give(f, id, string(k.initiator(by)), k.Clock.Now().Wall); err != nil {
		return api.Errorf(api.Refused, "%s: %v", name, err)
	}
	if !k.has(f) { // it was swept in between
		return api.Errorf(api.Refused, "%s: the content of file %s is not at this node any more", name, f.Name)
	}
	return nil
}

func (k *Desk) has(f workflow.File) bool {
	_, here := k.Files.Path(f)
	return here
}

// GiveFor notes, durably, that a user gave a file here for an instance, in which this node need take no part.
func (k *Desk) GiveFor(f workflow.File, id workflow.InstanceID) error {
	if k.Files == nil {
		return ErrNone
	}
	by := workflow.PartnerID("") // this node keeps it for its own user
	if sum, here := k.Index.Get(id); here {
		by = k.initiator(sum.By)
	}
	return k.Files.Give(f, id.String(), string(by), k.Clock.Now().Wall)
}

// HasGiven reports whether all of a file is on this node's disk that a partner gave, as a result says which counted here.
// Nobody else is told. What is not here is fetched from there (FetchAhead).
func (k *Desk) HasGiven(
	ctx context.Context, from workflow.PartnerID, id workflow.InstanceID, item workflow.DataName, f workflow.File,
) (whole bool, err error) {
	if k.Files == nil {
		return false, ErrNone
	}
	if _, here := k.Index.Get(id); !here {
		return false, files.ErrNotHere
	}
	gave := false
	if err := k.Instances.Peek(ctx, id, func(h *Held) {
		gave = slices.Contains(h.M.GivenBy(item, f.String()), from)
	}); err != nil || !gave {
		return false, err
	}
	if _, whole = k.Files.Path(f); !whole {
		k.Again(ctx, id) // of an instance that has ended, nothing has its files come after a restart
	}
	return whole, nil
}

// Want is a file that an instance here has among its data.
func (k *Desk) Want(
	id workflow.InstanceID, by workflow.PartnerID, item workflow.DataName, f workflow.File,
) files.Want {
	return files.Want{
		File: f, Instance: id, Item: item, By: k.initiator(by),
		From: func(ctx context.Context) (out []workflow.PartnerID, err error) {
			if _, here := k.Index.Get(id); !here {
				return nil, files.ErrNotWanted
			}
			err = k.Instances.Peek(ctx, id, func(h *Held) { out = k.sources(h, item, f) })
			return out, err
		},
	}
}

// sources are the partners that could have a file: first those that gave it, then the others
// that take part. It goes through the partner list and not through those who take part, of
// whom an instance can name any number.
func (k *Desk) sources(h *Held, item workflow.DataName, f workflow.File) (out []workflow.PartnerID) {
	seen := map[workflow.PartnerID]bool{k.Self: true}
	for _, p := range h.M.GivenBy(item, f.String()) {
		if !seen[p] { // also one that is not on the partner list yet: nobody has said that it is gone
			seen[p], out = true, append(out, p)
		}
	}
	for _, p := range k.People.All() {
		if id := p.Record.Partner; !seen[id] && h.M.Participates(id) {
			seen[id], out = true, append(out, id)
		}
	}
	return out
}

// FetchAhead has the files come here that tasks at this node are about to read, and those that users
// elsewhere gave with results that this node took: it is asked for them by all others; and what this node looks
// after. The instance's owner calls it after each change of one that has files.
func (k *Desk) FetchAhead(h *Held) {
	id, by := h.M.Instance(), k.initiator(h.By)
	if !k.Files.Look(id, by) {
		return
	}
	reads, brought := h.M.FilesToRead(), h.M.FilesBrought()
	refs := make([]files.Ref, 0, len(reads)+len(brought))
	for _, r := range slices.Concat(reads, brought) {
		refs = append(refs, files.Ref{Item: r.Item, File: r.File})
	}
	for _, r := range k.Orphans(h) {
		if !slices.Contains(refs, r) {
			refs = append(refs, r)
		}
	}
	k.Files.Ahead(id, by, refs, func(r files.Ref) files.Want { return k.Want(id, by, r.Item, r.File) })
}

// Again looks at an instance for files that its tasks are about to read.
func (k *Desk) Again(ctx context.Context, id workflow.InstanceID) {
	err := k.Instances.Visit(ctx, id, k.FetchAhead)
	if _, here := k.Index.Get(id); err != nil && !here {
		k.Files.Ahead(id, "", nil, nil)
	}
}

// Payer is in whose share a file is that an item of this node's user needs, as files.Store
// counts: that of who began the instance, and where this node takes no part in it, its holder's.
func (k *Desk) Payer(c worklists.Content) workflow.PartnerID {
	if sum, here := k.Index.Get(c.Instance); here {
		return k.initiator(sum.By)
	}
	return c.At
}

// fetchContent has a file come that an item needs which a user of this node has.
func (k *Desk) fetchContent(ctx context.Context, c worklists.Content) error {
	if k.Files == nil {
		return ErrNone
	}
	return k.Files.Fetch(ctx, k.contentWant(c))
}

// contentWant is what has such a file come.
func (k *Desk) contentWant(c worklists.Content) files.Want {
	w := files.Want{
		File: c.File, Instance: c.Instance, Item: c.Name, User: c.User, By: k.Payer(c), AtMost: c.AtMost,
		From: func(context.Context) ([]workflow.PartnerID, error) {
			others := slices.DeleteFunc(slices.Clone(c.Givers), func(p workflow.PartnerID) bool { return p == c.At })
			return slices.DeleteFunc(slices.Insert(others, 0, c.At),
				func(p workflow.PartnerID) bool { return p == k.Self }), nil
		},
	}
	if sum, here := k.Index.Get(c.Instance); here {
		w = k.Want(c.Instance, sum.By, c.Name, c.File)
		w.User, w.AtMost = c.User, c.AtMost
	}
	return w
}

// FetchWhile is fetchContent for as long as somebody gives it. It calls comes when some of it came.
func (k *Desk) FetchWhile(ctx context.Context, c worklists.Content, comes func()) error {
	if k.Files == nil {
		return ErrNone
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	before, _ := k.Files.Have(c.File)
	stuck, why := time.Duration(0), ""
	done := make(chan error, 1)
	go func() { done <- k.fetchContent(ctx, c) }()
	for {
		select {
		case err := <-done:
			if why != "" && err != nil {
				return errors.New(why)
			}
			return err
		case <-k.Clock.After(Step):
			if have, _ := k.Files.Have(c.File); have > before {
				comes()
			}
			if now := k.Files.Stuck(c.File); now == "" {
				stuck = 0
			} else if stuck += Step; stuck > 2*StuckAfter {
				why = now
				cancel()
			}
		}
	}
}

// read opens the content of a file, which it has fetched if it is not here, or not as it was.
func (k *Desk) read(ctx context.Context, f workflow.File, w files.Want) (io.ReadCloser, error) {
	for tries := 0; ; tries++ {
		sound, err := k.Files.Sound(ctx, f, f.Size <= readFirst)
		if err == nil && !sound {
			err = k.Await(ctx, f, w)
		}
		if err != nil {
			return nil, err
		}
		r, err := k.Files.Reader(f)
		if err == nil || tries == mostTries || !errors.Is(err, files.ErrDamaged) && !errors.Is(err, files.ErrNotHere) {
			return r, err
		}
	}
}

// RateFrom is how many bytes a second of files came lately from a partner; 0: none did.
func (k *Desk) RateFrom(p workflow.PartnerID) int64 {
	if k.Files == nil {
		return 0
	}
	rate, _ := k.Files.RateFrom(p)
	return rate
}

// Rate is how many bytes a second of files come from the quickest of these partners that is connected; where none of
// them gave any yet, as from others; 0: no file came yet.
func (k *Desk) Rate(from []workflow.PartnerID) int64 { return k.Measured(from).Rate }

// Measured is a rate with what it was measured by: from whom files came, last so long ago; of nobody: from others.
type Measured struct {
	Rate int64
	From workflow.PartnerID
	Ago  time.Duration
}

// Measured is Rate with what it was measured by.
func (k *Desk) Measured(from []workflow.PartnerID) (m Measured) {
	if k.Files == nil {
		return m
	}
	for _, p := range from {
		if !k.Up(p) {
			continue
		}
		if rate, ago := k.Files.RateFrom(p); rate > m.Rate {
			m = Measured{rate, p, ago}
		}
	}
	if m.Rate == 0 {
		m.Rate, m.Ago = k.Files.Rate()
	}
	return m
}

// Mentions calls each for every file that an instance here has among its data, now or before.
// complete is false if there are instances that cannot be read.
func (k *Desk) Mentions(ctx context.Context, each func(files.Mention)) (complete bool) {
	complete = true
	filed := k.Index.Filed(func(of workflow.Hash) bool {
		def := k.Definition(of)
		return def == nil || HasFiles(def)
	})
	for _, id := range filed { // no other need be read
		if ctx.Err() != nil {
			return false
		}
		var all []files.Mention
		err := k.Instances.Peek(ctx, id, func(h *Held) {
			for _, g := range h.M.FilesGiven() {
				all = append(all, files.Mention{
					File: g.File, Instance: id, Item: g.Item, By: k.initiator(h.By), Gave: g.By == k.Self,
				})
			}
		})
		complete = complete && (err == nil || errors.Is(err, kv.ErrNotFound)) // it was given up meanwhile
		for _, m := range all {                                               // not while the instance waits: this may write to the disk
			each(m)
		}
	}
	return complete
}

// WantAgain is what has a file come here again that an instance has.
func (k *Desk) WantAgain(m files.Mention) files.Want {
	w := k.Want(m.Instance, "", m.Item, m.File)
	w.By = m.By
	return w
}

// Keep looks after the files that are here, until the node stops.
func (k *Desk) Keep() {
	ctx, cancel := k.UntilStopped()
	defer cancel()
	k.Files.Keep(ctx)
}

// Await waits for a file until ctx ends, and says then what it was waited for.
func (k *Desk) Await(ctx context.Context, f workflow.File, w files.Want) error {
	w.Asked = true
	return k.awaited(ctx, f, k.Files.Fetch(ctx, w))
}

// awaited says how waiting for a file ended, until ctx did.
func (k *Desk) awaited(ctx context.Context, f workflow.File, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() == nil:
		return api.Judge(api.Refused, err)
	}
	return api.Errorf(api.NotYet, "file %s is not here yet: %v", f.Name, err).
		WithHint("it comes from any partner that has it, once one can be reached: wait longer, or try again then")
}
