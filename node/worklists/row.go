package worklists

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// Row is an item as a partner knows it, for one person. A partner that is asked answers with
// those that it holds.
type Row struct {
	Instance workflow.InstanceID `json:"instance"`
	Workflow workflow.Name       `json:"workflow"`
	Task     workflow.TaskName   `json:"task"`
	Item     worklist.Item       `json:"item"`
	Role     workflow.RoleName   `json:"role,omitempty"`
	Priority int                 `json:"priority,omitempty"`
	Offline  bool                `json:"offline,omitempty"`
	Since    time.Time           `json:"since"`
	// Place orders items of one instance that came at the same time: in the order of its rules,
	// then by name.
	Place int `json:"place,omitempty"`
	// Mine is how the person has it; empty: not. Grant is by what the person has or had it last.
	Mine  worklist.Mode `json:"mine,omitempty"`
	Grant worklist.ID   `json:"grant"`
	// Grants are all by which the person ever got it, the newest first, at most choreo.MaxGrants; empty: none, or its
	// holder does not say, as versions before 2026-12-01 do not.
	Grants []worklist.ID `json:"grants,omitempty"`
	// Word is by which word the person was given what the person has or is kept for the person, also where that is over,
	// and Joint whether that was together with items of other holders. Zero: not, or its holder does not say.
	Word  worklist.ID `json:"word,omitzero"`
	Joint bool        `json:"joint,omitempty"`
	// From is the partner at whose node the person asked for what the person has; empty: its holder does not say, as
	// versions before 2026-11-30 do not.
	From workflow.PartnerID `json:"from,omitempty"`
	// Other is somebody else who has it. Over: nobody can take it any more, or at least the person may not.
	Other worklist.User `json:"other,omitempty"`
	// Held is by which grant somebody has it, the person or another; zero: nobody has.
	Held worklist.ID `json:"held"`
	Over bool        `json:"over,omitempty"`
	// LeaseLeft is for how much longer the lease lasts by which somebody has it, by whoever says so; 0: for as long as it
	// takes. LeaseAt is that moment by this node's clock. Longer is how long after it others may take it, as whoever has
	// it is away as announced: then the lease itself may be over.
	LeaseLeft time.Duration `json:"lease_left,omitempty"`
	LeaseAt   time.Time     `json:"-"`
	Longer    time.Duration `json:"lease_longer,omitempty"`
	// Handed is who handed the item to the person, for whom it is kept to take; KeptFor is for how much longer, also
	// where it is kept for Other. Lost is why the person has it no more, LostBy whose word that was, if a person's, and
	// LostAt when.
	Handed  worklist.User `json:"handed,omitempty"`
	KeptFor time.Duration `json:"kept_for,omitempty"`
	Lost    string        `json:"lost,omitempty"`
	LostBy  worklist.User `json:"lost_by,omitempty"`
	LostAt  time.Time     `json:"lost_at,omitzero"`
	// Unneeded is since when what the person lost is not needed any more, is over, or was passed on by somebody else; zero:
	// it was taken from the person otherwise.
	Unneeded time.Time `json:"unneeded,omitzero"`
	// Made: something that the person brought of what is not needed is kept.
	Made bool `json:"made,omitempty"`
	// Adoptable: a result that the person brought of what the person lost is kept here, and can still be adopted.
	Adoptable bool `json:"-"`

	// Begun is since when its holder works on it, while nobody has taken it; zero: it does not.
	Begun time.Time `json:"begun,omitzero"`

	// Remark is what whoever gave it back or passed it on last said; nil: nothing.
	Remark *worklist.Remark `json:"remark,omitempty"`

	// Presumed is why others presume that its task has failed, while its holder has not given it up; empty: nobody does.
	Presumed string `json:"presumed,omitempty"`

	// WaitsFor are the resources that its task is to hold and has not got yet: nobody can take it before.
	WaitsFor []worklist.Lack `json:"waits_for,omitempty"`
	// Shared are the resources that others use with it though there is not enough for all; empty: none, or its holder does
	// not say, as versions before 2026-12-02 do not. Their tasks are called by name: older ones take no labels of these.
	Shared []worklist.Lack `json:"shared,omitempty"`

	// Partition is where it is. Awaits are the tasks whose success makes it ready, while it is not; PutOff: the person has
	// done it, which counts when they have.
	Partition workflow.PartitionName `json:"partition,omitempty"`
	Awaits    []workflow.TaskName    `json:"awaits,omitempty"`
	PutOff    bool                   `json:"put_off,omitempty"`
	// HeldUp is why these cannot make it ready as things are, as one of them failed; empty: they can.
	HeldUp string `json:"held_up,omitempty"`

	// Undoes is the task that it compensates; empty: it compensates none.
	Undoes workflow.TaskName `json:"undoes,omitempty"`

	// Doc is the beginning of what the definition says of the task, Subject what the instance is about.
	Doc     string `json:"doc,omitempty"`
	Subject string `json:"subject,omitempty"`
	// Label and WorkflowLabel are what people call the task and the workflow; empty: by their names.
	Label         string `json:"label,omitempty"`
	WorkflowLabel string `json:"workflow_label,omitempty"`
	// TaskLabels are what people call the other tasks that it names, by name; what is left out is called by its name.
	TaskLabels map[workflow.TaskName]string `json:"task_labels,omitempty"`
	// Ends says what happens when the next of the item's clocks has run out (choreo.DueKind), Left in what
	// time that is, by whoever says so; empty: none runs. Until is that moment by this node's clock.
	Ends  string        `json:"ends,omitempty"`
	Left  time.Duration `json:"left,omitempty"`
	Until time.Time     `json:"-"`
	// Due is its deadline, DueLeft how much time is left by whoever says so, and Warnings with how much left
	// people are warned; zero: it has none. DueAt is that moment by this node's clock.
	Due      worklist.Due    `json:"deadline,omitzero"`
	DueLeft  time.Duration   `json:"deadline_left,omitempty"`
	DueAt    time.Time       `json:"-"`
	Warnings []time.Duration `json:"warnings,omitempty"`
	// Transfer is with how much time left it passes to TransferTo, who answers for the instance; 0: it does not. Of what
	// the person lost it may have.
	Transfer   time.Duration `json:"transfer,omitempty"`
	TransferTo worklist.User `json:"transfer_to,omitempty"`

	// Size is how many bytes the files have that its task reads. Local: all of them are here.
	Size  int64 `json:"size,omitempty"`
	Local bool  `json:"-"`

	// Leased is for how much longer the person has it if nothing is heard of the person, where this node holds it.
	Leased time.Duration `json:"-"`

	// Application is with what it is done; empty: without any, or its holder does not say.
	Application workflow.ApplicationName `json:"application,omitempty"`

	// At is who holds it, AsOf when that is known from.
	At   workflow.PartnerID `json:"-"`
	AsOf time.Time          `json:"-"`
	// Done: the person did it here, and its holder does not have that yet.
	Done  bool          `json:"-"`
	id    string        // once asked for
	here  bool          // all that it needs is on this device, once that is asked for
	heard time.Duration // when (Awake) it was said so, of what is remembered: wall clocks are set
	// noted: it is written down that the user took it.
	noted bool
	// unrecorded: its holder does not know of the grant by which it was taken from here last.
	unrecorded bool
	// undated: its holder does not say when the person lost it.
	undated bool
}

