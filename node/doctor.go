package node

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/internal/private"
	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/certificates"
	"github.com/mutirao-mesh/mutirao/node/clocks"
	"github.com/mutirao-mesh/mutirao/node/files"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// doctor looks for what is wrong with a node.
type doctor struct {
	*contacts
	parts  Parts
	losses *losses
	people patients
	wallet proof
	own    interface {
		Announced() []workflow.ApplicationName
	}
	evictions interface{ Ask(context.Context) } // why nobody lets this node in
	elections interface {
		Electorate() (*api.Electorate, error)
	}
	clocks *clocks.Topic
	users  interface {
		Filling() []string
		Unfit() []string
	}
	retention interface{ checkLate(*diagnosis) }
	away      func() (since time.Time, away bool)
	index     interface{ Quarantined() (unread, failed int) }
	faults    interface{ untaken() int }
	files     *files.Topic                             // nil: this node keeps none
	seen      func(workflow.ApplicationName) time.Time // when a worker last came for its jobs
}

// patients is what the doctor asks of the partner list.
type patients interface {
	names
	All() []membership.Partner
	// HeardOf reports whether others tell of signs of life of a partner.
	HeardOf(workflow.PartnerID) bool
	say(error) string
}

// proof is this node's certificate, and why nobody would admit it.
type proof interface {
	Chain() trust.Chain
	Standing() error
}

// examine looks for what is wrong with this node and its links.
func (k *doctor) examine(ctx context.Context) (*api.Diagnosis, error) {
	if _, away := k.away(); len(k.upPeers()) == 0 && !away {
		k.evictions.Ask(ctx)
	}
	var d diagnosis
	partners := k.people.All()
	k.checkStore(&d)
	unread, failed := k.index.Quarantined()
	k.losses.checkLosses(&d, unread, failed)
	if n := k.faults.untaken(); n > 0 {
		what := "1 new instance of others since it started, and does not take it in"
		if n > 1 {
			what = fmt.Sprintf("%d new instances of others since it started, and does not take them in", n)
		}
		d.warn("quarantine", "this program failed at "+what,
			"the node's log says where: please report it, and try a newer version")
	}
	k.checkDisk(&d)
	k.checkBattery(&d)
	k.checkFiles(&d)
	if k.files != nil {
		k.files.Diagnose(ctx, findings{&d})
	}
	member := k.checkCertificate(&d)
	k.checkAddresses(&d, partners)
	k.clocks.Check(findings{&d})
	k.checkProfile(&d)
	k.checkDatabases(ctx, &d)
	away := k.checkContact(&d)
	if member && !away { // else nobody talks to it, and that others seem to be gone says nothing
		k.checkLinks(&d, partners)
		k.checkPartners(&d, partners)
		if err := k.checkElectorate(ctx, &d); err != nil {
			d.wrong("electorate", err.Error(), "mutirao status shows the trouble with the store")
		}
		k.checkRefusals(&d)
		k.checkUsers(&d)
		k.retention.checkLate(&d)
	}
	healthy := !slices.ContainsFunc(d.findings, func(f api.Finding) bool { return f.State == api.FindingWrong })
	return &api.Diagnosis{Healthy: healthy, Findings: d.findings}, nil
}

// checkContact says that this node is out of contact on purpose, since whoever wonders why
// nobody is there may not be who disconnected it.
func (k *doctor) checkContact(d *diagnosis) (away bool) {
	since, away := k.away()
	if away {
		d.warn("contact", "this node was disconnected on purpose at "+since.Format(time.RFC3339)+
			", and talks to nobody",
			"mutirao worklist reconnect")
	}
	return away
}

