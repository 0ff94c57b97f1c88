package doctor

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/internal/private"
	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/certificates"
	"github.com/mutirao-mesh/mutirao/node/clocks"
	"github.com/mutirao-mesh/mutirao/node/files"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Doctor looks for what is wrong with a node.
type Doctor struct{ Surroundings }

// Surroundings are what a doctor asks of the rest of a node.
type Surroundings struct {
	Self    workflow.PartnerID
	Clock   interface{ Now() moment.Now }
	Config  configs.Config
	Machine Machine
	Links   Links
	Members Members
	Own     interface {
		Chain() trust.Chain
		Standing() error // why nobody would admit this node
	}
	// Announced are the applications of this node's profile, Runs those that something here
	// runs, and Seen is when a worker last came for the jobs of one.
	Announced func() []workflow.ApplicationName
	Runs      func(workflow.ApplicationName) bool
	Seen      func(workflow.ApplicationName) time.Time
	Store     Store
	// Aside are how many instances are set aside as they cannot be read, and as this program
	// failed at them; Untaken is at how many it failed that are others'.
	Aside     func() (unread, failed int)
	Untaken   func() int
	Evictions interface{ Ask(context.Context) } // why nobody lets this node in
	Elections interface {
		Electorate() (*api.Electorate, error)
	}
	Clocks interface{ Check(clocks.Findings) }
	Users  interface {
		Filling() []string
		Unfit() []string
		Twins() []string
	}
	// Late tells of instances in which partners do not take in what is here.
	Late func(warn func(check, what, mend string))
	// NotTaken says of each instance here that partners do not take in which those are, and why.
	NotTaken func(context.Context) ([]string, error)
	Away     func() (since time.Time, away bool)
	Back     func() *time.Time // when partners were told that it is back; nil: they were not
	// Files tells about the content of files; nil: this node keeps none.
	Files interface {
		Diagnose(context.Context, files.Findings)
	}
	// Alone are the files that people gave here with their results, and that no other partner has.
	Alone func(context.Context) ([]api.Undelivered, error)
	// Lost says of each file among instances' data that no task reads and that nobody has any more what people are told.
	Lost        func(context.Context) ([]string, error)
	UsersFolder string // where in a node's folder the keys of users lie
}

// Machine is the device on which a node runs. What cannot be told is nil.
type Machine struct {
	Space   func() (free, total uint64, err error)
	Reserve uint64 // bytes of the disk that must be free for the store to write
	Battery func() *api.Battery
	MayLock func() error // why no item is locked with what the battery has; nil: they are
	Bare    func() []string
	Loose   func() []*private.LooseError
	Unfit   func() []string
	Unasked func(context.Context) []string
}

// Links are the connections with members.
type Links interface {
	Addrs() []string
	Relayed() []workflow.PartnerID
	Up(workflow.PartnerID) bool
	UpPeers() []workflow.PartnerID
	// Refused tells what was refused of members lately.
	Refused(members []workflow.PartnerID, d *Diagnosis)
}

// Members is what a doctor asks of the partner list.
type Members interface {
	All() []membership.Partner
	Label(workflow.PartnerID) string
	// HeardOf reports whether others tell of signs of life of a partner.
	HeardOf(workflow.PartnerID) bool
	Say(error) string
}

// Store is what a doctor asks of the store.
type Store interface {
	// Read reads something of it, Verify all of it, and says what is wrong.
	Read() error
	Verify() error
	// Trouble is why it cannot write, RolledBack that it was put back; empty: it was not.
	Trouble() string
	RolledBack() string
	// Lost says what was lost of it.
	Lost(unread, failed int, warn, wrong func(check, what, mend string))
}

