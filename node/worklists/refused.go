package worklists

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/users"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file keeps what users did out of reach and the partner that holds the item refused. That work may be nowhere
// else, so each refusal stays on the disk until its user drops it. It is kept apart from the item, which its user may
// not have any more, or may have taken once more.

// refusedID names a refused result: by its user, its item, and the word by which it was handed in.
func (k *kept) refusedID() string {
	h := sha256.New()
	h.Write([]byte("mutirao/refused/1\x00"))
	h.Write(k.key())
	h.Write(k.Word)
	return hex.EncodeToString(h.Sum(nil)[:8])
}

func (k *kept) refusedKey() []byte { return fmt.Appendf(k.key(), " %s", k.refusedID()) }

// fullLocked reports whether there is no room on this device to keep so many more items. The caller holds d.mu.
func (d *Desk) fullLocked(more int) bool {
	boxed := 0
	for _, k := range d.refusals {
		if !k.said() {
			boxed++
		}
	}
	return len(d.kept)+boxed+more > maxKept
}

// loadRefused takes what was read as refused. A version before this one kept it in place of the item.
func (d *Desk) loadRefused(key string, k *kept) error {
	is := k.refusedKey()
	switch k.Refused {
	case wasAdopted, countsNow:
		d.adoptions[key] = k
		return nil
	case stillCounts:
		d.standing[key] = k
		return nil
	}
	d.refusals[string(is)] = k
	if string(is) == key {
		return nil
	}
	return d.in.Store.CommitWait([]kv.Write{{Key: []byte(key), Delete: true}, {Key: is, Value: k.write().Value}})
}

// refuse puts into the outbox for good what a user did of an item, as it was handed in and refused for a reason. Result
// is as what its holder keeps it; zero: not, or it does not say. Has is how the user has the item still; nil: not any
// more, so that nobody here begins it in vain.
func (d *Desk) refuse(was *kept, why string, result worklist.ID, has *Row) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	key := string(was.key())
	now := d.kept[key]
	if now == nil {
		return nil // its user handed it in again meanwhile, which counts
	}
	no := *was
	no.Refused, no.RefusedAt = why, d.in.Clock.Now().Wall.UnixMilli()
	no.setPutOff(false)
	no.keptAs(result)
	writes := []kv.Write{{Key: no.refusedKey(), Value: no.write().Value}}
	next := now // where its user did it again meanwhile that waits
	if was.still(now) {
		next = nil
		writes = append(writes, kv.Write{Key: []byte(key), Delete: true})
		if has != nil {
			is := *now
			is.Word, is.What, is.Done, is.Grant, is.Known = nil, "", 0, has.Grant, has.AsOf.UnixMilli()
			is.setPutOff(false)
			next = is.without(d.refusedWith(&no))
			writes[1] = next.write()
		}
	}
	others := d.lessOf(&no)
	for _, k := range others {
		writes = append(writes, k.write())
	}
	if err := d.in.Store.CommitWait(writes); err != nil {
		return err
	}
	for _, k := range others {
		d.kept[string(k.key())] = k
	}
	d.refusals[string(no.refusedKey())] = &no
	if next != nil {
		d.kept[key] = next
		return nil
	}
	delete(d.kept, key)
	d.unlistLocked(was)
	return nil
}

// refusedWith is what was refused of what a user did in an instance, with what is refused now. The caller holds d.mu.
func (d *Desk) refusedWith(no *kept) []*kept {
	out := []*kept{no}
	for _, k := range d.refusals {
		if k.User == no.User && k.Instance == no.Instance {
			out = append(out, k)
		}
	}
	return out
}

// lessOf are the other items of which something else has to be known once a result is refused, or taken back: what they
// wait for is not done. The caller holds d.mu.
func (d *Desk) lessOf(no *kept) (out []*kept) {
	for _, k := range d.kept {
		if k.User != no.User || k.Instance != no.Instance || len(k.Word) > 0 || k.id() == no.id() {
			continue
		}
		if less := k.without([]*kept{no}); less != k {
			out = append(out, less)
		}
	}
	return out
}

