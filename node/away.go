package node

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/files"
	"github.com/mutirao-mesh/mutirao/node/filing"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/worklists"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist/device"
)

// Disconnecting, unlike going down, has the node go on alone: its users work on what they
// have locked, and what they did waits in the outbox until it is to reconnect. What comes
// next on the way out is decided by worklist/device, whenever it is looked at again.

const (
	// usualWait is the longest wait that is accepted where none is given.
	usualWait = 5 * time.Minute
	// unasked is for how long a question stays that nobody looks at: then the node stays, as
	// whoever wanted it to go is gone.
	unasked = 2 * time.Minute
)

// absence is whether this node is out of contact with its partners on purpose.
type absence struct {
	*contacts
	crew      *crew
	departure *departure
	announce  func() error
	worklists *worklists.Desk
	filing    *filing.Desk
	label     func(workflow.PartnerID) string
	// refresh has everybody's silence count from now on.
	refresh func()

	turn sync.Mutex // held while it goes a step, or comes back

	mu   sync.Mutex // guards what follows
	gone time.Time  // since when; zero: it is not
	back time.Time  // when it is back, as partners were told; zero: they were not
	way  *way       // nil: it is not on its way out
	// given and stays are those of the way by which it went, since it was started.
	given []api.Given
	stays []api.Stay
}

// way is how far a node is on its way out.
type way struct {
	ctx      context.Context // ends when it has gone, or stays
	stop     context.CancelFunc
	began    time.Duration // Awake
	looked   time.Duration // Awake: when somebody asked last how far it is
	within   time.Duration
	away     time.Duration // for how long it will be; 0: not said
	accepted []device.Question
	along    []worklists.Along
	untaken  []api.Item // that this node holds and nobody has
	files    map[device.FileID]worklists.Content
	stuck    map[device.FileID]time.Duration // since when (Awake) nobody gives them
	failed   map[device.FileID]string        // why they cannot be fetched
	fetching bool
	followed bool // it goes on by itself
	told     bool // partners know that it takes nothing new on
	// passed are the instances of which it passed something on, since (Awake) the first time that it could have gone.
	// Both are for whoever holds absence.turn.
	passed map[workflow.InstanceID]bool
	since  time.Duration
	// given is what it passed on, stays what nobody else can do of what it was only given to perform.
	given   []api.Given
	stays   []api.Stay
	plan    device.Plan
	trouble string // why it cannot go though nothing is asked
}

// loadAbsence reads whether the node was disconnected when it stopped.
func loadAbsence(a *absence) (*absence, error) {
	b, err := a.store.Get(metaKey(metaAway))
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return a, nil
	case err != nil:
		return nil, err
	}
	at, err := awayFrom(b)
	if err == nil { // else sift has removed it
		a.gone, a.back = at[0], at[1]
	}
	return a, nil
}

// awayFrom reads since when a node is disconnected, and until when it said that it is; zero: it did not.
func awayFrom(b []byte) (at [2]time.Time, err error) {
	if len(b) != 8 && len(b) != 16 {
		return at, fmt.Errorf("%d bytes, want 8 or 16", len(b))
	}
	for i := range len(b) / 8 {
		at[i] = time.UnixMilli(int64(binary.BigEndian.Uint64(b[8*i:]))).UTC()
	}
	return at, nil
}