// MaxDoc and maxSubject bound, in letters, how a row says what is to be done and about what.
const (
	MaxDoc     = 160
	maxSubject = 400
)

// MaxHeldUp bounds, in bytes, how a row says why it cannot be done: with the reason why another task failed.
const MaxHeldUp = worklist.MaxBack + 6*workflow.MaxName

// maxSize is what the files of an item have at most: as many as there are data of the largest kind.
const maxSize = maxFields * workflow.MaxFile

// named is by what an item is told from others, as by its ID, which takes longer to make.
type named struct {
	instance workflow.InstanceID
	item     worklist.Item
}

func (r *Row) names() named { return named{r.Instance, r.Item} }

// concern is how much an item concerns whoever asked: 2: the user has it; 1: had it; 0: may take it, or somebody has
// it.
func (r *Row) concern() int {
	switch {
	case r.Mine != "":
		return 2
	case r.Lost != "":
		return 1
	}
	return 0
}

// ID is by what people name the item: the same wherever it is asked for.
func (r *Row) ID() string {
	if r.id == "" {
		r.id = ItemID(r.Instance, r.Item)
	}
	return r.id
}

// ItemID is by what people name an item of an instance.
func ItemID(in workflow.InstanceID, of worklist.Item) string {
	h := sha256.New()
	h.Write([]byte("mutirao/item/1\x00"))
	h.Write(in[:])
	h.Write(of.Assigned[:])
	h.Write([]byte(of.Slot))
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// check says what no partner would truly answer: what it says is shown to people.
func (r *Row) check(now time.Time) error {
	for what, name := range map[string]string{
		"workflow": string(r.Workflow), "task": string(r.Task), "slot": string(r.Item.Slot),
	} {
		if !workflow.ValidName(name) {
			return fmt.Errorf("a %s with a name that none can have", what)
		}
	}
	switch {
	case r.Undoes != "" && !workflow.ValidName(string(r.Undoes)):
		return fmt.Errorf("what it undoes has a name that none can have")
	case r.Application != "" && !workflow.ValidName(string(r.Application)):
		return fmt.Errorf("an application with a name that none can have")
	case r.Role != "" && !workflow.ValidName(string(r.Role)):
		return fmt.Errorf("a role with a name that none can have")
	case len(r.Other) > workflow.MaxName, len(r.Handed) > workflow.MaxName, len(r.LostBy) > workflow.MaxName,
		len(r.TransferTo) > workflow.MaxName, len(r.From) > workflow.MaxName:
		return fmt.Errorf("a person with an ID of %d bytes", len(r.Other))
	case r.Mine != "" && r.Mine != worklist.Select && r.Mine != worklist.Lock:
		return fmt.Errorf("an item that somebody has in a way that there is not")
	}
	if len(r.Grants) > choreo.MaxGrants {
		return fmt.Errorf("an item that was given %d times, at most %d are told", len(r.Grants), choreo.MaxGrants)
	}
	if r.Size < 0 || r.Size > maxSize {
		return fmt.Errorf("an item whose files have %d bytes", r.Size)
	}
	if len(r.Lost) > workflow.MaxName || len(r.Presumed) > worklist.MaxBack || len(r.HeldUp) > MaxHeldUp ||
		utf8.RuneCountInString(r.Doc) > MaxDoc ||
		utf8.RuneCountInString(r.Subject) > maxSubject || len(r.Ends) > workflow.MaxName {
		return fmt.Errorf("an item that says more of itself than it may")
	}
	if !labelled(r.Label) || !labelled(r.WorkflowLabel) {
		return fmt.Errorf("an item with a label that there cannot be")
	}
	if !r.labelsTasks() {
		return fmt.Errorf("an item with labels of tasks that there cannot be")
	}
	if r.Partition != "" && !workflow.ValidName(string(r.Partition)) || len(r.Awaits) > worklist.MaxGranted ||
		slices.ContainsFunc(r.Awaits, func(t workflow.TaskName) bool { return !workflow.ValidName(string(t)) }) {
		return fmt.Errorf("an item that waits for what there cannot be")
	}
	if err := checkLacks(r.WaitsFor, func(l worklist.Lack) bool {
		return l.Used >= len(l.By) && l.Used <= l.Capacity
	}); err != nil {
		return err
	}
	if err := checkLacks(r.Shared, func(l worklist.Lack) bool {
		return len(l.By) > 0 && l.Used > max(len(l.By), l.Capacity)
	}); err != nil {
		return err
	}
	if err := checkRemark(r.Remark, now); err != nil {
		return err
	}
	if r.Begun.After(now) || r.Begun.Before(time.UnixMilli(0)) && !r.Begun.IsZero() {
		r.Begun = now
	}
	r.Until = time.Time{}
	if r.Ends != "" {
		r.Until = now.Add(min(max(r.Left, 0), 100*365*24*time.Hour))
	}
	r.LeaseAt = time.Time{}
	r.Longer = min(max(r.Longer, 0), worklist.MostAway)
	if r.LeaseLeft > 0 || r.Longer > 0 {
		r.LeaseAt = now.Add(min(max(r.LeaseLeft, -r.Longer), worklist.MaxLease))
	}
	r.KeptFor = min(max(r.KeptFor, 0), worklist.DefaultLease(worklist.Handed))
	r.undated = r.LostAt.IsZero()
	if r.LostAt.After(now) || r.LostAt.Before(time.UnixMilli(0)) {
		r.LostAt = now
	}
	if r.Unneeded.After(now) || r.Unneeded.Before(time.UnixMilli(0)) && !r.Unneeded.IsZero() {
		r.Unneeded = now
	}
	if err := r.checkDue(now); err != nil {
		return err
	}
	if r.Since.After(now) || r.Since.Before(time.UnixMilli(0)) {
		r.Since = now
	}
	return nil
}

// checkRemark checks what a partner says that somebody said of an item.
func checkRemark(x *worklist.Remark, now time.Time) error {
	if x == nil {
		return nil
	}
	if len(x.User) > workflow.MaxName || len(x.Reason) > worklist.MaxBack {
		return fmt.Errorf("an item of which somebody said more than one may")
	}
	if x.At.After(now) || x.At.Before(time.UnixMilli(0)) {
		x.At = now
	}
	return nil
}

// called is what people read the task as: its name, with its label.
func (r *Row) called() string {
	if r.Task == workflow.FlowTask { // which nobody wrote, so nobody knows its name
		return "the data states"
	}
	if r.Task == "" {
		return "the instance"
	}
	return workflow.WithLabel(string(r.Task), r.Label)
}

// labelled reports whether a text is a label, or none.
func labelled(s string) bool { return s == "" || workflow.LabelRule(s) == "" }

// Named are the other tasks that an item names.
func (r *Row) Named() (out []workflow.TaskName) {
	out = append(out, r.Awaits...)
	for _, l := range r.WaitsFor {
		out = append(out, l.By...)
	}
	if r.Item.Slot != r.Task {
		out = append(out, r.Item.Slot)
	}
	if r.Undoes != "" && r.Undoes != r.Item.Slot {
		out = append(out, r.Undoes)
	}
	return out
}

// labelsTasks reports whether its labels are of tasks that it names.
func (r *Row) labelsTasks() bool {
	if len(r.TaskLabels) == 0 {
		return true
	}
	named := r.Named()
	for t, label := range r.TaskLabels {
		if !slices.Contains(named, t) || label == "" || !labelled(label) {
			return false
		}
	}
	return true
}

// Lacks are the resources for which a task waits, as people see them.
func Lacks(of []worklist.Lack) []api.Lack { return lacks(of, worklist.Lack.String) }

// Shared are the resources that others use with a task though there is not enough for all, as people see them.
func Shared(of []worklist.Lack) []api.Lack { return lacks(of, worklist.Lack.SharedText) }

func lacks(of []worklist.Lack, text func(worklist.Lack) string) (out []api.Lack) {
	for _, l := range of {
		x := api.Lack{
			Resource: string(l.Resource), Capacity: l.Capacity, InUse: l.Used, By: make([]string, len(l.By)),
			Text: text(l),
		}
		for i, t := range l.By {
			x.By[i] = string(t)
		}
		out = append(out, x)
	}
	return out
}

// checkLacks checks what a partner says of resources of an item: for which it waits, or which others use with it.
func checkLacks(ls []worklist.Lack, counts func(worklist.Lack) bool) error {
	if len(ls) > workflow.MaxHolds {
		return fmt.Errorf("an item that waits for %d resources, at most %d", len(ls), workflow.MaxHolds)
	}
	for _, l := range ls {
		if !workflow.ValidName(string(l.Resource)) || l.Capacity < 0 || l.Capacity > workflow.MaxCapacity ||
			!counts(l) || len(l.By) > worklist.MaxLackBy {
			return fmt.Errorf("an item that waits for a resource as none can be")
		}
		for _, t := range l.By {
			if !workflow.ValidName(string(t)) {
				return fmt.Errorf("a task with a name that none can have has a resource")
			}
		}
	}
	return nil
}

// maxWarnings bounds the warnings of a deadline.
const maxWarnings = 100

// checkDue reads the deadline of an item as a partner says it: by this node's clock.
func (r *Row) checkDue(now time.Time) error {
	r.DueAt = time.Time{}
	switch {
	case len(r.Warnings) > maxWarnings:
		return fmt.Errorf("a deadline with %d warnings, at most %d", len(r.Warnings), maxWarnings)
	case r.Due.IsZero():
		r.DueLeft, r.Warnings, r.Transfer, r.TransferTo = 0, nil, 0, ""
		return nil
	case r.Due.At.IsZero() == (r.Due.After <= 0):
		return fmt.Errorf("a deadline that there cannot be")
	case r.Transfer < 0 || r.Transfer > worklist.MaxDue:
		return fmt.Errorf("an item that passes on %s before its deadline", r.Transfer)
	}
	const most = 100 * 365 * 24 * time.Hour
	if r.DueAt = now.Add(min(max(r.DueLeft, -most), most)); !r.Due.At.IsZero() {
		r.DueAt = r.Due.At // a point in time is compared with the own clock
	}
	if y := r.DueAt.Year(); y < 1 || y > 9999 {
		return fmt.Errorf("a deadline in the year %d", y)
	}
	for _, w := range r.Warnings {
		if w <= 0 {
			return fmt.Errorf("a warning %s before a deadline", w)
		}
	}
	return nil
}

// passes reports whether it is still to pass to who answers for its instance, and when, by this node's clock.
func (r *Row) passes() (at time.Time, is bool) {
	return r.DueAt.Add(-r.Transfer), r.Transfer > 0 && !r.DueAt.IsZero() && r.Lost == ""
}

// Last reports whether the person has it, or had it.
func (r *Row) Last() bool { return !r.Grant.IsZero() }

// returnable reports whether a person has something of it to give back: the person has it, or it is kept for the person,
// even if nothing can be done of it any more.
func (r *Row) returnable(u worklist.User) bool {
	return r.Mine != "" || r.Handed == u || r.Over && !r.Word.IsZero()
}

// free reports whether the person may take it.
func (r *Row) keptForOther() bool { return r.Other != "" && r.KeptFor > 0 }

func (r *Row) free() bool { return r.Mine == "" && r.Other == "" && !r.Over }