// mended drops what was refused of an item, once another result counts that its user brought by the same grant, or by
// another as its holder had no record of the first.
func (d *Desk) mended(k *kept) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var writes []kv.Write
	for _, key := range slices.Sorted(maps.Keys(d.refusals)) {
		if no := d.refusals[key]; no.User == k.User && no.id() == k.id() &&
			(no.Grant == k.Grant || strings.Contains(no.Refused, noRecord)) {
			writes = append(writes, kv.Write{Key: []byte(key), Delete: true})
		}
	}
	if len(writes) == 0 {
		return
	}
	if err := d.in.Store.CommitWait(writes); err != nil {
		d.in.Log.Warn("a refused result that was mended cannot be deleted", "task", k.Task, "error", err)
		return // its user can drop it
	}
	for _, w := range writes {
		delete(d.refusals, string(w.Key))
	}
}

const (
	// lookAtRefused is how often it is looked at whether refused results count by now, and maxRefusedAsks of how many at
	// most each time.
	lookAtRefused  = 5 * time.Minute
	maxRefusedAsks = 16
	// keptThere ends the reason of a result that its holder keeps: who decides may adopt it. saidAtOnce is in its place
	// where that was the answer to the user, who so has nothing in the outbox.
	keptThere  = "; it is kept there"
	saidAtOnce = "; it is kept there, as its user was told"
	// noRecord begins what a holder says that does not know by what grant a result came (choreo/claims.go).
	noRecord = "its holder has no record that "
)

// keptByHolder reports whether the holder of an item keeps a result that it refused.
func (k *kept) keptByHolder() bool { return strings.HasSuffix(k.Refused, keptThere) || k.said() }

// said reports whether its user was told at once that a result was refused: it is known here only so that its user
// hears of its adoption.
func (k *kept) said() bool { return strings.HasSuffix(k.Refused, saidAtOnce) }

// awaitAdoption notes, durably, that the holder of an item keeps a result of which the user was told that it does not
// count: so the user hears when it is adopted, also at a node that takes no part. If that fails the user does not.
func (d *Desk) awaitAdoption(who users.Who, r *Row, c wire.Spoken, done choreo.Claimed) {
	k := keptOf(who, r, r.AsOf, nil)
	if k.hand(c, d.in.Clock.Now().Wall) != nil || done.Result.IsZero() || !d.elsewhere(r) {
		return
	}
	now := k.Done
	k.Refused, k.RefusedAt = "it does not count, "+Because(done.Kept)+saidAtOnce, now
	k.keptAs(done.Result)
	d.mu.Lock()
	defer d.mu.Unlock()
	var awaited []string
	for key, x := range d.refusals {
		if x.said() {
			awaited = append(awaited, key)
		}
		if x.keptByHolder() && x.User == k.User && x.id() == k.id() && x.more().Result == k.more().Result {
			return // the same, handed in once more
		}
	}
	writes := []kv.Write{{Key: k.refusedKey(), Value: k.write().Value}}
	old := over(d.refusals, awaited, now)
	for _, key := range old {
		writes = append(writes, kv.Write{Key: []byte(key), Delete: true})
	}
	if err := d.in.Store.CommitWait(writes); err != nil {
		d.in.Log.Warn("whoever brought a result will not hear of its adoption here", "task", k.Task, "error", err)
		return
	}
	for _, key := range old {
		delete(d.refusals, key)
	}
	d.refusals[string(k.refusedKey())] = k
	d.in.Nudge() // it is asked about from now on
}

// awaitsAdoption reports whether the holder of an item keeps a result of a user that can still be adopted, as far as is
// known here.
func (d *Desk) awaitsAdoption(user, item string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, k := range d.refusals {
		if k.User == user && k.id() == item && k.keptByHolder() && k.more().Result != "" {
			return true
		}
	}
	return false
}

// keptAs notes as what the holder of an item keeps a result that it refused, so that it can be adopted; zero: it cannot.
func (k *kept) keptAs(result worklist.ID) {
	m := k.more()
	if m.Result = ""; !result.IsZero() {
		m.Result = hex.EncodeToString(result[:])
	}
	k.see(m)
}