// away is since when this node is disconnected on purpose. Before it is loaded it is not.
func (a *absence) away() (since time.Time, away bool) {
	if a == nil {
		return since, false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.gone, !a.gone.IsZero()
}

// since is that for people; nil: it is not.
func (a *absence) since() *time.Time {
	if at, away := a.away(); away {
		return &at
	}
	return nil
}

// until is when partners were told that it is back; nil: they were not, or it is not away.
func (a *absence) until() *time.Time {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.gone.IsZero() || a.back.IsZero() {
		return nil
	}
	at := a.back
	return &at
}

// goes reports whether partners are to be told that this node takes nothing new on.
func (a *absence) goes() bool {
	if a == nil {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.way != nil && a.way.told
}

// disconnect begins the way out, or goes on with it.
func (a *absence) disconnect(ctx context.Context, r api.DisconnectRequest) (*api.Contact, error) {
	var accepted []device.Question
	for _, q := range r.Accept {
		if !slices.Contains(device.Acceptable, device.Question(q)) {
			return nil, api.Errorf(api.Invalid, "%q cannot be accepted: want %s", q, texts(device.Acceptable))
		}
		accepted = append(accepted, device.Question(q))
	}
	switch {
	case r.Within < 0:
		return nil, api.Errorf(api.Invalid, "a wait of %s: want 0 (%s) or more", r.Within,
			workflow.FormatDuration(usualWait))
	case r.For < 0 || time.Duration(r.For) > membership.MaxAway:
		return nil, api.Errorf(api.Invalid, "away for %s: want 0 (not said) to %s: so long at most partners wait",
			r.For, workflow.FormatDuration(membership.MaxAway)).
			WithHint("for longer, have mutirao leave give this node's work on")
	case a.departure.leaving.Load():
		return nil, api.Errorf(api.Refused, "this node leaves its mesh").WithHint("restart it to take that back")
	}
	if _, away := a.away(); away {
		if err := a.announcedOtherwise(time.Duration(r.For)); err != nil {
			return nil, err
		}
		return a.contact(ctx)
	}
	along, untaken, err := a.takenAlong(ctx)
	if err != nil {
		return nil, err
	}
	a.turn.Lock()
	a.begin(r, accepted, along, untaken)
	a.step()
	a.mu.Lock()
	if w := a.way; w != nil && !w.followed { // it could not go at once
		w.followed = true
		a.crew.running.Go(func() { a.follow(w) })
	}
	a.mu.Unlock()
	a.turn.Unlock()
	return a.contact(ctx)
}

// announcedOtherwise refuses another time than a node announced when it went: partners cannot hear of it now, and wait
// for as long as they were told. Without one, or with the same once more, it is away as it is.
func (a *absence) announcedOtherwise(wanted time.Duration) error {
	since, until, said := a.since(), a.until(), "no time was announced"
	if wanted == 0 || since == nil { // it has come back just now
		return nil
	}
	if until != nil {
		was := until.Sub(*since)
		if (was - wanted).Abs() < time.Second { // both are kept in milliseconds
			return nil
		}
		said = workflow.FormatDuration(was) + " was announced"
	}
	return api.Errorf(api.Refused, "this node is away already, and %s when it went: that it is to be %s cannot be told to partners now",
		said, workflow.FormatDuration(wanted)).
		WithHint("mutirao worklist reconnect, and disconnect once more; else it stays away, and partners wait as announced")
}

// takenAlong are the items that people here have, and those that this node holds and nobody has.
func (a *absence) takenAlong(ctx context.Context) (along []worklists.Along, untaken []api.Item, err error) {
	if along, err = a.worklists.Along(ctx); err != nil {
		return nil, nil, err
	}
	untaken, err = a.worklists.Untaken(ctx)
	return along, untaken, err
}

// begin notes what the user wants, and what there is to take along.
func (a *absence) begin(
	r api.DisconnectRequest, accepted []device.Question, along []worklists.Along, untaken []api.Item,
) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.gone.IsZero() {
		return
	}
	if a.way == nil {
		w := &way{
			began: a.clock.Now().Awake, stuck: map[device.FileID]time.Duration{}, failed: map[device.FileID]string{},
			passed: map[workflow.InstanceID]bool{},
		}
		w.ctx, w.stop = context.WithCancel(context.Background())
		a.way = w
	}
	w := a.way
	w.within, w.away = cmp.Or(time.Duration(r.Within), usualWait), cmp.Or(time.Duration(r.For), leased(along))
	for _, q := range accepted {
		if !slices.Contains(w.accepted, q) {
			w.accepted = append(w.accepted, q)
		}
	}
	w.looked = a.clock.Now().Awake
	w.along, w.untaken, w.files = along, untaken, map[device.FileID]worklists.Content{}
	for _, x := range along {
		for _, c := range x.Files {
			w.files[device.FileID(c.File.String())] = c
		}
	}
}

// leased is for how long a node is away that does not say so: for as long as somebody has locked something that it
// holds itself, which others would else have fail after its connection time. 0: nobody has.
func leased(along []worklists.Along) (away time.Duration) {
	for _, x := range along {
		if x.Own && x.Locked {
			away = max(away, x.Leased)
		}
	}
	return min((away + time.Minute - 1).Truncate(time.Minute), membership.MaxAway) // in whole minutes, for people
}

// follow goes on with the way out until it ends.
func (a *absence) follow(w *way) {
	for {
		select {
		case <-a.clock.After(filing.Step):
		case <-w.ctx.Done():
			return
		case <-a.crew.stopped:
			w.stop()
			return
		}
		a.turn.Lock()
		if w.ctx.Err() == nil && !a.forgotten(w) {
			a.step()
		}
		a.turn.Unlock()
	}
}

// forgotten has a node stay that asks something which nobody has looked at for long. The
// caller holds a.turn.
func (a *absence) forgotten(w *way) bool {
	a.mu.Lock()
	asks := w.plan.Asks != device.NoQuestion || w.trouble != ""
	yes := asks && a.clock.Now().Awake-w.looked > unasked
	a.mu.Unlock()
	if yes {
		a.log.Info("this node stays connected: what it asked on its way out was not answered")
		a.stay()
	}
	return yes
}

// stay ends the way out, if the node is on it. The caller holds a.turn.
func (a *absence) stay() {
	a.mu.Lock()
	w := a.way
	a.way = nil
	a.mu.Unlock()
	if w == nil {
		return
	}
	w.stop()
	if w.told {
		if err := a.announce(); err != nil {
			a.log.Warn("partners are not told that this node stays", "error", err)
		}
	}
}

// step does what is next on the way out. The caller holds a.turn.
func (a *absence) step() {
	a.mu.Lock()
	w := a.way
	if w == nil {
		a.mu.Unlock()
		return
	}
	d, err := a.state(w)
	if err != nil {
		w.trouble = err.Error()
		a.mu.Unlock()
		return
	}
	w.plan, w.trouble = device.Leave(d), ""
	tell := w.plan.Tell && !w.told
	w.told = w.told || tell
	plan := w.plan
	a.mu.Unlock()
	if tell {
		if err := a.announce(); err != nil {
			a.log.Warn("partners are not told that this node is about to disconnect", "error", err)
		}
	}
	if len(plan.Fetch) > 0 {
		a.fetch(w)
	}
	if plan.Go && a.passOn(w) {
		a.end(w)
	}
}

// passOn passes on what others can do meanwhile, and reports whether this node may go: others have heard of it, or were
// waited for long enough. The caller holds a.turn.
func (a *absence) passOn(w *way) bool {
	now := a.clock.Now().Awake
	if w.since == 0 {
		w.since = now
	}
	given, stays, untold, err := a.departure.passOn(w.ctx, w.passed)
	a.mu.Lock()
	defer a.mu.Unlock()
	w.given, w.stays = append(w.given, given...), stays
	if err != nil {
		w.trouble = err.Error()
		return false
	}
	return !untold || now-w.since > leaveWait
}

// state is what is so at this device. The caller holds a.mu.
func (a *absence) state(w *way) (d device.Device, err error) {
	now := a.clock.Now().Awake
	d = device.Device{
		Files: map[device.FileID]device.File{}, Within: w.within, Waited: now - w.began, Accepted: w.accepted,
	}
	var coming []files.Coming
	var from []workflow.PartnerID // may give them
	for _, x := range w.along {
		i := device.Item{ID: x.Item.ID, Locked: x.Locked, Own: x.Own, Lacks: x.Lacks}
		for _, c := range x.Files {
			i.Files = append(i.Files, device.FileID(c.File.String()))
		}
		d.Items = append(d.Items, i)
	}
	if a.filing.Files == nil {
		for id, c := range w.files {
			d.Files[id] = device.File{Size: c.File.Size, Stuck: filing.ErrNone.Message}
		}
		return d, nil
	}
	for id, c := range w.files {
		f := device.File{Size: c.File.Size, Stuck: w.failed[id]}
		f.Here, f.Whole = a.filing.Files.Have(c.File)
		if why := a.filing.Files.Stuck(c.File); why == "" {
			delete(w.stuck, id)
		} else if since, before := w.stuck[id]; !before {
			w.stuck[id] = now
		} else if now-since >= filing.StuckAfter {
			f.Stuck = why
		}
		d.Files[id] = f
	}
	for _, id := range device.Missed(d.Items, d.Files, false) {
		c := w.files[id]
		from = append(append(from, c.At), c.Givers...)
		coming = append(coming, files.Coming{File: c.File, By: string(a.filing.Payer(c))})
	}
	m := a.filing.Measured(from)
	if d.Rate, d.Ago = m.Rate, m.Ago; m.From != "" {
		d.From = a.label(m.From)
	}
	d.Lacks, d.Limit, err = a.filing.Files.Lacks(coming)
	return d, err
}

// fetch has the files come that are still missing, one after the other.
func (a *absence) fetch(w *way) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if w.fetching {
		return
	}
	w.fetching = true
	order := w.plan.Fetch
	a.crew.running.Go(func() {
		for _, id := range order {
			a.mu.Lock()
			c, wanted := w.files[id]
			a.mu.Unlock()
			if wanted {
				a.fetchOne(w, id, c)
			}
		}
		a.mu.Lock()
		w.fetching = false
		a.mu.Unlock()
	})
}

