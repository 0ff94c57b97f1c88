package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/index"
	"github.com/mutirao-mesh/mutirao/node/overview"
	"github.com/mutirao-mesh/mutirao/node/show"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/wire"
	"github.com/mutirao-mesh/mutirao/node/worklists"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// The coordinator sees the whole mesh's instances. One that it takes no part in
// it has shown by a participant, who answers from its own facts.

// protocolLook is a request to show an instance.
const protocolLook = "/mutirao/look/1.0.0"

// lookWait is how long a partner is waited for, and its own shard by it.
const lookWait = 5 * time.Second

var (
	errMayNotLook = errors.New("only the coordinator and participants may look at an instance")
	errNotHere    = errors.New("takes no part in this instance")
)

// tellLook answers protocolLook in JSON, as the local API would.
func (k *desk) tellLook(from workflow.PartnerID, req []byte) ([]byte, error) {
	l, err := wire.DecodeLook(req)
	if err != nil {
		return nil, err
	}
	if _, here := k.index.Get(l.Instance); !here {
		return nil, errNotHere
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookWait)
	defer cancel()
	may := from == k.elections.Coordinator()
	var out any
	err = k.peek(ctx, l.Instance, func(h *held) {
		if may = may || h.m.Participates(from); !may {
			return
		}
		if l.What == wire.LookLog {
			out = k.view.Log(h.shown())
		} else {
			out = k.view.Instance(h.shown())
		}
	})
	switch {
	case err != nil:
		k.log.Warn("an instance could not be shown to a partner", "to", from, "instance", l.Instance, "error", err)
		return nil, errors.New("cannot read this instance now")
	case !may:
		k.refuse("look", from)
		return nil, errMayNotLook
	}
	if in, is := out.(*api.Instance); is {
		k.withoutOutlived(ctx, l.Instance, in)
	}
	return json.Marshal(out)
}

// lookAt has a partner show an instance, and read take what it shows.
func (k *desk) lookAt(ctx context.Context, p workflow.PartnerID, l wire.Look, read func([]byte) error) error {
	if !k.up(p) {
		return errors.New("cannot be reached")
	}
	req, err := wire.EncodeLook(l)
	if err != nil {
		return err
	}
	b, err := k.request(ctx, p, nil, protocolLook, req, lookWait)
	if err != nil {
		return err
	}
	return read(b)
}

// lookAround asks those who reported an instance, the best informed first, until
// one shows it. It returns whose account it is; if nobody answers, the error of
// the first.
func (k *desk) lookAround(
	ctx context.Context, accounts []overview.Account, what wire.LookWhat, read func([]byte) error,
) (overview.Account, error) {
	var first error
	for _, a := range accounts {
		err := k.lookAt(ctx, a.By, wire.Look{Instance: a.Instance, What: what}, read)
		if err == nil {
			return a, nil
		}
		if first == nil {
			first = fmt.Errorf("%s: %w", k.people.label(a.By), err)
		}
	}
	return accounts[0], first
}

// showElsewhere shows an instance that others reported: as one of them shows it
// now or, if nobody can be asked, as far as the report says.
func (k *desk) showElsewhere(ctx context.Context, accounts []overview.Account) *api.Instance {
	var in *api.Instance
	a, err := k.lookAround(ctx, accounts, wire.LookInstance, func(b []byte) (err error) {
		in, err = show.ReadInstance(b, accounts[0].Instance)
		return err
	})
	if err == nil {
		in.Told = &api.Told{By: k.overview.Witness(a)}
		k.view.Redate(in)
		return in
	}
	a = accounts[0]
	return &api.Instance{
		ID: a.Instance.String(), Workflow: a.Workflow, Label: k.definitions.Label(a.Definition), Version: a.Version,
		State:   a.State,
		Started: wire.AtMilli(a.Started), Ended: wire.Instant(a.Ended),
		Told: &api.Told{
			By: k.overview.Witness(a), Summary: true, Why: err.Error(), Done: int(a.Done), Tasks: int(a.Tasks),
			Current: k.people.names(a.At), Participants: k.people.names(a.Participants),
		},
	}
}

// logElsewhere is the log of an instance that others reported.
func (k *desk) logElsewhere(ctx context.Context, accounts []overview.Account) ([]api.LogEntry, error) {
	var out []api.LogEntry
	_, err := k.lookAround(ctx, accounts, wire.LookLog, func(b []byte) (err error) {
		out, err = show.ReadLog(b)
		return err
	})
	if err != nil {
		return nil, api.Errorf(api.Failed,
			"this node takes no part in the instance, and nobody who does shows its log: %v", err).
			WithHint("mutirao show says who holds it; ask there, or again when they are back")
	}
	return out, nil
}

// seeing is what looking at instances in which this node takes no part asks of the worklists: a partner shows them to
// whoever here decides about them.
type seeing interface {
	LookThere(ctx context.Context, ref string, x worklists.Look, err error) (*worklists.Seen, error)
	Misshown(seen *worklists.Seen, err error) error
	// Stuck are those that wait for whoever here decides about them.
	Stuck(ctx context.Context) []api.InstanceSummary
}