// mindRefused asks now and then whether a result was adopted that its holder keeps.
func (d *Desk) mindRefused(now moment.Now) time.Duration {
	d.mu.Lock()
	some := false
	for _, k := range d.refusals {
		some = some || k.keptByHolder()
	}
	due := some && now.Awake >= d.refusedNext
	if due {
		d.refusedNext = now.Awake + lookAtRefused
	}
	left := d.refusedNext - now.Awake
	d.mu.Unlock()
	switch {
	case !some:
		return moment.Never
	case due:
		d.in.Aside(d.askRefused)
	}
	return left
}

// lookAtRefused has a partner be asked soon that was just connected, if it keeps a result that it refused.
func (d *Desk) lookAtRefused(p workflow.PartnerID) {
	d.mu.Lock()
	due := false
	for _, k := range d.refusals {
		due = due || workflow.PartnerID(k.At) == p && k.keptByHolder()
	}
	if due {
		d.refusedNext = 0
	}
	d.mu.Unlock()
	if due {
		d.in.Nudge()
	}
}

// askRefused brings refused results that are kept once more, in turn: the same word counts once, and its holder says what
// it comes to by now. Those that count are in the outbox no longer.
func (d *Desk) askRefused() {
	d.mu.Lock()
	var keys, before []string
	for _, key := range slices.Sorted(maps.Keys(d.refusals)) {
		switch k := d.refusals[key]; {
		case !k.keptByHolder() || !d.isUp(workflow.PartnerID(k.At)):
		case key <= d.refusedLast:
			before = append(before, key)
		default:
			keys = append(keys, key)
		}
	}
	d.mu.Unlock()
	keys = append(keys, before...)
	mute := map[string]bool{}
	for _, key := range keys[:min(len(keys), maxRefusedAsks)] {
		d.mu.Lock()
		k := d.refusals[key]
		d.refusedLast = key
		d.mu.Unlock()
		if k == nil || mute[k.At] {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), claimPatience)
		mute[k.At] = d.askRefusedOne(ctx, key) != nil
		cancel()
	}
}

// became notes what a refused result comes to by now, as its holder says.
func (d *Desk) became(key string, k *kept, done choreo.Claimed) {
	switch {
	case done.Kept == "":
		d.adopted(key, k, done.Adopted)
	case done.Result.IsZero() && k.said():
		d.noLongerAwaited(key, k)
	case done.Result.IsZero() != (k.more().Result == ""):
		d.noteKeptAs(key, k, done.Result)
	}
}

// noLongerAwaited forgets a result that nobody can adopt any more, and that is in no outbox.
func (d *Desk) noLongerAwaited(key string, k *kept) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.refusals[key] != k {
		return
	}
	if err := d.in.Store.CommitWait([]kv.Write{{Key: []byte(key), Delete: true}}); err != nil {
		d.in.Log.Warn("a result that cannot be adopted any more cannot be forgotten", "task", k.Task, "error", err)
		return // once more, later
	}
	delete(d.refusals, key)
}

// askAdopted asks the holders of results that a user, or anybody here, brought and they keep what these come to by now,
// unless they were asked a moment ago.
func (d *Desk) askAdopted(ctx context.Context, user string) {
	now := d.in.Clock.Now().Awake
	of := map[workflow.PartnerID][]string{}
	d.mu.Lock()
	before, asked := d.adoptedAsked[user]
	for _, key := range slices.Sorted(maps.Keys(d.refusals)) {
		if k := d.refusals[key]; (user == "" || k.User == user) && k.keptByHolder() {
			of[workflow.PartnerID(k.At)] = append(of[workflow.PartnerID(k.At)], key)
		}
	}
	if asked && now-before < freshFor || len(of) == 0 {
		d.mu.Unlock()
		return
	}
	d.adoptedAsked[user] = now
	d.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, soonPatience)
	defer cancel()
	ask := func(p workflow.PartnerID) error {
		keys := of[p]
		for _, key := range keys[:min(len(keys), maxRefusedAsks)] {
			if err := d.askRefusedOne(ctx, key); err != nil {
				return err
			}
		}
		return nil
	}
	if err := ask(d.in.Self); err != nil {
		d.in.Log.Warn("it is not known what refused results came to that are kept here", "error", err)
	}
	d.askEach(ask)
}

