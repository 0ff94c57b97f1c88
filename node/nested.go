package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/filing"
	"github.com/mutirao-mesh/mutirao/node/index"
	"github.com/mutirao-mesh/mutirao/node/quota"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// This file has tasks of type workflow done by instances of their own, the children. The
// holder of such a task begins its child and ends the try by what becomes of it.
//
// Which child is for which try is with the child itself, in its genesis, and so in its
// summary: it is durable with the child. So a try that is begun again after a crash finds
// its child, and nothing has to be kept in step. Everything else is looked at again as often
// as either of them changes, or is loaded: a child whose try nobody is at any more is
// cancelled, and one that has ended ends its try.

// nested are the children of instances here.
type nested struct {
	*desk
	filing *filing.Desk

	mu      sync.Mutex // guards what follows
	busy    map[string]bool
	awaited map[attemptOf]awaitedFile // by the attempt whose try waits
}

// attemptOf is an attempt of an instance.
type attemptOf struct {
	instance workflow.InstanceID
	attempt  fact.AttemptID
}

// awaitedFile is a file that a try waits for which a child does: one that its child is to be given, or has brought.
type awaitedFile struct {
	of   workflow.InstanceID // among whose data it is
	file workflow.File
}

// The pauses between tries to begin a child, or to end its try, where this node was kept
// from it; and how long a child is waited for that this node began and has no more.
const (
	nestPause = time.Second
	nestWait  = 30 * time.Second
)

// errand is a try of a task that is to be done by a child.
type errand struct {
	target      fact.Parent
	of          *workflow.Definition // the parent's
	task        *workflow.Task
	input       map[workflow.DataName]workflow.Value
	age         time.Duration
	responsible workflow.UserName
	decides     worklist.User
	uses        []fact.Pin
	named       workflow.InstanceID // the child that this node told of; zero: none
	by          workflow.PartnerID  // who began the parent
	begunBy     *fact.Speaker       // the user who did, there; nil: the partner itself
}

// nest has a try of a task of type workflow done by a child.
func (s *shard) nest(h *held, j state.Job) {
	var line []workflow.PartnerID
	if p := h.m.Parent(); p != nil {
		line = slices.Clone(p.Line)
	}
	line = append(line, h.sum.By)
	o := errand{
		target: fact.Parent{Instance: h.id, Attempt: j.Attempt, Try: j.Try, Line: line},
		of:     h.m.Definition(), task: j.Task, input: j.Input, uses: h.m.Pins(), named: h.m.Nested(j.Attempt, j.Try),
		by: h.sum.By, begunBy: h.m.BegunBy(),
		age:         max(s.now.Wall.Sub(time.UnixMilli(h.m.Genesis().At)), 0),
		responsible: s.n.partners.AnswersFor(h.m), decides: h.m.Responsible(),
	}
	s.n.side(func() { s.n.nested.see(o) })
}

// nestedChanged sees to what has to do with children, in an instance that changed or is new
// in memory.
func (s *shard) nestedChanged(h *held) {
	x := s.n.nested
	if p, part := index.ReadPart(h.sum.Of); part && h.sum.By == s.n.member.ID() {
		switch end, over := s.outcome(h); {
		case over && !h.handedOn:
			h.handedOn = !end.presumed // else it may come to something else yet
			s.n.side(func() { x.finish(p, end) })
		case !over && !h.tended:
			h.tended = true
			s.n.side(func() { x.askParent(p.Instance, h.id) })
		}
	}
	if len(h.m.Pins()) > 0 {
		x.tend(h)
	}
}

// childEnd is how a child ended, as far as its parent needs it.
type childEnd struct {
	child  workflow.InstanceID
	def    *workflow.Definition
	values map[workflow.DataName]workflow.Value
	failed bool
	reason string
	// presumed: it has failed only as others presume of partners that may be back.
	presumed bool
}

// outcome is what became of a child; false: it goes on.
func (s *shard) outcome(h *held) (end childEnd, over bool) {
	end = childEnd{child: h.id, def: h.m.Definition()}
	switch {
	case h.sum.State == workflow.InstanceRunning:
		return end, false
	case h.sum.State == workflow.InstanceSucceeded:
		end.values = h.m.Snapshot().Data
		return end, true
	case h.m.AtWork(), s.mayGoOn(h): // what others presume may be wrong
		return end, false
	}
	end.presumed = presumed(h.m, s.n.people.GoneForGood)
	end.failed, end.reason = true, fmt.Sprintf("instance %s of workflow %s %s", h.id.Short(), h.def.Def.Name,
		howEnded(h.sum.State))
	for _, t := range h.m.Snapshot().Tasks {
		if t.State == workflow.Failed && t.Reason != "" && !t.Task.ContingencyOnly {
			end.reason += fmt.Sprintf("; task %s: %s", t.Task.Name, t.Reason)
			break
		}
	}
	return end, true
}