// Examine looks for what is wrong with this node and its links.
func (k *Doctor) Examine(ctx context.Context) (*api.Diagnosis, error) {
	if _, away := k.Away(); len(k.Links.UpPeers()) == 0 && !away {
		k.Evictions.Ask(ctx)
	}
	var d Diagnosis
	partners := k.Members.All()
	k.checkStore(&d)
	unread, failed := k.Aside()
	k.Store.Lost(unread, failed, d.Warn, d.Wrong)
	if n := k.Untaken(); n > 0 {
		what := "1 new instance of others since it started, and does not take it in"
		if n > 1 {
			what = fmt.Sprintf("%d new instances of others since it started, and does not take them in", n)
		}
		d.Warn("quarantine", "this program failed at "+what,
			"the node's log says where: please report it, and try a newer version")
	}
	k.checkDisk(&d)
	k.checkBattery(&d)
	k.checkFiles(&d)
	if k.Files != nil {
		k.Files.Diagnose(ctx, &d)
		k.checkAlone(ctx, &d)
		k.checkLost(ctx, &d)
	}
	member := k.checkCertificate(&d)
	k.checkAddresses(&d, partners)
	k.Clocks.Check(&d)
	k.checkProfile(&d)
	k.checkDatabases(ctx, &d)
	away := k.checkContact(&d)
	if member && !away { // else nobody talks to it, and that others seem to be gone says nothing
		k.checkLinks(&d, partners)
		k.checkPartners(&d, partners)
		if err := k.checkElectorate(ctx, &d); err != nil {
			d.Wrong("electorate", err.Error(), "mutirao status shows the trouble with the store")
		}
		k.Links.Refused(ids(partners), &d)
		k.checkUsers(&d)
		k.Late(d.Warn)
		k.checkNotTaken(ctx, &d)
	}
	healthy := !slices.ContainsFunc(d.findings, func(f api.Finding) bool { return f.State == api.FindingWrong })
	return &api.Diagnosis{Healthy: healthy, Findings: d.findings}, nil
}

// checkContact says that this node is out of contact on purpose, since whoever wonders why
// nobody is there may not be who disconnected it.
func (k *Doctor) checkContact(d *Diagnosis) (away bool) {
	since, away := k.Away()
	if away {
		what := "this node was disconnected on purpose at " + since.Format(time.RFC3339) + ", and talks to nobody"
		if back := k.Back(); back != nil && k.Clock.Now().Wall.After(*back) {
			what += "; partners were told that it is back by " + back.Format(time.RFC3339) +
				", and judge what it holds from then on"
		} else if back != nil {
			what += "; partners wait for it until about " + back.Format(time.RFC3339)
		}
		d.Warn("contact", what, "mutirao worklist reconnect")
	}
	return away
}

// checkLost names the files among the data of instances that nobody has any more.
func (k *Doctor) checkLost(ctx context.Context, d *Diagnosis) {
	list, err := k.Lost(ctx)
	if err != nil || len(list) == 0 {
		return // the store, which says what is wrong with itself
	}
	d.Warn("lost", "among the data of instances, and with nobody any more: "+someOf(list),
		"whoever has a copy of such a file gives the same content again with --file of any command at a node that takes part")
}

// checkNotTaken names the instances that partners do not take in.
func (k *Doctor) checkNotTaken(ctx context.Context, d *Diagnosis) {
	list, err := k.NotTaken(ctx)
	if err != nil || len(list) == 0 {
		return // the store, which says what is wrong with itself
	}
	d.Warn("not-taken", someOf(list), "mutirao show says it too, among the incidents; mutirao instances lists them as in need of somebody")
}

// shownAlone are named of the files that are only here, and of others of which there may be many.
const shownAlone = 4