// askRefusedOne brings one of them once more. An error: its holder does not answer.
func (d *Desk) askRefusedOne(ctx context.Context, key string) error {
	d.mu.Lock()
	k := d.refusals[key]
	d.mu.Unlock()
	if k == nil {
		return nil
	}
	c, err := wire.DecodeSpoken(k.Word)
	if err != nil {
		return nil // it stays until its user drops it
	}
	done, err := d.bring(ctx, workflow.PartnerID(k.At), c)
	switch err = d.refused(k.At, err); {
	case errors.As(err, new(refusal)):
		return nil
	case err != nil:
		return err
	}
	d.became(key, k, done)
	return nil
}

// noteKeptAs notes, durably, as what the holder of an item keeps a result that it refused, where it had not said so, as
// earlier versions did not, or that it cannot be adopted any more.
func (d *Desk) noteKeptAs(key string, k *kept, result worklist.ID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.refusals[key] != k {
		return // dropped, or mended, meanwhile
	}
	is := *k
	is.keptAs(result)
	if err := d.in.Store.CommitWait([]kv.Write{{Key: []byte(key), Value: is.write().Value}}); err != nil {
		d.in.Log.Warn("it cannot be noted as what a result is kept", "task", k.Task, "error", err)
		return // once more, later
	}
	d.refusals[key] = &is
}

const (
	// wasAdopted is in place of the reason of a result that was refused and counts by now: its user is told so, as long as
	// that is kept, and it is in the outbox no more.
	wasAdopted = "it was adopted, and counts"
	// countsNow is wasAdopted where nobody adopted it: what it was made from counts by now.
	countsNow = "it counts by now"
	// maxAdoptions bounds what is kept of these, the newest, and as many of those that are awaited besides the outbox.
	// adoptionFor is for how long.
	maxAdoptions = 256
	adoptionFor  = 90 * 24 * time.Hour
)

// adopted notes, durably, that a refused result counts by now.
func (d *Desk) adopted(key string, k *kept, bySomebody bool) {
	is := *k
	is.Refused, is.RefusedAt = countsNow, d.in.Clock.Now().Wall.UnixMilli()
	if bySomebody {
		is.Refused = wasAdopted
	}
	d.mu.Lock()
	if d.refusals[key] != k { // dropped, or noted, meanwhile
		d.mu.Unlock()
		return
	}
	writes := []kv.Write{{Key: []byte(key), Value: is.write().Value}}
	old := over(d.adoptions, slices.Collect(maps.Keys(d.adoptions)), is.RefusedAt)
	for _, key := range old {
		writes = append(writes, kv.Write{Key: []byte(key), Delete: true})
	}
	err := d.in.Store.CommitWait(writes)
	if err == nil {
		delete(d.refusals, key)
		for _, key := range old {
			delete(d.adoptions, key)
		}
		d.adoptions[key] = &is
		d.unloseLocked(k)
	}
	d.mu.Unlock()
	if err != nil {
		d.in.Log.Warn("it cannot be noted that a refused result was adopted", "task", k.Task, "error", err)
		return // once more, later
	}
	d.took(k, k.outputs())
	d.tellHandedIn(k, "adopted")
	d.in.Publish(api.Event{
		At: d.in.Clock.Now().Wall, Kind: "message", Instance: k.Instance.String(), Text: "adopted",
	})
}

// unloseLocked forgets that a user lost an item, of which a result of that user counts by now. The caller holds d.mu.
func (d *Desk) unloseLocked(k *kept) {
	id := k.id()
	for _, is := range d.heard[k.User] {
		for _, rows := range [][]Row{is.rows, is.gone} {
			for i := range rows {
				if rows[i].ID() == id {
					rows[i].Lost, rows[i].Unneeded = "", time.Time{}
				}
			}
		}
	}
	if d.taken[k.User][id].at == workflow.PartnerID(k.At) {
		d.dropTaken(k.User, id)
		delete(d.taken[k.User], id)
	}
}

