package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/assignment"
	"github.com/mutirao-mesh/mutirao/node/datasets"
	"github.com/mutirao-mesh/mutirao/node/files"
	"github.com/mutirao-mesh/mutirao/node/index"
	"github.com/mutirao-mesh/mutirao/node/library"
	"github.com/mutirao-mesh/mutirao/node/overview"
	"github.com/mutirao-mesh/mutirao/node/worklists"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
)

// filing is what instances have to do with files: who may read them, where their content
// may be, and that it comes here when a task needs it.
type filing struct {
	*contacts
	*crew
	index       *index.List
	people      *people
	partners    *assignment.Partners
	definitions kept
	shown       shown
	files       *files.Topic // nil: this node keeps no files
	data        *datasets.Topic
	// mayAsk returns an error if a user is not at a partner's node.
	mayAsk func(user string, from workflow.PartnerID) error
	// keeps reports whether an item of an instance is kept here for when it is out of reach.
	keeps func(workflow.InstanceID) bool
}

// kept are the definitions that are here.
type kept interface {
	Get(workflow.Hash) (*library.Definition, error)
}

// shown are instances as a user names them: look looks at one here, onlyThere says why it
// cannot at one elsewhere.
type shown interface {
	look(ctx context.Context, ref string, here func(*held), there func([]overview.Account) error) error
	onlyThere([]overview.Account) error
}

var errNoFiles = api.Errorf(api.Refused, "this node keeps no files")

// initiator is who began an instance, as files.Store counts: empty for this node.
func (k *filing) initiator(by workflow.PartnerID) workflow.PartnerID {
	if by == k.member.ID() {
		return ""
	}
	return by
}

// MayRead implements files.Instances.
func (k *filing) MayRead(
	ctx context.Context, from workflow.PartnerID, user string,
	id workflow.InstanceID, item workflow.DataName, f workflow.File,
) error {
	if _, here := k.index.Get(id); !here {
		return files.ErrNotHere
	}
	var denied error
	err := k.peek(ctx, id, func(h *held) { denied = k.mayRead(h, from, user, item, f) })
	if err != nil {
		k.log.Warn("a partner asks for a file of an instance that cannot be read", "from", from, "instance", id,
			"error", err)
		return errors.New("cannot read this instance now")
	}
	return denied
}

// mayRead is MayRead of an instance in memory.
func (k *filing) mayRead(h *held, from workflow.PartnerID, user string, item workflow.DataName, f workflow.File) error {
	d := declared(h.def.Def, item)
	if d == nil || d.Type != workflow.TypeFile {
		return fmt.Errorf("workflow %s has no file %s", h.def.Def.Name, item)
	}
	by := h.m.GivenBy(item, f.String())
	switch {
	case len(by) == 0:
		return files.ErrNotHere // as far as is known here
	case from == h.sum.By:
		return nil
	case len(d.Readers) > 0:
		if k.data.MayRead(from, d.Readers) || k.userMayRead(from, user, d.Readers) {
			return nil
		}
		return fmt.Errorf("only %s may read file %s", strings.Join(d.Readers, ", "), item)
	case h.m.Reads(from, item, func(r workflow.RoleName) bool { return k.partners.HasRole(from, r) }),
		k.userHas(h, from, user, item):
		return nil
	}
	return fmt.Errorf("only those who have a task that reads file %s may read it", item)
}

// userMayRead reports whether a user at a partner's node is among the readers of a file, by a role.
func (k *filing) userMayRead(from workflow.PartnerID, user string, readers []string) bool {
	if user == "" || k.mayAsk(user, from) != nil {
		return false
	}
	who, known := k.partners.Person(worklist.User(user))
	return known && slices.ContainsFunc(readers, func(r string) bool {
		return r == k.partners.Called(who.User) || slices.Contains(who.Roles, workflow.RoleName(r))
	})
}

// userHas reports whether a user at a partner's node has an item whose task reads a file.
func (k *filing) userHas(h *held, from workflow.PartnerID, user string, item workflow.DataName) bool {
	if user == "" || k.mayAsk(user, from) != nil {
		return false
	}
	for _, v := range h.m.ItemsFor(worklist.User(user)) {
		if v.Holder == worklist.User(user) && slices.Contains(v.Task.In, item) {
			return true
		}
	}
	return false
}

// Here implements files.Instances.
func (k *filing) Here(instance string) bool {
	id, err := workflow.ParseInstanceID(instance)
	if err != nil {
		return false
	}
	_, here := k.index.Get(id)
	return here || k.keeps(id)
}