// mayGoOn reports whether an instance has failed, or is blocked, only as others presume (api.Instance.MayGoOn).
func (s *shard) mayGoOn(h *held) bool {
	in := api.Instance{State: h.m.Overall(), Asks: s.n.view.Asks(h.shown())}
	return in.MayGoOn()
}

func howEnded(s workflow.InstanceState) string {
	switch s {
	case workflow.InstanceCancelled:
		return "was cancelled"
	case workflow.InstanceBlocked:
		return "is blocked"
	}
	return "has " + string(s)
}

// tend cancels the children of an instance that nobody waits for: their try has ended, or
// another child is for the same. It runs on the instance's owner.
func (x *nested) tend(h *held) {
	of := x.index.Children(h.id, x.member.ID())
	chosen := map[string]workflow.InstanceID{}
	for id, sum := range of {
		p, _ := index.ReadPart(sum.Of)
		named := h.m.Nested(p.Attempt, p.Try)
		if at, other := chosen[sum.Of]; !other || id == named || at != named && id.Compare(at) < 0 {
			chosen[sum.Of] = id
		}
	}
	for id, sum := range of {
		p, _ := index.ReadPart(sum.Of)
		why := ""
		switch {
		case !x.mayGoOn(&sum):
		case !h.m.Awaits(p.Attempt, p.Try):
			why = fmt.Sprintf("task %s of instance %s is not at it any more", h.taskOf(p.Attempt), h.id)
		case chosen[sum.Of] != id:
			why = fmt.Sprintf("instance %s is for the same try of task %s", chosen[sum.Of], h.taskOf(p.Attempt))
		}
		if why != "" {
			x.side(func() { x.cancelChild(id, why) })
		}
	}
}

// mayGoOn reports whether a child may still come to something: it runs, is blocked, or has failed only as others
// presume of partners that may be back.
func (x *nested) mayGoOn(sum *index.Summary) bool {
	switch sum.State {
	case workflow.InstanceRunning, workflow.InstanceBlocked:
		return true
	}
	return sum.State == workflow.InstanceFailed && slices.ContainsFunc(index.ReadHolders(sum.Holders),
		func(p workflow.PartnerID) bool { return !x.people.GoneForGood(p) })
}

func (h *held) taskOf(a fact.AttemptID) workflow.TaskName {
	t, _ := h.m.AttemptTask(a)
	return t
}

// askParent has the parent of a child looked at: it may not be at it any more, or be gone.
func (x *nested) askParent(parent, child workflow.InstanceID) {
	sum, here := x.index.Get(parent)
	if !here || sum.Closed {
		x.cancelChild(child, fmt.Sprintf("instance %s, for which it was started, is not here any more", parent))
		return
	}
	ctx, cancel := x.untilStopped()
	defer cancel()
	if err := x.visit(ctx, parent, x.tend); err != nil {
		x.log.Warn("the instance that a child is for cannot be read", "instance", parent, "child", child, "error", err)
	}
}

// untilStopped is a context that ends when the node stops.
func (x *nested) untilStopped() (context.Context, context.CancelFunc) { return x.filing.UntilStopped() }

// cancelChild cancels a child. Where that cannot be made durable, it is tried again when the
// child is loaded again.
func (x *nested) cancelChild(id workflow.InstanceID, why string) {
	ctx, cancel := x.untilStopped()
	defer cancel()
	err := x.do(ctx, id, func(s *shard) error {
		h, err := s.find(id)
		if err != nil {
			return err
		}
		err = h.m.Cancel(why, s.moment())
		s.touch(h)
		return err
	})
	if err != nil && !errors.Is(err, state.ErrNotNow) && !errors.Is(err, api.ErrStopping) && ctx.Err() == nil {
		x.log.Warn("a child that is not needed could not be cancelled", "child", id, "error", err)
	}
}