// over are, of these keys, those of what is kept no longer, so that there is room for one more.
func over(of map[string]*kept, keys []string, now int64) (out []string) {
	slices.SortFunc(keys, func(a, b string) int {
		return cmp.Or(cmp.Compare(of[a].RefusedAt, of[b].RefusedAt), cmp.Compare(a, b))
	})
	for i, key := range keys {
		if len(keys)-i >= maxAdoptions || now-of[key].RefusedAt > adoptionFor.Milliseconds() {
			out = append(out, key)
		}
	}
	return out
}

// adoptionsOf are the messages to a user that results were adopted which had been refused to this device; known are
// those that follow from the facts that are here.
func (d *Desk) adoptionsOf(who users.Who, known []Told) (out []Told) {
	seen := map[worklist.MessageID]bool{}
	for _, m := range known {
		seen[m.ID] = true
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, k := range d.adoptions {
		c, err := wire.DecodeSpoken(k.Word)
		if err != nil || k.User != who.ID {
			continue
		}
		r := k.row()
		of := worklist.Source{Instance: r.Instance, Workflow: r.Workflow}
		says := of.Counts
		if k.Refused == wasAdopted {
			says = of.Adopted
		}
		m := says(r.Item, r.Task, fact.WordOf(c.Instance, c.Says, c.Nonce), time.UnixMilli(k.RefusedAt))
		if !seen[m.ID] {
			out = append(out, Told{
				Message: m, From: r.At, Label: r.Label, WorkflowLabel: r.WorkflowLabel, Subject: r.Subject,
				Elsewhere: d.elsewhere(&r),
			})
		}
	}
	return out
}

// unlistLocked forgets that the holder of an item said that a user has it; what the user still made of it can be
// brought. The caller holds d.mu.
func (d *Desk) unlistLocked(k *kept) {
	is := d.heard[k.User][workflow.PartnerID(k.At)]
	if is == nil {
		return
	}
	mine := func(r Row) bool { return r.ID() == k.id() && r.Mine != "" }
	listed := slices.ContainsFunc(is.rows, func(r Row) bool { return r.ID() == k.id() && r.Mine == "" })
	is.rows, is.gone = slices.DeleteFunc(is.rows, mine), slices.DeleteFunc(is.gone, mine)
	if r := k.row(); !listed && !slices.ContainsFunc(is.gone, func(x Row) bool { return x.ID() == r.ID() }) {
		r.Mine = ""
		is.gone = slices.Insert(is.gone, 0, r)
		is.gone = is.gone[:min(len(is.gone), maxGone)]
	}
}

// stillHas is how a user has an item of which a result was refused, as its holder says; nil: not any more. Where it
// does not say, the user has nothing of what is kept there, and else the item as before.
func (d *Desk) stillHas(k *kept, isKept bool) *Row {
	who, err := d.in.People.Who(k.User)
	if err != nil {
		return nil // removed, or signed out
	}
	rows, err := d.askOne(context.Background(), who, workflow.PartnerID(k.At), k.Instance)
	if err != nil {
		if r := k.row(); !isKept {
			return &r
		}
		return nil
	}
	for i := range rows {
		if rows[i].ID() == k.id() && rows[i].Mine == worklist.Lock {
			return &rows[i]
		}
	}
	return nil
}

// refusedOf is what was refused last of what a user did of an item; nil: nothing that is still in the outbox.
func (d *Desk) refusedOf(user, item string) (last *kept) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, k := range d.refusals {
		if k.User == user && k.id() == item && (last == nil || k.RefusedAt > last.RefusedAt) {
			last = k
		}
	}
	return last
}

// allRefused are all that are in the outbox, in the order in which the work was done.
func (d *Desk) allRefused() []*kept {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := slices.Collect(maps.Values(d.refusals))
	out = slices.DeleteFunc(out, (*kept).said)
	slices.SortFunc(out, func(a, b *kept) int {
		return cmp.Or(cmp.Compare(a.Done, b.Done), bytes.Compare(a.refusedKey(), b.refusedKey()))
	})
	return out
}

