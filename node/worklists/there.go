package worklists

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/users"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file is about instances in which this node takes no part, and which a person here decides about, or has, or had, an
// item of: a partner that takes part shows them, as it knows them. Whoever has the node may see there what anybody at it
// may, so nobody says for whom: it is asked for each person at this node, until one may.

const (
	// lookPatience is how long a partner is waited for that shows an instance.
	lookPatience = 5 * time.Second
	// foundFor is for how long the partner is asked first that showed an instance, and maxFound bounds of how many
	// instances that is known.
	foundFor = time.Minute
	maxFound = 256
	// maxParts bounds in how many parts a list comes.
	maxParts = 64
)

// Look says what of an instance is to be shown.
type Look struct {
	What wire.LookWhat
	Step *api.RecoveryStep // of LookOutlook
	User string            // of whom this is asked; empty: of any person here
}

// Seen is what a partner shows of an instance. A list comes in parts.
type Seen struct {
	By       workflow.PartnerID
	Instance workflow.InstanceID
	Runs     workflow.Hash // the definition by which it runs, as the partner said when it was found
	Parts    [][]byte
}

// finding is where a person found an instance, until some time (Awake).
type finding struct {
	who   users.Who
	t     Target
	until time.Duration
}

// LookThere has a partner show an instance in which this node takes no part. err is why it is not shown here: it is
// returned where no partner tells of it.
func (d *Desk) LookThere(ctx context.Context, ref string, x Look, err error) (*Seen, error) {
	persons, no := d.lookers(x.User)
	if no != nil {
		return nil, no
	}
	if f, known := d.foundBefore(ref); known && d.in.Peers.Up(f.t.At) && (x.User == "" || x.User == f.who.ID) {
		if seen, no := d.lookAt(ctx, f.who, f.t, x); no == nil || isAnswer(no) {
			return seen, no
		}
		d.doubt(f.t.Instance)
	}
	who, t, err := d.findThere(ctx, ref, persons, err)
	if err != nil {
		return nil, err
	}
	seen, no := d.lookAt(ctx, who, t, x)
	if no == nil || isAnswer(no) {
		d.noteFound(who, t)
	}
	return seen, no
}

// findThere finds an instance for the first of these persons who may see it. err is why it is not shown here.
func (d *Desk) findThere(
	ctx context.Context, ref string, persons []users.Who, err error,
) (by users.Who, found Target, _ error) {
	for _, who := range persons {
		t, no := d.targetFor(ctx, ref, who)
		var e *api.Error
		switch {
		case no == nil && t.At != d.in.Self:
			switch {
			case !isShort(ref):
				return who, t, nil
			case by.ID == "":
				by, found = who, t // what is given in short may be another instance for another person
			case t.Instance != found.Instance:
				return by, found, beginsSeveral(ref, 2)
			}
		case no == nil || !errors.As(d.in.Explain(no), &e) || e.Code == api.NotFound: // nobody else finds it, either
			if by.ID == "" {
				return by, found, err
			}
		case e.Code == api.Invalid || e.Code != api.NotAllowed && by.ID == "":
			return by, found, no
		case e.Code == api.NotAllowed:
			err = api.Errorf(e.Code, "this node takes no part in instance %s, and is not shown it: %s", ref, e.Message).
				WithHint("look at it at a node that takes part: mutirao show, or %s", e.Hint)
		}
	}
	mine, t, several := d.tookThere(ctx, ref, persons)
	switch {
	case several, by.ID != "" && mine.ID != "" && t.Instance != found.Instance && isShort(ref):
		return by, found, beginsSeveral(ref, 2)
	case by.ID != "":
		return by, found, nil
	case mine.ID != "":
		return mine, t, nil
	}
	return by, found, err
}

// tookThere finds an instance in which one of these persons has, or had, an item, as partners say that are connected.
// several: what is given in short begins more than one.
func (d *Desk) tookThere(
	ctx context.Context, ref string, persons []users.Who,
) (by users.Who, found Target, several bool) {
	for _, who := range persons {
		for _, x := range d.stuckElsewhere(ctx, who, freshFor) {
			id, err := workflow.ParseInstanceID(x.Shown.ID)
			t := Target{Instance: id, At: x.by, Runs: x.Runs}
			switch {
			case err != nil || !t.fits(ref) || !d.in.Peers.Up(x.by):
			case by.ID == "":
				by, found = who, t
			case found.Instance != id:
				return by, found, true
			}
		}
	}
	return by, found, false
}

// lookers are the persons for whom an instance is looked for: one, or all who are here.
func (d *Desk) lookers(user string) ([]users.Who, error) {
	if user == "" {
		return d.in.People.Here(), nil
	}
	who, err := d.in.People.Who(user)
	return []users.Who{who}, err
}

// targetFor finds an instance at the partners. Nothing is signed for it.
func (d *Desk) targetFor(ctx context.Context, ref string, who users.Who) (Target, error) {
	x, err := d.soughtIn(ref, "", who)
	if err != nil {
		return Target{}, err
	}
	x.looks = true
	return d.seek(ctx, x)
}

// isAnswer reports whether an error is a partner's answer, and not why there is none.
func isAnswer(err error) bool { return errors.As(err, new(answered)) }

// answered is why a partner does not show something.
type answered struct{ said *api.Error }

// Error implements error.
func (a answered) Error() string { return a.said.Message }

// Unwrap gives what it says.
func (a answered) Unwrap() error { return a.said }

