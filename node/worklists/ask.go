package worklists

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/users"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// Claim takes items for a person, or gives them back.
func (d *Desk) Claim(ctx context.Context, r api.ClaimRequest) ([]api.Item, error) {
	who, err := d.in.People.Who(r.User)
	if err != nil {
		return nil, err
	}
	// Whoever waits does so for both together: to find out who holds an item, and to ask for it.
	soon, cancel := context.WithTimeout(ctx, claimPatience)
	defer cancel()
	of, err := d.locate(soon, who, r.Items, r.Claim == api.ClaimRelease)
	if err != nil {
		return nil, err
	}
	reason := strings.TrimSpace(r.Reason)
	switch {
	case len(of) == 0:
		return nil, api.Errorf(api.Invalid, "no item is named")
	case reason != "" && r.Claim != api.ClaimRelease:
		return nil, api.Errorf(api.Invalid, "a reason is given to %s items: only to %s is one taken", r.Claim,
			api.ClaimRelease)
	case len(reason) > worklist.MaxBack:
		return nil, api.Errorf(api.Invalid, "the reason has %d bytes, at most %d are kept", len(reason), worklist.MaxBack)
	}
	switch r.Claim {
	case api.ClaimSelect:
		err = d.take(ctx, soon, who, of, worklist.Select)
	case api.ClaimLock:
		err = d.take(ctx, soon, who, of, worklist.Lock)
	case api.ClaimRelease:
		err = d.giveBack(ctx, who, of, reason)
	default:
		return nil, api.Errorf(api.Invalid, "to %q items: want %s, %s or %s", r.Claim, api.ClaimSelect, api.ClaimLock,
			api.ClaimRelease)
	}
	if err != nil {
		return nil, err
	}
	out := []api.Item{}
	for _, row := range of {
		out = append(out, d.item(who, row))
	}
	return out, nil
}

// find is the item that is named by its ID, or the beginning of it. An item has one holder: where two
// say that they are, nobody's word is brought to either.
func (d *Desk) find(rows []Row, ref string) (found *Row, err error) {
	for i := range rows {
		switch r := &rows[i]; {
		case ref == "" || !strings.HasPrefix(r.ID(), ref):
		case found == nil, r.ID() == ref && found.ID() != ref:
			found = r
		case found.ID() == ref && r.ID() != ref, found.ID() == r.ID() && found.At == r.At:
		case found.ID() == r.ID():
			both := d.names([]workflow.PartnerID{found.At, r.At})
			return nil, api.Errorf(api.Refused, "both %s and %s say that they hold %s, and one of them lies", both[0],
				both[1], r.called()).
				WithHint("do it at a node that takes part in instance %s: that one knows who holds it", r.Instance)
		default:
			return nil, api.Errorf(api.Invalid, "several items begin with %s", ref).
				WithHint("mutirao worklist -o json shows the whole IDs")
		}
	}
	if found == nil {
		return nil, api.Errorf(api.NotFound, "there is no item %q on this worklist", ref).
			WithHint("mutirao worklist lists them; what a partner holds that cannot be asked may be missing")
	}
	return found, nil
}

// notFound says that an item is not known, or that somebody may hold it who did not answer.
func (d *Desk) notFound(err error, ref string, silent []workflow.PartnerID) error {
	var e *api.Error
	if len(silent) == 0 || !errors.As(err, &e) || e.Code != api.NotFound {
		return err
	}
	return api.Errorf(api.Refused, "no item %q is known here, and these did not answer, who may hold it: %s", ref,
		strings.Join(d.names(silent), ", ")).
		WithHint("try again in a while; mutirao partners shows how they fare")
}