// fetchOne has a file come, until it is here, or for so long that others get their turn. That
// it failed is said until something of it comes.
func (a *absence) fetchOne(w *way, id device.FileID, c worklists.Content) {
	comes := func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(w.failed, id)
	}
	err := a.filing.FetchWhile(w.ctx, c, comes)
	if err == nil {
		comes()
	} else if w.ctx.Err() == nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		w.failed[id] = err.Error()
	}
}

// end ends all contact: that it is so is durable first, then partners are told.
func (a *absence) end(w *way) {
	now := a.clock.Now().Wall
	value := binary.BigEndian.AppendUint64(nil, uint64(now.UnixMilli()))
	var back time.Time
	if w.away > 0 {
		value = binary.BigEndian.AppendUint64(value, uint64(now.Add(w.away).UnixMilli()))
		back = time.UnixMilli(now.Add(w.away).UnixMilli()).UTC()
	}
	if err := a.store.CommitWait([]kv.Write{{Key: metaKey(metaAway), Value: value}}); err != nil {
		a.mu.Lock()
		w.trouble = err.Error()
		a.mu.Unlock()
		return
	}
	a.mu.Lock()
	a.gone, a.back, a.way, a.given = time.UnixMilli(now.UnixMilli()).UTC(), back, nil, w.given
	a.stays = w.stays
	a.mu.Unlock()
	w.stop()
	a.departure.depart(membership.GoesDown, w.away)
	a.carrier.Silence(true)
	a.log.Info("disconnected on purpose: nobody is talked to until this node is to reconnect")
	a.events.publish(api.Event{At: now, Kind: "contact", Text: api.IsDisconnected})
}