// insist calls fn until it is done, with pauses; false: the node stops, or the time is over.
func (x *nested) insist(fn func(ctx context.Context) (done bool)) bool {
	ctx, cancel := x.untilStopped()
	defer cancel()
	for pause := nestPause; ; pause = min(2*pause, nestWait) {
		if fn(ctx) {
			return true
		}
		if ctx.Err() != nil || !x.waits() {
			return false
		}
		select {
		case <-x.clock.After(pause):
		case <-ctx.Done():
			return false
		}
	}
}

// see sees to an errand: it finds its child or begins it, notes it with the parent, and ends
// the try if the child has ended.
func (x *nested) see(o errand) {
	of := index.PartOf(&o.target)
	x.mu.Lock()
	was := x.busy[of]
	x.busy[of] = true
	x.mu.Unlock()
	if was {
		return
	}
	defer func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		delete(x.busy, of)
	}()
	began := x.clock.Now().Awake
	x.insist(func(ctx context.Context) bool {
		wanted, err := x.wanted(ctx, o.target)
		if err != nil || !wanted {
			return err == nil || errors.Is(err, kv.ErrNotFound)
		}
		child, found := x.childFor(o)
		switch {
		case found:
		case o.named != (workflow.InstanceID{}) && x.clock.Now().Awake < began+nestWait:
			return false // others that take part in it may bring it
		case o.named != (workflow.InstanceID{}):
			return x.end(ctx, o.target, choreo.Result{
				Failed: true, Reason: fmt.Sprintf("instance %s, which did it, was lost with this node's store",
					o.named),
			})
		case !x.hasRoom(o.by):
			return false // others of the same member have to end first
		default:
			if child, err = x.begin(ctx, o); err != nil {
				return x.couldNot(ctx, o, err)
			}
		}
		return x.note(ctx, o.target, child) && x.look(ctx, o.target, child)
	})
}

// hasRoom reports whether this node may begin another child for an instance that a member began. To
// partners a child is an instance of this node's: so one member has no more of them under way than a
// share of what may be one member's.
func (x *nested) hasRoom(by workflow.PartnerID) bool {
	return by == x.member.ID() || x.index.BeganFor(by,
		x.member.ID()) < quota.Share(quota.Share(x.config.Limits.Instances))
}

// couldNot ends a try whose child cannot be begun, unless only this node is kept from it now.
func (x *nested) couldNot(ctx context.Context, o errand, err error) bool {
	var refused *api.Error
	if ctx.Err() != nil || x.filing.IsStopping() || errors.Is(err, api.ErrStopping) || !errors.As(err, &refused) ||
		refused.Code == api.Internal {
		x.log.Warn("a child cannot be started now", "instance", o.target.Instance, "task", o.task.Name, "error", err)
		return false
	}
	reason := refused.Message
	if refused.Hint != "" {
		reason += " (" + refused.Hint + ")"
	}
	return x.end(ctx, o.target, choreo.Result{
		Failed: true, Reason: fmt.Sprintf("workflow %s could not be started: %s", o.task.Uses.Workflow, reason),
	})
}

// wanted reports whether this node is at a try.
func (x *nested) wanted(ctx context.Context, p fact.Parent) (is bool, err error) {
	err = x.peek(ctx, p.Instance, func(h *held) { is = h.m.Works(p.Attempt, p.Try) })
	return is, err
}

// follows reports whether this node is at a try from whose failure something follows besides a block.
func (x *nested) follows(ctx context.Context, p fact.Parent) (is bool, err error) {
	err = x.peek(ctx, p.Instance, func(h *held) {
		is = h.m.Works(p.Attempt, p.Try) && !h.m.OnlyBlocks(p.Attempt)
	})
	return is, err
}

// gone has children looked at once more that have failed, or are blocked, as a partner was presumed to have failed
// which is gone for good now.
func (x *nested) gone(p workflow.PartnerID) {
	for id, sum := range x.index.Presuming(p, x.member.ID()) {
		of, part := index.ReadPart(sum.Of)
		if !part {
			continue
		}
		x.side(func() {
			ctx, cancel := x.untilStopped()
			defer cancel()
			x.look(ctx, of, id)
		})
	}
}

// mayCount reports whether a child that has succeeded still ends a try.
func (x *nested) mayCount(ctx context.Context, p fact.Parent) (is bool, err error) {
	err = x.peek(ctx, p.Instance, func(h *held) { is = h.m.Awaits(p.Attempt, p.Try) })
	return is, err
}