// take asks the holder for items: all of them, or nothing. One holder is waited for as long as soon lasts; what was
// given is kept within ctx.
func (d *Desk) take(ctx, soon context.Context, who users.Who, of []*Row, mode worklist.Mode) error {
	if mode == worklist.Lock && slices.ContainsFunc(of, func(r *Row) bool { return r.Mine != worklist.Lock }) {
		if err := d.in.MayLock(); err != nil {
			return err
		}
	}
	several := false
	for _, r := range of {
		several = several || r.At != of[0].At
		switch {
		case r.Instance != of[0].Instance:
			return api.Errorf(api.Refused, "these items are not all of one instance, so they cannot be taken together").
				WithHint("take them one after the other")
		case several && mode != worklist.Lock:
			return api.Errorf(api.Refused, "these items are with several partners: such are taken together only by a lock").
				WithHint("lock them, or select them one after the other")
		case r.keptForOther():
			return d.isKept(r).WithHint("mutirao worklist shows what is free")
		case r.Other != "":
			return api.Errorf(api.Refused, "%s has the task %s", d.in.People.Called(r.Other), r.called()).
				WithHint("mutirao worklist shows what is free")
		}
	}
	done, err := d.begin(who.ID, several)
	if err != nil {
		return err
	}
	defer done()
	if several {
		err = d.lockJointly(ctx, who, of)
	} else {
		err = d.takeAt(ctx, soon, who, of, of, mode)
	}
	if err != nil {
		return err
	}
	for _, r := range of {
		r.Mine, r.Handed = mode, ""
		d.noteTaken(who, r)
	}
	return nil
}

// takeAt asks one holder for items, all or none. All are those that are asked for, also of other holders.
func (d *Desk) takeAt(ctx, soon context.Context, who users.Who, of, all []*Row, mode worklist.Mode) error {
	g := worklist.Grant{Items: itemsOf(of), Mode: mode, Lease: worklist.DefaultLease(mode)}
	if mode == worklist.Lock {
		g.With, g.Anew = d.lockedElsewhere(who, of, all), d.anew(who, of)
	}
	got, err := d.grant(soon, who, of[0], g)
	if err != nil {
		return err
	}
	for i := range of { // its grant is known from now on, also when the instance has ended
		fresh := got.row(of[i])
		if fresh == nil {
			if fresh, err = d.again(ctx, who, of[i]); err != nil {
				return err
			}
		}
		*of[i] = *fresh
	}
	err = d.has(who, of)
	if err == nil && mode == worklist.Lock && of[0].At != d.in.Self {
		err = d.keepTaken(ctx, who, of, got)
	}
	if err != nil {
		d.doubts(of[0].At, who.ID)
	}
	return err
}

// grant asks the holder of an item for it, and for others, and notes what it says that the user has got; nil: nothing.
func (d *Desk) grant(ctx context.Context, who users.Who, r *Row, g worklist.Grant) (*got, error) {
	c, err := d.say(who, r, g)
	if err != nil {
		return nil, err
	}
	done, err := d.ask(ctx, r.At, c)
	if err != nil {
		if unheard(err) && r.At != d.in.Self {
			d.doubts(r.At, who.ID)
		}
		return nil, d.inWords(r, g, err)
	}
	if done.Got == nil || r.At == d.in.Self {
		return nil, nil
	}
	if err := done.Got.check(r.At, d.in.Clock.Now().Wall); err != nil {
		d.malformed(r.At, err)
		return nil, nil // it is asked for, as of one that says nothing
	}
	done.Got.Rows = d.noteRows(who, r.At, r.Instance, done.Got.Rows, d.in.Clock.Now().Awake)
	return done.Got, nil
}

// row is how an item is by now; nil: that is not said.
func (g *got) row(r *Row) *Row {
	if g == nil {
		return nil
	}
	for i := range g.Rows {
		if g.Rows[i].ID() == r.ID() {
			return &g.Rows[i]
		}
	}
	return nil
}

// sheet is what is needed to do an item; nil: that is not said.
func (g *got) sheet(r *Row) *Sheet {
	if g == nil {
		return nil
	}
	return g.Sheets[r.ID()]
}

// check says what no partner would truly answer.
func (g *got) check(at workflow.PartnerID, now time.Time) error {
	g.Rows = g.Rows[:min(len(g.Rows), maxRows)]
	if err := checkRows(g.Rows, at, now); err != nil {
		return err
	}
	for item, s := range g.Sheets {
		if s == nil {
			delete(g.Sheets, item)
			continue
		}
		if err := s.check(); err != nil {
			return err
		}
		g.Sheets[item] = s.Bounded()
	}
	return nil
}