// given notes that an instance has files, which must be here: they were given at this node, or,
// if not ownUser, are only named by somebody elsewhere: then nobody is given them for that.
func (k *filing) given(
	def *workflow.Definition, id string, by workflow.PartnerID, values map[workflow.DataName]workflow.Value,
	ownUser bool,
) error {

	for name, v := range values {
		d := declared(def, name)
		if d == nil || d.Type != workflow.TypeFile || v == nil {
			continue
		}
		f, err := workflow.ParseFile(fmt.Sprint(v))
		switch {
		case err != nil:
			return api.Errorf(api.Invalid, "%s: %v", name, err)
		case k.files == nil:
			return errNoFiles
		}
		if _, here := k.files.Path(f); !here {
			return api.Errorf(api.Refused, "%s: the content of file %s is not at this node", name, f.Name).
				WithHint("give the file itself: --file %s=PATH", name)
		}
		note := k.files.Use
		if ownUser {
			note = k.files.Give
		}
		if err := note(f, id, string(k.initiator(by)), k.clock.Now().Wall); err != nil {
			return api.Errorf(api.Refused, "%s: %v", name, err)
		}
		if _, here := k.files.Path(f); !here { // it was swept in between
			return api.Errorf(api.Refused, "%s: the content of file %s is not at this node any more", name, f.Name)
		}
	}
	return nil
}

// want is a file that an instance here has among its data.
func (k *filing) want(
	id workflow.InstanceID, by workflow.PartnerID, item workflow.DataName, f workflow.File,
) files.Want {
	return files.Want{
		File: f, Instance: id, Item: item, By: k.initiator(by),
		From: func(ctx context.Context) (out []workflow.PartnerID, err error) {
			if _, here := k.index.Get(id); !here {
				return nil, files.ErrNotWanted
			}
			err = k.peek(ctx, id, func(h *held) { out = k.sources(h, item, f) })
			return out, err
		},
	}
}

// sources are the partners that could have a file: first those that gave it, then the others
// that take part. It goes through the partner list and not through those who take part, of
// whom an instance can name any number.
func (k *filing) sources(h *held, item workflow.DataName, f workflow.File) (out []workflow.PartnerID) {
	seen := map[workflow.PartnerID]bool{k.member.ID(): true}
	for _, p := range h.m.GivenBy(item, f.String()) {
		if !seen[p] { // also one that is not on the partner list yet: nobody has said that it is gone
			seen[p], out = true, append(out, p)
		}
	}
	for _, p := range k.people.All() {
		if id := p.Record.Partner; !seen[id] && h.m.Participates(id) {
			seen[id], out = true, append(out, id)
		}
	}
	return out
}

// fetchAhead has the files come here that tasks at this node are about to read. The
// instance's owner calls it after each change of one that has files.
func (k *filing) fetchAhead(h *held) {
	id, by := h.m.Instance(), k.initiator(h.sum.By)
	if !k.files.Look(id, by) {
		return
	}
	reads := h.m.FilesToRead()
	refs := make([]files.Ref, len(reads))
	for i, r := range reads {
		refs[i] = files.Ref{Item: r.Item, File: r.File}
	}
	k.files.Ahead(id, by, refs, func(r files.Ref) files.Want { return k.want(id, by, r.Item, r.File) })
}

// again looks at an instance for files that its tasks are about to read.
func (k *filing) again(ctx context.Context, id workflow.InstanceID) {
	err := k.visit(ctx, id, k.fetchAhead)
	if _, here := k.index.Get(id); err != nil && !here {
		k.files.Ahead(id, "", nil, nil)
	}
}