// childFor is the child of an errand that is here: the one that this node told of, else the
// first by ID.
func (x *nested) childFor(o errand) (out workflow.InstanceID, found bool) {
	of := index.PartOf(&o.target)
	for id, sum := range x.index.Children(o.target.Instance, x.member.ID()) {
		if sum.Of == of && (!found || id == o.named || out != o.named && id.Compare(out) < 0) {
			out, found = id, true
		}
	}
	return out, found
}

// note has the parent say which child does its try. If nobody is at the try any more, the child
// is cancelled.
func (x *nested) note(ctx context.Context, p fact.Parent, child workflow.InstanceID) bool {
	waits := false
	err := x.do(ctx, p.Instance, func(s *shard) error {
		h, err := s.find(p.Instance)
		if err != nil {
			return err
		}
		if waits = h.m.Awaits(p.Attempt, p.Try); waits {
			err = h.m.Nest(p.Attempt, p.Try, child, s.moment())
			s.touch(h)
		}
		return err
	})
	if err == nil && !waits {
		x.cancelChild(child, fmt.Sprintf("instance %s does not need it any more", p.Instance))
	}
	return err == nil || errors.Is(err, kv.ErrNotFound)
}

// look ends a try whose child has ended.
func (x *nested) look(ctx context.Context, p fact.Parent, child workflow.InstanceID) bool {
	var end childEnd
	over := false
	id := child
	err := x.visit(ctx, id, func(h *held) { end, over = x.shardOf(id).outcome(h) })
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return x.end(ctx, p, choreo.Result{
			Failed: true, Reason: fmt.Sprintf("instance %s, which did it, is not here any more", child),
		})
	case err != nil:
		return false
	case over:
		x.finish(p, end)
	}
	return true
}

// finish ends a try as its child ended. Of one for which another stands in already only a success says something new. A
// failure that is only presumed, as somebody is out of reach there, ends no try from which nothing would follow but a
// block: with a success after all that would be lifted, and what the holder of the try says itself is final.
func (x *nested) finish(p fact.Parent, end childEnd) {
	counts := x.mayCount
	switch {
	case end.presumed:
		counts = x.follows
	case end.failed:
		counts = x.wanted
	}
	x.insist(func(ctx context.Context) bool {
		res := choreo.Result{Failed: end.failed, Reason: end.reason}
		if is, err := counts(ctx, p); err != nil || !is {
			return err == nil || errors.Is(err, kv.ErrNotFound)
		}
		if !end.failed {
			var err error
			if res, err = x.results(ctx, p, end); err != nil {
				return ctx.Err() != nil || errors.Is(err, kv.ErrNotFound)
			}
		}
		return x.end(ctx, p, res)
	})
}

// results are the values of a child that its try may write. Files come here first.
func (x *nested) results(ctx context.Context, p fact.Parent, end childEnd) (res choreo.Result, err error) {
	var def *workflow.Definition
	var by workflow.PartnerID
	var out []workflow.DataName
	err = x.peek(ctx, p.Instance, func(h *held) {
		def, by = h.m.Definition(), h.sum.By
		if t := def.Task(h.taskOf(p.Attempt)); t != nil {
			out = t.Out
		}
	})
	if err != nil {
		return res, err
	}
	res.Outputs = map[workflow.DataName]workflow.Value{}
	for _, name := range out {
		if v := end.values[name]; v != nil {
			res.Outputs[name] = v
		}
	}
	if err := x.fetch(ctx, p, end.child, x.member.ID(), end.def, res.Outputs); err != nil {
		return choreo.Result{Failed: true, Reason: err.Error()}, ctx.Err()
	}
	if err := x.filing.Given(def, p.Instance.String(), by, res.Outputs, true); err != nil {
		return choreo.Result{Failed: true, Reason: err.Error()}, ctx.Err()
	}
	return res, nil
}

// fetch has the files among values of an instance come here, for which a try waits.
func (x *nested) fetch(
	ctx context.Context, p fact.Parent, id workflow.InstanceID, by workflow.PartnerID, def *workflow.Definition,
	values map[workflow.DataName]workflow.Value,
) error {
	at := attemptOf{p.Instance, p.Attempt}
	defer func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		delete(x.awaited, at)
	}()
	for _, name := range slices.Sorted(maps.Keys(values)) {
		d := def.Datum(name)
		if d == nil || d.Type != workflow.TypeFile || values[name] == nil {
			continue
		}
		if x.filing.Files == nil {
			return filing.ErrNone
		}
		f, err := workflow.ParseFile(fmt.Sprint(values[name]))
		if err != nil {
			return err
		}
		x.mu.Lock()
		x.awaited[at] = awaitedFile{id, f}
		x.mu.Unlock()
		if err := x.filing.Await(ctx, f, x.filing.Want(id, by, name, f)); err != nil {
			return fmt.Errorf("file %s: %w", name, err)
		}
	}
	return nil
}