// lockedElsewhere are items of other holders that are asked for as well, or that the user has locked and that those
// which are asked for wait for, sorted: their holder may not have heard of that.
func (d *Desk) lockedElsewhere(who users.Who, of, all []*Row) (out []worklist.Item) {
	add := func(r *Row) {
		if r.Instance == of[0].Instance && r.At != of[0].At && !slices.Contains(out, r.Item) {
			out = append(out, r.Item)
		}
	}
	if !slices.ContainsFunc(of, func(r *Row) bool { return len(r.Awaits) > 0 }) {
		return nil // as nearly always: what is kept need not be read
	}
	awaited := func(t workflow.TaskName) bool {
		return slices.ContainsFunc(of, func(r *Row) bool { return slices.Contains(r.Awaits, t) })
	}
	for _, r := range all {
		if awaited(r.Item.Slot) {
			add(r)
		}
	}
	for _, k := range d.allKept(who.ID) {
		if r := k.row(); awaited(r.Item.Slot) {
			add(&r)
		}
	}
	slices.SortFunc(out, worklist.Item.Compare)
	return out
}

// anew are the words by which a user has items that are locked at this device, sorted, where one of them was locked
// jointly, and not at this device or it would keep it: the device that did may have been lost in the middle, and gives
// back what it got once it is here again. None: what the user has needs no other word.
func (d *Desk) anew(who users.Who, of []*Row) (words []worklist.ID) {
	again := false
	for _, r := range of {
		if r.Word.IsZero() {
			continue
		}
		k := d.keptFor(who.ID, r.ID())
		again = again || r.Mine == worklist.Lock && r.Joint && (k == nil || k.Grant != r.Grant)
		words = append(words, r.Word)
	}
	if !again {
		return nil
	}
	slices.SortFunc(words, func(a, b worklist.ID) int { return bytes.Compare(a[:], b[:]) })
	return slices.Compact(words)
}

// keepTaken keeps on the device what was locked, each with its grant, as its partner says now. The error names all that
// it does not keep: that is locked all the same.
func (d *Desk) keepTaken(ctx context.Context, who users.Who, of []*Row, got *got) error {
	var unkept []string
	var why error // of the first
	for _, r := range of {
		err := d.keepOne(ctx, who, r, got.sheet(r))
		if err == nil {
			continue
		}
		if unkept = append(unkept, r.called()); why == nil {
			why = err
		}
	}
	switch len(unkept) {
	case 0:
		return nil
	case 1:
		return api.Errorf(api.Failed, "%s is locked, but this device cannot keep it for when it is out of reach: %w",
			unkept[0], why).WithHint("lock it once more")
	}
	return api.Errorf(api.Failed, "%s are locked, but this device cannot keep them for when it is out of reach: %w",
		strings.Join(unkept, ", "), why).WithHint("lock them once more")
}

// keepOne keeps one of them, with what is needed to do it; nil: its holder is asked for that.
func (d *Desk) keepOne(ctx context.Context, who users.Who, r *Row, s *Sheet) error {
	if r.Mine != worklist.Lock {
		return fmt.Errorf("%s did not say so again", d.in.Name(r.At))
	}
	was := d.keptFor(who.ID, r.ID())
	if was != nil && len(was.Word) > 0 {
		return nil // what was done of it waits to be handed in
	}
	if s == nil {
		s = d.askSheet(ctx, who, r)
	}
	return d.keepAsTaken(who, r, was, keptOf(who, r, r.AsOf, s).carry(was))
}

// keepAsTaken is keepOver of an item that the user took just now, which is noted in the same write.
func (d *Desk) keepAsTaken(who users.Who, r *Row, was, k *kept) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !was.still(d.kept[string(k.key())]) {
		return nil
	}
	if !d.notesTaken(r) {
		return d.keepLocked(k)
	}
	w, err := d.takenWrite(who.ID, r)
	if err != nil {
		return err
	}
	if err := d.keepLocked(k, w); err != nil {
		return err
	}
	d.setTaken(who.ID, r)
	d.losses[string(w.Key)], r.noted = r.Lost, true
	return nil
}

// giveBack gives items back, one after the other, for a reason, if there is one.
func (d *Desk) giveBack(ctx context.Context, who users.Who, of []*Row, reason string) error {
	for _, r := range of {
		if r.Mine == "" && r.Handed == "" {
			return d.notTheirs(ctx, who, r)
		}
	}
	for _, r := range of {
		if err := d.giveBackOne(ctx, who, r, reason); err != nil {
			return err
		}
	}
	return nil
}