// KeptAlone is how many results in the outbox were refused and are here alone: their holder does not keep them, or is gone
// for good.
func (d *Desk) KeptAlone() (n int) {
	for _, k := range d.allRefused() {
		if !k.keptByHolder() || d.in.Gone(workflow.PartnerID(k.At)) {
			n++
		}
	}
	return n
}

// DropRefused has a user drop a result from the outbox that was refused. It returns when that is durable.
func (d *Desk) DropRefused(_ context.Context, in api.DropRequest) (*api.Undelivered, error) {
	ref := strings.ToLower(strings.TrimSpace(in.ID))
	var found *kept
	for _, k := range d.allRefused() {
		switch {
		case ref == "" || !strings.HasPrefix(k.refusedID(), ref):
		case in.User != "" && in.User != k.User && in.User != d.in.People.Called(worklist.User(k.User)):
		case found != nil:
			return nil, api.Errorf(api.Invalid, "several results in the outbox begin with %s", ref).
				WithHint("mutirao outbox -o json shows the whole IDs")
		default:
			found = k
		}
	}
	if found == nil {
		return nil, api.Errorf(api.NotFound, "there is no refused result %q in the outbox", ref).
			WithHint("mutirao outbox shows them; what still waits cannot be dropped, as it may count")
	}
	d.mu.Lock()
	err := d.in.Store.CommitWait([]kv.Write{{Key: found.refusedKey(), Delete: true}})
	if err == nil {
		delete(d.refusals, string(found.refusedKey()))
	}
	d.mu.Unlock()
	if err != nil {
		return nil, err
	}
	d.in.Publish(api.Event{
		At: d.in.Clock.Now().Wall, Kind: "worklist", Instance: found.Instance.String(), Text: "dropped",
	})
	out := d.undelivered(found)
	return &out, nil
}

// undelivered is what a user did, for people.
func (d *Desk) undelivered(k *kept) api.Undelivered {
	m := k.more()
	out := api.Undelivered{
		Instance: k.Instance.String(), Task: k.Task, Workflow: k.Workflow, Label: m.Label,
		WorkflowLabel: m.WorkflowLabel, Subject: m.Subject, What: k.What, Outputs: k.outputs(),
		Since: time.UnixMilli(k.Done).UTC(), User: d.in.People.Called(worklist.User(k.User)), WaitsFor: []string{},
	}
	out.DataLabels = m.called(out.Outputs)
	r := k.row()
	out.Elsewhere = d.elsewhere(&r)
	if k.Refused == "" {
		out.WaitsFor = append(out.WaitsFor, d.in.Name(workflow.PartnerID(k.At)))
		if k.putOff {
			out.Awaits, out.TaskLabels = k.madeFrom(m)
			out.Redo = d.refusedOfThose(k)
		}
		return out
	}
	at := time.UnixMilli(k.RefusedAt).UTC()
	out.ID, out.RefusedAt, out.Result = k.refusedID(), &at, m.Result
	out.Refused = strings.TrimPrefix(k.Refused, state.ErrNotNow.Error()+": ") // which is said where it is shown
	return out
}

// called is what people call data that were handed in, as the item's form did; nil: by their names.
func (m more) called(outputs map[string]string) map[string]string {
	if m.Sheet == nil {
		return nil
	}
	out := map[string]string{}
	for i := range m.Sheet.Fields {
		f := &m.Sheet.Fields[i]
		if _, given := outputs[f.Name]; given && f.Called() != f.Name {
			out[f.Name] = f.Called()
		}
	}
	return out
}

// outputs are the data that a user handed in, as they were typed; nil: none, or they cannot be read any more.
func (k *kept) outputs() map[string]string {
	c, err := wire.DecodeSpoken(k.Word)
	if err != nil {
		return nil
	}
	body, err := worklist.Decode(c.Says)
	x, is := body.(worklist.Result)
	if err != nil || !is || len(x.Outputs) == 0 {
		return nil
	}
	out := map[string]string{}
	for n, v := range x.Outputs {
		out[string(n)] = fmt.Sprint(v)
	}
	return out
}