// waitsForFile says which file an attempt waits for here that a child does; empty: none.
func (x *nested) waitsForFile(of workflow.InstanceID, a fact.AttemptID) string {
	x.mu.Lock()
	is, waits := x.awaited[attemptOf{of, a}]
	x.mu.Unlock()
	if !waits {
		return ""
	}
	words := x.filing.Files.Waits(is.of, is.file)
	if words == "" {
		return ""
	}
	return fmt.Sprintf("waits for file %s: %s", is.file.Name, words)
}

// end records how a try ended.
func (x *nested) end(ctx context.Context, p fact.Parent, res choreo.Result) bool {
	err := x.do(ctx, p.Instance, func(s *shard) error {
		h, err := s.find(p.Instance)
		if err != nil {
			return err
		}
		s.n.partners.Among(h.m, func(all choreo.Partners) []choreo.Holding {
			h.m.TaskEnded(p.Attempt, p.Try, res, s.moment(), all)
			return h.m.Given()
		})
		s.touch(h)
		return nil
	})
	return err == nil || errors.Is(err, kv.ErrNotFound)
}

// begin starts the child of an errand. An *api.Error says why it cannot be.
func (x *nested) begin(ctx context.Context, o errand) (id workflow.InstanceID, err error) {
	name := o.task.Uses.Workflow
	at := slices.IndexFunc(o.uses, func(p fact.Pin) bool { return p.Workflow == name })
	if at < 0 {
		return id, api.Errorf(api.Refused, "the instance does not say which workflow %s is", name)
	}
	e, err := x.definition(ctx, o.uses[at].Definition)
	if err != nil {
		return id, err
	}
	input, err := handedIn(o, e.Def)
	if err != nil {
		return id, err
	}
	if err := x.fetch(ctx, o.target, o.target.Instance, o.by, o.of, o.filesIn(e.Def, input)); err != nil {
		return id, err
	}
	decides := o.decides
	if decides == worklist.User(x.member.ID()) {
		decides = ""
	}
	child, err := x.launch(ctx, e, api.StartRequest{}, &birth{
		parent: &o.target, input: input, responsible: o.responsible, decides: decides, uses: o.uses,
		begunBy: o.begunBy,
	})
	return child.id, err
}

// handedIn are the values that a child is given, by the types of its data.
func handedIn(o errand, def *workflow.Definition) (map[workflow.DataName]workflow.Value, error) {
	input := map[workflow.DataName]workflow.Value{}
	env := workflow.Env{Data: o.input, Instance: o.target.Instance.String(), Age: o.age}
	for _, name := range slices.Sorted(maps.Keys(o.task.Uses.Input)) {
		e, d := o.task.Uses.Input[name], def.Datum(name)
		if d == nil {
			return nil, api.Errorf(api.Refused, "it has no data %s", name)
		}
		v, err := e.Eval(env)
		if err == nil {
			v, err = workflow.CheckValue(d, v)
		}
		if err != nil {
			return nil, api.Errorf(api.Refused, "its %s, which is given as %s: %v", name, e.Source, err)
		}
		if v != nil {
			input[name] = v
		}
	}
	for i := range def.Data {
		if d := &def.Data[i]; d.Required && d.Default == nil && input[d.Name] == nil {
			return nil, api.Errorf(api.Refused, "it needs a value for %s (%s), and is given none", d.Name, d.Type)
		}
	}
	return input, nil
}

// filesIn are the files of the parent that its child is given, by their names in the parent.
func (o errand) filesIn(
	def *workflow.Definition, input map[workflow.DataName]workflow.Value,
) map[workflow.DataName]workflow.Value {
	out := map[workflow.DataName]workflow.Value{}
	for name, v := range input {
		if d := def.Datum(name); d.Type != workflow.TypeFile {
			continue
		}
		for _, item := range o.task.Uses.Input[name].Names() {
			if d := o.of.Datum(item); d != nil && d.Type == workflow.TypeFile && o.input[item] == v {
				out[item] = v
			}
		}
	}
	return out
}