func (k *doctor) checkStore(d *diagnosis) {
	trouble, lost := k.troubles.why("store"), k.troubles.why("rolled-back")
	_, err := k.store.Get(metaKey(metaIncarnation))
	var damage error
	if k.losses.vouching != nil && err == nil {
		damage = k.losses.vouching.Verify()
	}
	switch {
	case damage != nil:
		d.wrong("store", "the store was read and is damaged: "+damage.Error(),
			"start the node again: it saves what can be read, and partners bring back what they have; then look at the disk, which may be failing")
	case err != nil:
		d.wrong("store", "the store cannot be read: "+err.Error(),
			"look at the disk of the node's folder; if it is lost, join again from a fresh folder: what others hold of its work goes on")
	case trouble != "":
		d.wrong("store", "the store "+trouble,
			"make room on its disk, or repair it; the node goes on by itself as soon as it can write")
	case lost != "":
		d.warn("store", lost, "nothing, if a backup was put back: partners give back what they hold. Else look at the disk of the node's folder: it lost what it said it had written")
	default:
		d.ok("store", "was read and takes writes")
	}
}

// The least free space of the store's disk: below ScarceSpace it is time to make room.
const (
	ScarceSpace = 512 << 20 // bytes
	noSpace     = 32 << 20  // bytes: the next batch of facts may not fit
)

func (k *doctor) checkDisk(d *diagnosis) {
	if k.parts.Space == nil {
		return
	}
	reserve := k.parts.Reserve
	free, total, err := k.parts.Space()
	what := (&api.Disk{Free: free, Total: total}).String()
	switch {
	case err != nil:
		d.warn("disk", "its free space cannot be told: "+err.Error(), "look at the disk of the node's folder")
	case free < reserve:
		d.wrong("disk", fmt.Sprintf("%s, and the store writes nothing with less than %d MiB", what, reserve>>20),
			"delete something from the disk of the node's folder: until then nothing is acknowledged")
	case free < noSpace:
		d.wrong("disk", what, "delete something from the disk of the node's folder: without space nothing is acknowledged")
	case free < ScarceSpace:
		d.warn("disk", what, "make room on the disk of the node's folder soon")
	default:
		d.ok("disk", "%s", what)
	}
}

// checkBattery reports whether items can be locked here with what the battery has.
func (k *doctor) checkBattery(d *diagnosis) {
	b := k.parts.battery()
	if b == nil {
		return
	}
	if err := k.parts.mayLock(); err != nil {
		d.warn("battery", fmt.Sprintf("%s: nothing is locked at %d %% or less", b, k.config.LockAbove),
			"charge it; what is locked already can be done; lock-above in config.yaml says from where on")
		return
	}
	d.ok("battery", "%s", b)
}

// checkFiles reports whether others could read or replace what is this node's.
func (k *doctor) checkFiles(d *diagnosis) {
	if k.parts.Loose == nil {
		return
	}
	loose := k.parts.Loose()
	for _, l := range loose {
		unless := "the node does not start again before"
		if filepath.Base(filepath.Dir(l.Path)) == usersFolder {
			unless = "that user is not signed in here any more after a start before"
		}
		d.wrong("files", l.Error(), l.Mend+"; "+unless+
			". If somebody may have read the key, join again from a fresh folder, and have the old one evicted")
	}
	switch {
	case private.Unchecked != "":
		d.warn("files", private.Unchecked, "nothing, if nobody else uses this machine")
	case len(loose) == 0:
		d.ok("files", "the key and what else is private are this user's alone")
	}
}

// checkCertificate reports whether others admit this node.
func (k *doctor) checkCertificate(d *diagnosis) (member bool) {
	leaf := k.wallet.Chain().Leaf()
	if err := k.wallet.Standing(); err != nil {
		mend := "no partner admits this node any more: ask a partner that may invite for an invitation, and join again with a fresh folder"
		switch now := k.clock.Now().Wall.UTC(); {
		case errors.Is(err, trust.ErrNotYet):
			mend = fmt.Sprintf("this clock says %s: set it, and nothing else is needed", now.Format(time.RFC3339))
		case errors.Is(err, trust.ErrExpired):
			mend = fmt.Sprintf("this clock says %s. If that is wrong, set it, and nothing else is needed; else ",
				now.Format(time.RFC3339)) + mend
		}
		d.wrong("certificate", k.people.say(err), mend)
		return false
	}
	if certificates.NearEnd(leaf, k.clock.Now().Wall) {
		d.warn("certificate", fmt.Sprintf("ends at %s", leaf.NotAfter),
			fmt.Sprintf("it is renewed as soon as %s or the founder is in contact", k.people.label(leaf.Issuer)))
		return true
	}
	d.ok("certificate", "valid until %s", leaf.NotAfter)
	return true
}