func (d *Desk) giveBackOne(ctx context.Context, who users.Who, r *Row, reason string) error {
	// What is given back is not kept meanwhile as one whose lock was not answered (unanswered.go).
	over, err := d.turn(ctx, who, r)
	if err != nil {
		return err
	}
	defer over()
	if _, err := d.send(ctx, who, r, worklist.Release{Item: r.Item, Grant: r.Grant, Reason: reason}); err != nil {
		return err
	}
	d.dropUndone(who, r)
	d.forgetTaken(who, r)
	if _, err := d.again(ctx, who, r); err != nil {
		return err
	}
	r.Mine, r.Handed = "", ""
	return nil
}

func (d *Desk) notTheirs(ctx context.Context, who users.Who, r *Row) error {
	over := r.Over
	if r.Other != "" { // whoever holds it lists it no more once it is over
		is, err := d.in.Instances.Over(ctx, r.Instance, []worklist.Item{r.Item})
		over = over || err == nil && len(is) > 0
	}
	switch {
	case r.Other != "" && over:
		return api.Errorf(api.Refused, "%s had the task %s, not %s, and it is over", d.in.People.Called(r.Other),
			r.called(), who.Name).
			WithHint("mutirao show %s says how it ended", r.Instance)
	case r.keptForOther():
		return d.isKept(r)
	case r.Other != "":
		return api.Errorf(api.Refused, "%s has the task %s, not %s", d.in.People.Called(r.Other), r.called(), who.Name)
	}
	no := api.Errorf(api.Refused, "%s does not have %s", who.Name, r.called())
	if !r.free() || len(r.WaitsFor)+len(r.Awaits) > 0 {
		return no.WithHint("mutirao worklist shows what %s has, and may take", who.Name)
	}
	return no.WithHint("take it first: mutirao worklist select %s", r.ID())
}

// isKept refuses what is asked of an item that is kept for somebody else, who has not taken it.
func (d *Desk) isKept(r *Row) *api.Error {
	return api.Errorf(api.Refused, "the task %s is kept for %s, who may take it", r.called(), d.in.People.Called(r.Other))
}

// send has a person say something to the holder of an item, and waits until it is durable
// there.
func (d *Desk) send(ctx context.Context, who users.Who, r *Row, body worklist.Body) (choreo.Claimed, error) {
	c, err := d.say(who, r, body)
	if err != nil {
		return choreo.Claimed{}, err
	}
	done, err := d.bring(ctx, r.At, c)
	return done, d.inWords(r, body, err)
}

// say is what a person says, signed.
func (d *Desk) say(who users.Who, r *Row, body worklist.Body) (c wire.Spoken, err error) {
	says, err := worklist.Encode(body)
	if err != nil {
		return c, api.Judge(api.Invalid, err)
	}
	c = wire.Spoken{Instance: r.Instance, Says: says, Nonce: [16]byte(d.in.Random(16))}
	c.Word, err = d.in.People.Speak(who, fact.SpokenOf(c.Instance, c.Says, c.Nonce))
	return c, err
}

// Why the holder of an item was not heard. Only errAway says that it was not asked.
var (
	errAway     = errors.New("cannot be asked now")
	errNoAnswer = errors.New("did not answer; it may have written it down all the same")
	errPutOff   = errors.New("could not write it down now")
)

// refusal is the word of a holder that it does not write something down, now or later.
type refusal struct{ said *api.Error }

func (r refusal) Error() string { return r.said.Message }

// bring brings a person's word to the holder of an item. The same word is sent once more if no
// answer comes: it counts once.
func (d *Desk) bring(ctx context.Context, at workflow.PartnerID, c wire.Spoken) (choreo.Claimed, error) {
	done, err := d.ask(ctx, at, c)
	return done.Claimed, err
}

// ask is bring, with all that the holder answers.
func (d *Desk) ask(ctx context.Context, at workflow.PartnerID, c wire.Spoken) (answer, error) {
	if at == d.in.Self {
		done, err := d.takeWord(ctx, d.in.Self, c)
		return answer{Claimed: done}, err
	}
	if !d.in.Peers.Up(at) {
		return answer{}, errAway
	}
	req, err := wire.EncodeSpoken(c)
	if err != nil {
		return answer{}, api.Judge(api.Invalid, err)
	}
	return d.hand(ctx, at, ProtocolClaim, req)
}