// someOf are the first of what was found, with how many more there are.
func someOf(list []string) string {
	text := strings.Join(list[:min(len(list), shownAlone)], "; ")
	if more := len(list) - shownAlone; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

// checkAlone names the files that would be lost with this node.
func (k *Doctor) checkAlone(ctx context.Context, d *Diagnosis) {
	list, err := k.Alone(ctx)
	if err != nil || len(list) == 0 {
		return // the store, which says what is wrong with itself
	}
	names := make([]string, 0, shownAlone)
	for _, x := range list[:min(len(list), shownAlone)] {
		names = append(names, fmt.Sprintf("%s of %s (%s)", x.File, x.Instance, x.FileName))
	}
	text := strings.Join(names, ", ")
	if more := len(list) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	d.Warn("only-here", "given here with people's results, and with no other partner that may read them: "+text,
		"keep this node up until partners have fetched them; mutirao outbox says whom they wait for, and whoever may "+
			"read one fetches it with mutirao data get INSTANCE NAME")
}

func (k *Doctor) checkStore(d *Diagnosis) {
	trouble, lost := k.Store.Trouble(), k.Store.RolledBack()
	err := k.Store.Read()
	var damage error
	if err == nil {
		damage = k.Store.Verify()
	}
	switch {
	case damage != nil:
		d.Wrong("store", "the store was read and is damaged: "+damage.Error(),
			"start the node again: it saves what can be read, and partners bring back what they have; then look at the disk, which may be failing")
	case err != nil:
		d.Wrong("store", "the store cannot be read: "+err.Error(),
			"look at the disk of the node's folder; if it is lost, join again from a fresh folder: what others hold of its work goes on")
	case trouble != "":
		d.Wrong("store", "the store "+trouble,
			"make room on its disk, or repair it; the node goes on by itself as soon as it can write")
	case lost != "":
		d.Warn("store", lost, "nothing, if a backup was put back: partners give back what they hold. Else look at the disk of the node's folder: it lost what it said it had written")
	default:
		d.OK("store", "was read and takes writes")
	}
}

// The least free space of the store's disk: below ScarceSpace it is time to make room.
const (
	ScarceSpace = 512 << 20 // bytes
	noSpace     = 32 << 20  // bytes: the next batch of facts may not fit
)

func (k *Doctor) checkDisk(d *Diagnosis) {
	if k.Machine.Space == nil {
		return
	}
	reserve := k.Machine.Reserve
	free, total, err := k.Machine.Space()
	what := (&api.Disk{Free: free, Total: total}).String()
	switch {
	case err != nil:
		d.Warn("disk", "its free space cannot be told: "+err.Error(), "look at the disk of the node's folder")
	case free < reserve:
		d.Wrong("disk", fmt.Sprintf("%s, and the store writes nothing with less than %d MiB", what, reserve>>20),
			"delete something from the disk of the node's folder: until then nothing is acknowledged")
	case free < noSpace:
		d.Wrong("disk", what, "delete something from the disk of the node's folder: without space nothing is acknowledged")
	case free < ScarceSpace:
		d.Warn("disk", what, "make room on the disk of the node's folder soon")
	default:
		d.OK("disk", "%s", what)
	}
}

// battery is how full the machine's battery is; nil: nobody knows.
func (k *Doctor) battery() *api.Battery {
	if k.Machine.Battery == nil {
		return nil
	}
	return k.Machine.Battery()
}

// checkBattery reports whether items can be locked here with what the battery has.
func (k *Doctor) checkBattery(d *Diagnosis) {
	b := k.battery()
	if b == nil {
		return
	}
	if err := k.Machine.MayLock(); err != nil {
		d.Warn("battery", fmt.Sprintf("%s: nothing is locked at %d %% or less", b, k.Config.LockAbove),
			"charge it; what is locked already can be done; lock-above in config.yaml says from where on")
		return
	}
	d.OK("battery", "%s", b)
}

// checkFiles reports whether others could read or replace what is this node's.
func (k *Doctor) checkFiles(d *Diagnosis) {
	if k.Machine.Loose == nil {
		return
	}
	loose := k.Machine.Loose()
	for _, l := range loose {
		unless := "the node does not start again before"
		if filepath.Base(filepath.Dir(l.Path)) == k.UsersFolder {
			unless = "that user is not signed in here any more after a start before"
		}
		d.Wrong("files", l.Error(), l.Mend+"; "+unless+
			". If somebody may have read the key, join again from a fresh folder, and have the old one evicted")
	}
	switch {
	case private.Unchecked != "":
		d.Warn("files", private.Unchecked, "nothing, if nobody else uses this machine")
	case len(loose) == 0:
		d.OK("files", "the key and what else is private are this user's alone")
	}
}

// checkCertificate reports whether others admit this node.
func (k *Doctor) checkCertificate(d *Diagnosis) (member bool) {
	leaf := k.Own.Chain().Leaf()
	if err := k.Own.Standing(); err != nil {
		d.Wrong("certificate", k.Members.Say(err), certificates.Mend(err, k.Clock.Now().Wall))
		return false
	}
	if certificates.NearEnd(leaf, k.Clock.Now().Wall) {
		d.Warn("certificate", fmt.Sprintf("ends at %s", leaf.NotAfter),
			fmt.Sprintf("it is renewed as soon as %s or the founder is in contact", k.Members.Label(leaf.Issuer)))
		return true
	}
	d.OK("certificate", "valid until %s", leaf.NotAfter)
	return true
}

func (k *Doctor) checkPartners(d *Diagnosis, partners []membership.Partner) {
	var stale, absent []string
	for _, p := range partners {
		if p.Absent() {
			absent = append(absent, fmt.Sprintf("%s since %s, back by about %s", k.Members.Label(p.Record.Partner), p.Since,
				p.Until))
		}
		if p.State == membership.Expired {
			stale = append(stale, k.Members.Label(p.Record.Partner))
		}
	}
	slices.Sort(stale)
	if len(stale) > 0 {
		d.Warn("partners", "expired: "+strings.Join(stale, ", "),
			"their unfinished work counts as failed; one that will not come back can be evicted: mutirao evict PARTNER")
		return
	}
	slices.Sort(absent)
	if len(absent) > 0 {
		d.OK("partners", "%d known, none expired; away as announced: %s", len(partners), strings.Join(absent, "; "))
		return
	}
	d.OK("partners", "%d known, none expired", len(partners))
}

func (k *Doctor) checkProfile(d *Diagnosis) {
	missing := slices.DeleteFunc(k.Announced(), func(app workflow.ApplicationName) bool {
		return k.Runs(app) || !k.Seen(app).IsZero()
	})
	if len(missing) > 0 {
		d.Warn("profile", "announces what no worker has come for since the node started: "+
			strings.Join(names(missing), ", "),
			"start a worker for it, add it to applications in config.yaml, or take it back: mutirao profile set --application …")
		return
	}
	if k.Machine.Unfit != nil {
		if unfit := k.Machine.Unfit(); len(unfit) > 0 {
			d.Warn("profile", "cannot run what it announces: "+strings.Join(unfit, "; "),
				"install it, or mend applications in config.yaml and start the node again; until then its tasks fail here")
			return
		}
	}
	d.OK("profile", "what it announces can be run here")
}

// checkDatabases tries those that this node announces.
func (k *Doctor) checkDatabases(ctx context.Context, d *Diagnosis) {
	if k.Machine.Unasked == nil || len(k.Config.Databases) == 0 {
		return
	}
	if unasked := k.Machine.Unasked(ctx); len(unasked) > 0 {
		d.Warn("databases", "cannot ask what it announces: "+strings.Join(unasked, "; "), MendDatabases)
		return
	}
	d.OK("databases", "%d announced, all of them answer", len(k.Config.Databases))
}

// MendDatabases is what to do about databases that cannot be asked.
const MendDatabases = "see that it runs and can be reached from here, or mend databases in config.yaml and " +
	"start the node again; until then tasks that ask it fail here"

func (k *Doctor) checkElectorate(ctx context.Context, d *Diagnosis) error {
	e, err := k.Elections.Electorate()
	if err != nil {
		return err
	}
	can, left := 0, 0 // those who can vote now; and those who may, once they are in reach
	var evicted []string
	for _, v := range e.Voters {
		if v.State == string(membership.Evicted) {
			evicted = append(evicted, v.Name)
		}
		if v.ID == k.Self && !v.Current {
			d.Warn("electorate", "this node has no vote: its store was lost or restored since it was named",
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
		d.Warn("electorate", fmt.Sprintf("evicted, and still counted among those who may vote: %s",
			strings.Join(evicted, ", ")),
			"have the electorate set again, without them: mutirao coordinator electorate --set …"+how)
	}
	switch {
	case e.Number == 0:
		d.Warn("electorate", "this node does not know yet who may vote", "it learns it from any partner on contact")
	case can < e.Majority:
		d.Warn("electorate", fmt.Sprintf("%d of %d voters can vote, %d are needed to elect a coordinator", can,
			len(e.Voters), e.Majority),
			"wait for them, or let the founder set another electorate: mutirao coordinator electorate --set … --override. Work goes on without a coordinator")
	default:
		d.OK("electorate", "%d of %d voters can vote, %d are needed", can, len(e.Voters), e.Majority)
	}
	return nil
}

// checkUsers tells whose share of the records about users is nearly full, and what among
// the keys of users is none.
func (k *Doctor) checkUsers(d *Diagnosis) {
	if unfit := k.Users.Unfit(); len(unfit) > 0 {
		d.Warn("users", strings.Join(unfit, "; "),
			"look at what lies in "+k.UsersFolder+
				"/ of the node's folder, mend it or move it away, and start the node again; a user whose key it was signs in with a new token")
	}
	if twins := k.Users.Twins(); len(twins) > 0 {
		d.Warn("users", strings.Join(twins, "; ")+": two sides of a split gave that name, and each partner is a user by its own",
			"until it is mended name either by its ID; the founder or a delegate removes the user (mutirao user remove ID) "+
				"and adds it by another name (mutirao user add), as a partner keeps its name")
	}
	if full := k.Users.Filling(); len(full) > 0 {
		d.Warn("users", strings.Join(full, "; "),
			"what is removed keeps its room, so that it stays removed: have another delegate add users, or the founder")
	}
}

// ids are those of partners.
func ids(of []membership.Partner) (out []workflow.PartnerID) {
	for _, p := range of {
		out = append(out, p.Record.Partner)
	}
	return out
}

// names are those of applications.
func names(of []workflow.ApplicationName) (out []string) {
	for _, app := range of {
		out = append(out, string(app))
	}
	return out
}