func (k *doctor) checkPartners(d *diagnosis, partners []membership.Partner) {
	var stale []string
	for _, p := range partners {
		if p.State == membership.Expired {
			stale = append(stale, k.people.label(p.Record.Partner))
		}
	}
	slices.Sort(stale)
	if len(stale) > 0 {
		d.warn("partners", "expired: "+strings.Join(stale, ", "),
			"their unfinished work counts as failed; one that will not come back can be evicted: mutirao evict PARTNER")
		return
	}
	d.ok("partners", "%d known, none expired", len(partners))
}

func (k *doctor) checkProfile(d *diagnosis) {
	missing := slices.DeleteFunc(k.own.Announced(), func(app workflow.ApplicationName) bool {
		return k.parts.Runner.Has(app) || !k.seen(app).IsZero()
	})
	if len(missing) > 0 {
		d.warn("profile", "announces what no worker has come for since the node started: "+
			strings.Join(texts(missing), ", "),
			"start a worker for it, add it to applications in config.yaml, or take it back: mutirao profile set --application …")
		return
	}
	if k.parts.Unfit != nil {
		if unfit := k.parts.Unfit(); len(unfit) > 0 {
			d.warn("profile", "cannot run what it announces: "+strings.Join(unfit, "; "),
				"install it, or mend applications in config.yaml and start the node again; until then its tasks fail here")
			return
		}
	}
	d.ok("profile", "what it announces can be run here")
}

// checkDatabases tries those that this node announces.
func (k *doctor) checkDatabases(ctx context.Context, d *diagnosis) {
	if k.parts.Unasked == nil || len(k.parts.Config.Databases) == 0 {
		return
	}
	if unasked := k.parts.Unasked(ctx); len(unasked) > 0 {
		d.warn("databases", "cannot ask what it announces: "+strings.Join(unasked, "; "), MendDatabases)
		return
	}
	d.ok("databases", "%d announced, all of them answer", len(k.parts.Config.Databases))
}

// MendDatabases is what to do about databases that cannot be asked.
const MendDatabases = "see that it runs and can be reached from here, or mend databases in config.yaml and " +
	"start the node again; until then tasks that ask it fail here"

func (k *doctor) checkElectorate(ctx context.Context, d *diagnosis) error {
	e, err := k.elections.Electorate()
	if err != nil {
		return err
	}
	can, left := 0, 0 // those who can vote now; and those who may, once they are in reach
	var evicted []string
	for _, v := range e.Voters {
		if v.State == string(membership.Evicted) {
			evicted = append(evicted, v.Name)
		}
		if v.ID == k.member.ID() && !v.Current {
			d.warn("electorate", "this node has no vote: its store was lost or restored since it was named",
				"have the electorate set again, with this node in it: mutirao coordinator electorate --set …")
		}
		if v.Current {
			left++
		}
		if v.Current && v.State == string(membership.Active) {
			can++
		}
	}
	if len(evicted) > 0 {
		how := ""
		if left < e.Majority {
			how = " --override, on the founder: too few of the others are left for a majority"
		}
		d.warn("electorate", fmt.Sprintf("evicted, and still counted among those who may vote: %s",
			strings.Join(evicted, ", ")),
			"have the electorate set again, without them: mutirao coordinator electorate --set …"+how)
	}
	switch {
	case e.Number == 0:
		d.warn("electorate", "this node does not know yet who may vote", "it learns it from any partner on contact")
	case can < e.Majority:
		d.warn("electorate", fmt.Sprintf("%d of %d voters can vote, %d are needed to elect a coordinator", can,
			len(e.Voters), e.Majority),
			"wait for them, or let the founder set another electorate: mutirao coordinator electorate --set … --override. Work goes on without a coordinator")
	default:
		d.ok("electorate", "%d of %d voters can vote, %d are needed", can, len(e.Voters), e.Majority)
	}
	return nil
}