// untilStopped is a context that ends when the node stops.
func (k *filing) untilStopped() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		select {
		case <-k.stopped:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// shownFiles are the files of instances for those who show them.
type shownFiles struct{ *filing }

func (x shownFiles) Concerns(def *workflow.Definition) bool { return x.concerns(def) }

func (x shownFiles) Waits(id workflow.InstanceID, f workflow.File) string {
	return x.files.Waits(id, f)
}

func (x shownFiles) Lost(id workflow.InstanceID, f workflow.File) (why string, at time.Time, lost bool) {
	if is := x.files.Lost(id, f); is != nil {
		return is.Why, is.At, true
	}
	return "", time.Time{}, false
}

// concerns reports whether this node keeps files and a definition has some among its data.
func (k *filing) concerns(def *workflow.Definition) bool { return k.files != nil && hasFiles(def) }

// hasFiles reports whether a definition has data that are files.
func hasFiles(def *workflow.Definition) bool {
	return slices.ContainsFunc(def.Data, func(d workflow.DataDecl) bool { return d.Type == workflow.TypeFile })
}

func (k *filing) put(ctx context.Context, name string, content io.Reader) (*api.File, error) {
	if k.files == nil {
		return nil, errNoFiles
	}
	f, err := k.files.Put(ctx, name, content, k.clock.Now().Wall)
	if err != nil {
		return nil, api.Errorf(api.Refused, "file %s is not kept: %v", name, err)
	}
	return &api.File{Name: f.Name, Size: f.Size, Value: f.String()}, nil
}

// describe shows a file that is among an instance's data.
func (k *filing) describe(h *held, item workflow.DataName, value string) *api.File {
	f, err := workflow.ParseFile(value)
	if err != nil {
		return nil
	}
	out := &api.File{Name: f.Name, Size: f.Size, Value: value}
	if k.files == nil {
		return out
	}
	_, out.Here = k.files.Path(f)
	if _, words, waited := k.files.Progress(f); waited {
		out.Waits = words
	}
	if by := h.m.GivenBy(item, value); out.Here && slices.Contains(by, k.member.ID()) && len(by) == 1 {
		out.OnlyHere = len(k.files.GivenTo(f)) == 0 && len(h.m.Participants()) > 1
	}
	return out
}

func (k *filing) get(ctx context.Context, ref string, item workflow.DataName) (*api.File, io.ReadCloser, error) {
	f, w, err := k.wanted(ctx, ref, item)
	if err != nil {
		return nil, nil, err
	}
	r, err := k.read(ctx, f, w)
	if err != nil {
		return nil, nil, err
	}
	return &api.File{Name: f.Name, Size: f.Size, Value: f.String(), Here: true}, r, nil
}

// await waits for a file until ctx ends, and says then what it was waited for.
func (k *filing) await(ctx context.Context, f workflow.File, w files.Want) error {
	w.Asked = true
	return k.awaited(ctx, f, k.files.Fetch(ctx, w))
}

// awaited says how waiting for a file ended, until ctx did.
func (k *filing) awaited(ctx context.Context, f workflow.File, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() == nil:
		return api.Judge(api.Refused, err)
	}
	return api.Errorf(api.NoNode, "file %s is not here yet: %v", f.Name, err).
		WithHint("try again when the partner that gave it can be reached, or with a longer --wait")
}

// wanted is the file that a data item of an instance is now, if this node may read it.
func (k *filing) wanted(
	ctx context.Context, ref string, item workflow.DataName,
) (f workflow.File, w files.Want, err error) {
	if k.files == nil {
		return f, w, errNoFiles
	}
	var problem error
	err = k.shown.look(ctx, ref, func(h *held) {
		d, v := declared(h.def.Def, item), h.m.ValueOf(item)
		switch {
		case d == nil:
			problem = noData(api.NotFound, h.def.Def, string(item))
		case d.Type != workflow.TypeFile:
			problem = api.Errorf(api.Invalid, "%s is no file but %s", item, d.Type)
		case v == nil:
			problem = api.Errorf(api.NotFound, "nobody has given file %s yet", item)
		default:
			if f, problem = workflow.ParseFile(fmt.Sprint(v)); problem == nil {
				problem = k.mayRead(h, k.member.ID(), "", item, f)
			}
			w = k.want(h.m.Instance(), h.sum.By, item, f)
		}
	}, k.shown.onlyThere)
	if err == nil && problem != nil && !errors.As(problem, new(*api.Error)) {
		problem = api.Judge(api.NotAllowed, problem)
	}
	return f, w, errors.Join(err, problem)
}

// payer is in whose share a file is that an item of this node's user needs, as files.Store
// counts: that of who began the instance, and where this node takes no part in it, its holder's.
func (k *filing) payer(c worklists.Content) workflow.PartnerID {
	if sum, here := k.index.Get(c.Instance); here {
		return k.initiator(sum.By)
	}
	return c.At
}

// fetchContent has a file come that an item needs which a user of this node has.
func (k *filing) fetchContent(ctx context.Context, c worklists.Content) error {
	if k.files == nil {
		return errNoFiles
	}
	return k.files.Fetch(ctx, k.contentWant(c))
}

// contentWant is what has such a file come.
func (k *filing) contentWant(c worklists.Content) files.Want {
	w := files.Want{
		File: c.File, Instance: c.Instance, Item: c.Name, User: c.User, By: k.payer(c), AtMost: c.AtMost,
		From: func(context.Context) ([]workflow.PartnerID, error) {
			return slices.DeleteFunc(slices.Concat([]workflow.PartnerID{c.At}, c.Givers),
				func(p workflow.PartnerID) bool { return p == k.member.ID() }), nil
		},
	}
	if sum, here := k.index.Get(c.Instance); here {
		w = k.want(c.Instance, sum.By, c.Name, c.File)
		w.User, w.AtMost = c.User, c.AtMost
	}
	return w
}