// lookAnywhere has here read an instance on its owner or, where this node takes no part in it, read take what a
// partner shows of it.
func (k *desk) lookAnywhere(
	ctx context.Context, ref string, w seeing, x worklists.Look, here func(*held), read func(*worklists.Seen) error,
) error {
	err := k.look(ctx, ref, here, k.onlyThere)
	if !k.isElsewhere(ref, err) {
		return err
	}
	seen, err := w.LookThere(ctx, ref, x, err)
	if err != nil {
		return err
	}
	if err := read(seen); err != nil {
		return w.Misshown(seen, err)
	}
	return nil
}

// isElsewhere reports whether an instance cannot be looked at for that reason, as others may take part in it.
func (k *desk) isElsewhere(ref string, err error) bool {
	var e *api.Error
	if !errors.As(err, &e) || e.Code != api.NotFound && e.Code != api.Refused {
		return false
	}
	_, there, no := k.locate(ref)
	return there != nil || errors.As(no, &e) && e.Code == api.NotFound
}

// notThere is onlyThere, also where this node does not hear of an instance that whoever is here decides about: err says
// that it is not here.
func (k *desk) notThere(ctx context.Context, ref string, w seeing, err error) error {
	if !k.isElsewhere(ref, err) {
		return err
	}
	seen, no := w.LookThere(ctx, ref, worklists.Look{What: wire.LookDeciding}, err)
	if no != nil {
		return no
	}
	return api.Errorf(api.Refused, "this node takes no part in instance %s", seen.Instance).
		WithHint("its values: mutirao show %s; what is in files is given at a node that takes part, such as %s",
			seen.Instance, k.people.label(seen.By))
}

// show shows one instance; at the coordinator also one of others, and to whoever decides about it any.
func (k *desk) show(ctx context.Context, ref string, w seeing) (*api.Instance, error) {
	out, _, err := k.showWith(ctx, ref, w)
	return out, err
}

// showWith is show; of what a partner shows it says by which definition the instance runs.
func (k *desk) showWith(
	ctx context.Context, ref string, w seeing,
) (out *api.Instance, runs workflow.Hash, err error) {
	if _, there, _ := k.locate(ref); there != nil {
		return k.showElsewhere(ctx, there), there[0].Definition, nil
	}
	err = k.lookAnywhere(ctx, ref, w, worklists.Look{What: wire.LookInstance},
		func(h *held) { out, runs = k.view.Instance(h.shown()), h.def.Hash },
		func(seen *worklists.Seen) (err error) {
			if out, err = show.ReadInstance(seen.Parts[0], seen.Instance); err != nil {
				return err
			}
			runs, out.Told = seen.Runs, &api.Told{By: k.overview.WitnessNow(seen.By)}
			k.view.Redate(out)
			return nil
		})
	var only *onlySummary
	if errors.As(err, &only) {
		return k.retention.shownClosing(only.closing), only.closing.Definition, nil
	}
	if out != nil && out.Told == nil {
		k.withoutOutlived(ctx, index.IDOf(out.ID), out)
	}
	return out, runs, err
}

// history shows the facts of one instance; at the coordinator also of one of others, and to whoever decides about it of
// any.
func (k *desk) history(ctx context.Context, ref string, w seeing) (out []api.LogEntry, err error) {
	if _, there, _ := k.locate(ref); there != nil {
		return k.logElsewhere(ctx, there)
	}
	err = k.lookAnywhere(ctx, ref, w, worklists.Look{What: wire.LookLog},
		func(h *held) { out = k.view.Log(h.shown()) },
		func(seen *worklists.Seen) (err error) {
			out, err = show.ReadLog(seen.Parts...)
			return err
		})
	return out, err
}

// diagram draws an instance with the states of its tasks.
func (k *desk) diagram(ctx context.Context, ref, format string, w seeing) ([]byte, error) {
	if _, _, err := k.locate(ref); err != nil && !k.isElsewhere(ref, err) {
		return nil, err // of one that is only a summary nothing is drawn
	}
	in, runs, err := k.showWith(ctx, ref, w)
	if err != nil {
		return nil, err
	}
	if of, language, _ := strings.Cut(format, "-"); of == show.FormatGantt {
		return show.Gantt(in, k.clock.Now().Wall, language, time.Local)
	}
	if err := show.Undrawable(in); err != nil {
		return nil, err
	}
	def, err := k.definitions.Get(runs)
	if errors.Is(err, kv.ErrNotFound) {
		return nil, api.Errorf(api.Failed, "the definition of this instance, %s@%d, is not known here", in.Workflow,
			in.Version).
			WithHint("draw it on a node that takes part")
	}
	if err != nil {
		return nil, err
	}
	return show.Draw(def.Def, in, format)
}