// reconnect has this node talk to its partners again; one that had not gone yet stays.
func (a *absence) reconnect(ctx context.Context) (*api.Contact, error) {
	a.turn.Lock()
	defer a.turn.Unlock()
	a.stay()
	if _, away := a.away(); !away {
		return a.contact(ctx)
	}
	if err := a.store.CommitWait([]kv.Write{{Key: metaKey(metaAway), Delete: true}}); err != nil {
		return nil, err
	}
	a.refresh()
	a.mu.Lock()
	a.gone, a.back, a.given, a.stays = time.Time{}, time.Time{}, nil, nil
	a.mu.Unlock()
	if _, err := a.departure.own.Publish(func(r *membership.Record) { r.Going, r.Away = membership.Staying, 0 }); err != nil {
		a.log.Warn("this node's record does not say that it is back", "error", err)
	}
	a.carrier.Silence(false)
	a.nudge()
	a.log.Info("connected again")
	a.events.publish(api.Event{At: a.clock.Now().Wall, Kind: "contact", Text: api.IsConnected})
	if err := a.announce(); err != nil {
		a.log.Warn("partners are not told where this node is", "error", err)
	}
	return a.contact(ctx)
}

// contact says how this node stands to its partners. While it is away the items are those that are still to be done.
func (a *absence) contact(ctx context.Context) (*api.Contact, error) {
	var along []worklists.Along
	var untaken []api.Item
	if _, away := a.away(); away {
		var err error
		if along, untaken, err = a.takenAlong(ctx); err != nil {
			return nil, err
		}
	}
	out := &api.Contact{
		State: api.IsConnected, Items: []api.Item{}, Along: []api.Item{}, Own: []api.Item{}, Withheld: []api.Withheld{},
		Passed: []api.Given{}, Stays: []api.Stay{}, Since: a.since(), Until: a.until(),
	}
	waits := a.departure.own.ConnectionTime()
	a.mu.Lock()
	defer a.mu.Unlock()
	switch w := a.way; {
	case !a.gone.IsZero():
		out.State, out.Waits = api.IsDisconnected, workflow.FormatDuration(max(waits, a.back.Sub(a.gone)))
		out.Passed, out.Stays = append(out.Passed, a.given...), append(out.Stays, a.stays...)
	case w != nil:
		along, untaken, w.looked = w.along, w.untaken, a.clock.Now().Awake
		out.State, out.Asks, out.Why, out.Volume = api.IsLeaving, string(w.plan.Asks), w.plan.Text, w.plan.Volume
		out.Waits, out.For = workflow.FormatDuration(max(waits, w.away)), api.Span(w.away)
		out.Within = api.Span(w.within)
		out.Passed, out.Stays = append(out.Passed, w.given...), append(out.Stays, w.stays...)
		if w.trouble != "" {
			out.Asks, out.Why = "trouble", w.trouble
		}
		if w.plan.Takes > 0 {
			out.Takes = workflow.FormatDuration(w.plan.Takes)
		}
		for _, x := range along {
			if slices.Contains(w.plan.Items, x.Item.ID) {
				out.Items = append(out.Items, a.item(x))
			}
		}
	default:
		out.Waits = workflow.FormatDuration(waits)
		return out, nil
	}
	for _, x := range along {
		if x.Locked {
			out.Along = append(out.Along, a.item(x))
		}
		if x.Locked || x.Own {
			out.Withheld = append(out.Withheld, x.NotForUser()...)
		}
		if x.Own {
			out.Own = append(out.Own, a.item(x))
		}
	}
	out.Own = append(out.Own, untaken...)
	return out, nil
}

// item is an item that is taken along, as it is now: its files may have come since the way out began.
func (a *absence) item(x worklists.Along) api.Item {
	out := x.Item
	missing := func(c worklists.Content) bool { return !a.filing.Has(c.File) }
	out.Prefetched = out.Prefetched || len(x.Files) > 0 && !slices.ContainsFunc(x.Files, missing)
	return out
}