// needed is how many bytes the files have that a task reads, as far as they were given, and
// whether all of them are here.
func (k *filing) needed(h *held, t *workflow.Task) (size int64, here bool) {
	here = true
	if len(t.In) == 0 || !hasFiles(h.def.Def) {
		return 0, true
	}
	for _, name := range t.In {
		v := h.m.ValueOf(name)
		if d := declared(h.def.Def, name); v == nil || d == nil || d.Type != workflow.TypeFile {
			continue
		}
		f, err := workflow.ParseFile(fmt.Sprint(v))
		if err != nil {
			continue
		}
		size += f.Size
		here = here && k.has(f)
	}
	return size, here
}

// has reports whether all of a file is here.
func (k *filing) has(f workflow.File) bool {
	if k.files == nil {
		return false
	}
	_, here := k.files.Path(f)
	return here
}

// rateFrom is how many bytes a second of files came lately from a partner; 0: none did.
func (k *filing) rateFrom(p workflow.PartnerID) int64 {
	if k.files == nil {
		return 0
	}
	return k.files.RateFrom(p)
}

// rate is how many bytes a second of files come from the quickest of these partners that is connected; where none of
// them gave any yet, as from others; 0: no file came yet.
func (k *filing) rate(from []workflow.PartnerID) (most int64) {
	if k.files == nil {
		return 0
	}
	for _, p := range from {
		if k.contacts.up(p) {
			most = max(most, k.files.RateFrom(p))
		}
	}
	return cmp.Or(most, k.files.Rate())
}

// describeData says of data that are files where their content is.
func (k *filing) describeData(data []api.Datum) {
	for i, x := range data {
		if x.Type != string(workflow.TypeFile) || x.Value == nil {
			continue
		}
		if f, err := workflow.ParseFile(fmt.Sprint(x.Value)); err == nil {
			data[i].File = &api.File{Name: f.Name, Size: f.Size, Value: f.String(), Here: k.has(f)}
		}
	}
}

// ofItem gives the content of a file that an item needs.
func (k *filing) ofItem(
	ctx context.Context, q api.ItemQuery, name string,
	find func(context.Context, api.ItemQuery, string) (worklists.Content, error),
) (*api.File, io.ReadCloser, error) {
	c, err := find(ctx, q, name)
	if err != nil {
		return nil, nil, err
	}
	if k.files == nil {
		return nil, nil, errNoFiles
	}
	r, err := k.read(ctx, c.File, k.contentWant(c))
	if err != nil {
		return nil, nil, err
	}
	return &api.File{Name: c.File.Name, Size: c.File.Size, Value: c.File.String(), Here: true}, r, nil
}

// fetchWhile is fetchContent for as long as somebody gives it. It calls comes when some of it came.
func (k *filing) fetchWhile(ctx context.Context, c worklists.Content, comes func()) error {
	if k.files == nil {
		return errNoFiles
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	before, _ := k.files.Have(c.File)
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
		case <-k.clock.After(awayStep):
			if have, _ := k.files.Have(c.File); have > before {
				comes()
			}
			if now := k.files.Stuck(c.File); now == "" {
				stuck = 0
			} else if stuck += awayStep; stuck > 2*stuckAfter {
				why = now
				cancel()
			}
		}
	}
}

// read opens the content of a file, which it has fetched if it is not here, or not as it was.
func (k *filing) read(ctx context.Context, f workflow.File, w files.Want) (io.ReadCloser, error) {
	for tries := 0; ; tries++ {
		sound, err := k.files.Sound(ctx, f, f.Size <= readFirst)
		if err == nil && !sound {
			err = k.await(ctx, f, w)
		}
		if err != nil {
			return nil, err
		}
		r, err := k.files.Reader(f)
		if err == nil || tries == mostTries || !errors.Is(err, files.ErrDamaged) && !errors.Is(err, files.ErrNotHere) {
			return r, err
		}
	}
}

const (
	// awayStep is how often a node on its way out looks whether it may go.
	awayStep = 250 * time.Millisecond
	// stuckAfter is for how long nobody gives a file before that is said.
	stuckAfter = 3 * time.Second
)

// readFirst is how long a file may be to be read as a whole before any of it is given to a
// user. Of a longer one each chunk is verified as it is given, and what is damaged breaks it off.
const readFirst = 64 << 20

// mostTries is how often a file is fetched again that the disk changes right after that.
const mostTries = 3