// lookAt has a partner show an instance to a person here.
func (d *Desk) lookAt(ctx context.Context, who users.Who, t Target, x Look) (*Seen, error) {
	seen := &Seen{By: t.At, Instance: t.Instance, Runs: t.Runs}
	r := wire.Sight{User: who.ID, Instance: t.Instance, What: x.What}
	if x.Step != nil {
		var err error
		if r.Step, err = json.Marshal(x.Step); err != nil {
			return nil, api.Judge(api.Invalid, err)
		}
	}
	for {
		a, err := d.askToShow(ctx, t, r)
		if err != nil {
			return nil, err
		}
		seen.Parts = append(seen.Parts, a.Shows)
		switch {
		case a.Next == 0:
			return seen, nil
		case a.Next <= r.From || len(seen.Parts) == maxParts:
			d.in.Peers.Refuse("items-malformed", t.At)
			return nil, d.notShown(t, fmt.Errorf("it shows more than %d parts", maxParts))
		}
		r.From = a.Next
	}
}

// askToShow asks a partner for one part of what it shows.
func (d *Desk) askToShow(ctx context.Context, t Target, r wire.Sight) (a answeredSight, err error) {
	req, err := wire.EncodeSight(r)
	if err != nil {
		return a, api.Judge(api.Invalid, err)
	}
	b, err := d.in.Peers.Request(ctx, t.At, nil, ProtocolSight, req, lookPatience)
	if err == nil {
		err = json.Unmarshal(b, &a)
	}
	switch {
	case err != nil:
		return a, d.notShown(t, err)
	case a.Refusal != nil:
		return a, answered{api.Errorf(a.Refusal.Code, "%s", a.Refusal.Message).WithHint("%s", a.Refusal.Hint)}
	}
	return a, nil
}

// notShown says that a partner takes part in an instance and does not show it.
func (d *Desk) notShown(t Target, err error) error {
	return api.Errorf(api.Failed, "this node takes no part in instance %s, and %s does not show it: %w", t.Instance,
		d.in.Name(t.At), err).
		WithHint("try again in a while, or look at it at a node that takes part, such as %s", d.in.Name(t.At))
}

// Misshown notes that a partner showed something of an instance which cannot be.
func (d *Desk) Misshown(seen *Seen, err error) error {
	d.in.Peers.Refuse("items-malformed", seen.By)
	d.doubt(seen.Instance)
	return d.notShown(Target{At: seen.By, Instance: seen.Instance}, err)
}

// foundBefore is where an instance was found lately, if its whole ID is given.
func (d *Desk) foundBefore(ref string) (f finding, known bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, f := range d.found {
		if !shortened(ref, id.String()) {
			return f, f.until > d.in.Clock.Now().Awake
		}
	}
	return f, false
}

// noteFound notes where an instance was found, so that not everybody is asked again for each look at it.
func (d *Desk) noteFound(who users.Who, t Target) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.found) >= maxFound {
		clear(d.found)
	}
	d.found[t.Instance] = finding{who, t, d.in.Clock.Now().Awake + foundFor}
}

// doubt has whoever showed an instance not be asked first any more: that it takes part is remembered.
func (d *Desk) doubt(id workflow.InstanceID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if f, known := d.found[id]; known {
		f.until = 0
		d.found[id] = f
	}
}

// answeredSight is what a partner shows; or why it does not.
type answeredSight struct {
	Shows   json.RawMessage `json:"shows,omitempty"`
	Next    uint32          `json:"next,omitempty"` // of a list that has more: from where on
	Refusal *api.Error      `json:"refusal,omitempty"`
}

// AnswerSight shows an instance to a partner, for a person at its node who decides about it, or took part in it.
func (d *Desk) AnswerSight(from workflow.PartnerID, req []byte) ([]byte, error) {
	r, err := wire.DecodeSight(req)
	if err != nil {
		return nil, err
	}
	if err := d.admit(from, r.User); err != nil {
		return nil, err
	}
	x := Look{What: r.What}
	if len(r.Step) > 0 {
		if err := json.Unmarshal(r.Step, &x.Step); err != nil {
			return nil, errors.New("a step that cannot be read")
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookPatience)
	defer cancel()
	var out answeredSight
	shown, err := d.in.Instances.Look(ctx, r.Instance, worklist.User(r.User), x)
	if err == nil {
		out.Shows, out.Next, err = partOf(shown, r.From)
	}
	if err = d.in.Explain(err); err != nil && !errors.As(err, &out.Refusal) {
		d.in.Log.Warn("an instance could not be shown to a partner", "to", from, "instance", r.Instance, "error", err)
		return nil, errCannot
	}
	return json.Marshal(out)
}

// partOf is as much of what is shown as an answer has room for: of a list what comes after so many entries. next is
// from where on there is more; 0: there is not.
func partOf(shown any, from uint32) (b []byte, next uint32, err error) {
	switch list := shown.(type) {
	case []api.DataState:
		return partOfList(list, from)
	case []api.LogEntry:
		return partOfList(list, from)
	}
	if b, err = json.Marshal(shown); err == nil && len(b) > maxBasis {
		err = api.Errorf(api.Refused, "%w", errLargeBasis)
	}
	return b, 0, err
}

func partOfList[T any](list []T, from uint32) (b []byte, next uint32, err error) {
	list = list[min(int(min(from, math.MaxInt32)), len(list)):]
	b = append(b, '[')
	for i := range list {
		one, err := json.Marshal(list[i])
		if err != nil {
			return nil, 0, err
		}
		if len(b)+len(one) > maxBasis {
			if i == 0 {
				return nil, 0, api.Errorf(api.Refused, "%w", errLargeBasis)
			}
			return append(b, ']'), from + uint32(i), nil
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, one...)
	}
	return append(b, ']'), 0, nil
}