// hand hands a partner a request to write a person's word down. If the connection is lost meanwhile the partner is
// asked once more, in what is left of the time.
func (d *Desk) hand(ctx context.Context, at workflow.PartnerID, protocol string, req []byte) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, claimPatience)
	defer cancel()
	b, err := d.in.Peers.Request(ctx, at, nil, protocol, req, claimPatience)
	var no interface {
		error
		Answer() string
	}
	until, _ := ctx.Deadline()
	if err != nil && !errors.As(err, &no) && ctx.Err() == nil && time.Until(until) > 0 {
		b, err = d.in.Peers.Request(ctx, at, nil, protocol, req, claimPatience)
	}
	switch {
	case errors.As(err, &no):
		return answer{}, fmt.Errorf("%w: %s", errPutOff, no.Answer())
	case err != nil:
		return answer{}, errNoAnswer
	}
	var out answer
	if err := json.Unmarshal(b, &out); err != nil {
		return answer{}, fmt.Errorf("%w: its answer cannot be read", errPutOff)
	}
	switch no := out.Refusal; {
	case no == nil:
		return out, nil
	case hinders(no.Code):
		return answer{}, fmt.Errorf("%w: %s", errPutOff, no.Message)
	default:
		return answer{}, refusal{api.Errorf(no.Code, "%s", no.Message).WithHint("%s", no.Hint)}
	}
}

// hinders reports whether a holder that answers so says nothing of the word that was brought to it, and may have
// written it down: its disk is full, or it stops just then.
func hinders(c api.Code) bool { return c == api.Failed || c == api.NoNode || c == api.Internal }

func (d *Desk) away() bool {
	_, away := d.in.Away()
	return away
}

// inWords says to people why a word did not reach the holder of an item, or was refused there; word nil: any.
func (d *Desk) inWords(r *Row, word worklist.Body, err error) error {
	var no refusal
	switch {
	case errors.As(err, &no):
		return no.said
	case errors.Is(err, errAway) && d.away():
		return api.Errorf(api.Refused, "%s holds %s, and this node is disconnected on purpose", d.in.Name(r.At),
			r.called()).
			WithHint("mutirao worklist reconnect; until then only locked items can be done")
	case errors.Is(err, errAway) && d.in.Absent(r.At) != nil:
		a := d.in.Absent(r.At)
		no := api.Errorf(api.Refused, "%s, who holds %s, is away as announced until about %s, and cannot be asked before",
			a.Partner, r.called(), a.Until.UTC().Format(time.RFC3339))
		if mayBeOver(word) {
			return no.WithHint("wait until it is back")
		}
		return no.WithHint("wait until it is back; who decides about the instance can cancel it meanwhile: " +
			"mutirao show names who answers for it")
	case errors.Is(err, errAway) && d.in.Gone(r.At):
		return api.Errorf(api.Refused, "%s, who holds %s, is gone for good: nobody gives it out any more", d.in.Name(r.At),
			r.called()).
			WithHint("mutirao show %s says what becomes of it, and who decides about it", r.Instance)
	case errors.Is(err, errAway):
		return api.Errorf(api.Refused, "%s, who holds %s, cannot be asked now", d.in.Name(r.At), r.called()).
			WithHint("mutirao partners shows when it is back")
	case errors.Is(err, errNoAnswer): // it cannot be asked now, though that is not noticed yet
		return r.seeWhatCame(word, api.Errorf(api.Refused, "%s, who holds %s, %w", r.At, r.called(), err))
	case errors.Is(err, errPutOff):
		return api.Errorf(api.Failed, "%s, who holds %s, %w", r.At, r.called(), err).WithHint("try again in a while")
	}
	return err
}

// mayBeOver reports whether a word may be about an instance that has ended, or that was to be cancelled by it: then
// nobody is told that it can be cancelled.
func mayBeOver(word worklist.Body) bool {
	switch x := word.(type) {
	case worklist.Adopt:
		return true
	case worklist.Order:
		return x.What == worklist.Undo || x.What == worklist.Cancel
	}
	return false
}

// seeWhatCame adds to an error where it is seen what came of a word that was not answered: only what somebody who
// performs a task says of it is on a worklist.
func (r *Row) seeWhatCame(word worklist.Body, err *api.Error) error {
	if r.Task == workflow.FlowTask {
		return err.WithHint("mutirao history %s shows what came of it", r.Instance)
	}
	if r.Task == "" {
		return err.WithHint("mutirao show %s shows what came of it, where it takes part", r.Instance)
	}
	switch word.(type) {
	case worklist.Order, worklist.Adopt, worklist.Extend:
		return err.WithHint("mutirao show %s shows what came of it", r.Instance)
	}
	return err.WithHint("mutirao worklist shows what came of it")
}
