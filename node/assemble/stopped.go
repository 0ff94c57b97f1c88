package assemble

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/internal/private"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/node"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/databases"
	"github.com/mutirao-mesh/mutirao/node/doctor"
	"github.com/mutirao-mesh/mutirao/node/files"
	"github.com/mutirao-mesh/mutirao/node/runner"
	"github.com/mutirao-mesh/mutirao/node/store"
)

// Examine looks at the folder of a node that does not run, and changes nothing there:
// what would keep the node from starting. An error wraps node.ErrNoMember where the
// folder is no node's.
func Examine(dir string) (*api.Diagnosis, error) {
	var out []api.Finding
	var add finding = func(state, check, what, mend string) {
		out = append(out, api.Finding{Check: check, State: state, What: what, Mend: mend})
	}
	member, err := node.LoadMember(dir)
	absent := errors.Is(err, node.ErrNoMember)
	if absent && !remains(dir) {
		return nil, err
	}
	switch {
	case absent:
		add(api.FindingWrong, "running", "no node is running in "+dir,
			"it cannot be started before its file member is back")
	case leftForGood(dir):
		add(api.FindingWrong, "running", "the node in "+dir+" left its mesh for good: it does not start again",
			"join again with an empty folder and a new invitation; this one can be deleted, or kept to look at")
	default:
		add(api.FindingWrong, "running", "no node is running in "+dir, "start it: mutirao up --dir "+private.Quote(dir))
	}
	cfg, readable := readConfig(add, dir, "the node does not start before")
	if readable {
		examineConfig(add, dir, cfg)
	}
	h := &Host{dir: dir, cfg: cfg}
	loose := h.loose()
	for _, l := range loose {
		add(api.FindingWrong, "files", l.Error(), l.Mend+"; the node does not start before")
	}
	var already *private.LooseError
	switch {
	case absent:
		add(api.FindingWrong, "member", api.MemberFile+
			" is missing: it says to which mesh this node belongs, with its certificate",
			"restore it from a backup. Where an attempt to join was interrupted, join again, with the same folder: mutirao join INVITATION; else join from an empty folder")
	case errors.As(err, &already): // it is among the files
	case err != nil:
		add(api.FindingWrong, "member", err.Error(), "the node does not start before")
	default:
		examineMember(add, member)
	}
	examineStore(add, dir)
	examineContent(add, dir)
	examineClock(add, time.Now(), landmarks(dir, member))
	if len(loose) == 0 && private.Unchecked == "" {
		add(api.FindingOK, "files", "the key and what else is private are this user's alone", "")
	}
	if err := notWritable(dir); err != nil {
		add(api.FindingWrong, "disk", fmt.Sprintf("nothing can be written into %s: %v", dir, err),
			"give this user the right to, or mount its disk for writing; the node does not start before")
	}
	if free, total, err := diskSpace(dir); err == nil {
		need, _ := store.ReserveAt(filepath.Join(dir, storeFolder),
			store.Options{Preset: presetOf(cfg)}) // 0: it is damaged, and that is said
		examineSpace(add, free, total, uint64(need))
	}
	return &api.Diagnosis{Findings: out}, nil
}

// examineSpace compares the free space of the disk, in bytes, with what the store needs to write.
func examineSpace(add finding, free, total, need uint64) {
	what := fmt.Sprintf("%d MiB of %d MiB are free", free>>20, total>>20)
	switch {
	case free < need:
		add(api.FindingWrong, "disk", fmt.Sprintf("%s, and the store writes nothing with less than %d MiB", what,
			need>>20),
			"delete something from the disk of the node's folder; the node does not start before")
	case free < doctor.ScarceSpace:
		add(api.FindingWarning, "disk", what, "make room on the disk of the node's folder")
	default:
		add(api.FindingOK, "disk", what, "")
	}
}

// presetOf is for what kind of machine the store is, by a configuration.
func presetOf(cfg configs.Config) store.Preset {
	if cfg.Store == configs.StoreSmall {
		return store.Small
	}
	return store.Default
}

// leftForGood reports whether the node of a folder, which does not run, left for good, by
// what its store says. It reads the store, which cannot be opened meanwhile.
func leftForGood(dir string) bool {
	left, err := store.Holds(filepath.Join(dir, storeFolder), node.LeftKey())
	return err == nil && left
}

// leftMark is a file that repeats for commands what the store says: they neither read that
// nor keep a node that starts from opening it. Without it they know no better, and up says so.
const leftMark = "left-for-good"

// LeftForGood reports whether the node of a folder left for good, as far as its end or a
// start has noted it.
func LeftForGood(dir string) bool { return there(dir, leftMark) }

// noteLeft notes that the node of a folder left for good.
func noteLeft(dir string) { _ = os.WriteFile(filepath.Join(dir, leftMark), nil, 0o600) } // the store has it

// remains reports whether a folder without the member file was a node's, or was to be.
func remains(dir string) bool {
	return stored(dir) || slices.ContainsFunc(node.PrivateFiles(), func(name string) bool { return there(dir, name) })
}

// finding takes one thing that was found.
type finding func(state, check, what, mend string)

// readConfig reads the configuration, and adds what is wrong with it, with what follows from that.
func readConfig(add finding, dir, follows string) (configs.Config, bool) {
	cfg, err := configs.Load(dir)
	var mistakes *configs.Error
	switch {
	case errors.As(err, &mistakes):
		for line := range strings.Lines(mistakes.Error()) {
			add(api.FindingWrong, "config", strings.TrimSpace(line), "mend it in an editor; "+follows)
		}
	case err != nil:
		add(api.FindingWrong, "config", err.Error(), "see who may read it; "+follows)
	}
	return cfg, err == nil
}

// ExamineFile looks at the configuration of a node that runs: whoever edited it since may have broken it,
// which shows at the next start only.
func ExamineFile(dir string) (out []api.Finding) {
	add := func(state, check, what, mend string) {
		out = append(out, api.Finding{State: state, Check: check, What: what, Mend: mend})
	}
	readConfig(add, dir, "the node runs by what it read when it started, and would not start again")
	return out
}

// examineConfig looks at what a configuration without mistakes asks of this machine.
func examineConfig(add finding, dir string, cfg configs.Config) {
	add(api.FindingOK, "config", "it can be used", "")
	if unfit := runner.Unfit(cfg.Applications, dir); len(unfit) > 0 {
		add(api.FindingWarning, "profile", "cannot run what it announces: "+strings.Join(unfit, "; "),
			"install it, or mend applications in config.yaml")
	}
	if unasked := databases.New(cfg.Databases, dir, nil).Unfit(context.Background()); len(unasked) > 0 {
		add(api.FindingWarning, "databases", "cannot ask what it announces: "+strings.Join(unasked, "; "),
			doctor.MendDatabases)
	}
	examineAPI(add, cfg.API)
	examineListen(add, cfg.Listen)
}

// examineAPI tries the address of the API.
func examineAPI(add finding, addr string) {
	host, port, err := net.SplitHostPort(addr)
	if strings.HasPrefix(addr, "unix:") || err != nil || port == "0" {
		return
	}
	switch err := tryListening("tcp", net.JoinHostPort(host, port)); {
	case errors.Is(err, syscall.EADDRINUSE):
		add(api.FindingWrong, "ports", fmt.Sprintf("port %s of %s, for the API, is taken by another program", port,
			host), "end that, or choose another under api in config.yaml")
	case err != nil:
		add(api.FindingWrong, "ports", fmt.Sprintf("the API cannot be served at %s: %v", addr, err),
			"choose another address under api in config.yaml")
	}
}

// examineListen tries the addresses at which partners are to reach the node. It starts
// as long as it can listen at one of them. Port 0 is any that is free.
func examineListen(add finding, addrs []string) {
	var bad []unusable
	for _, addr := range addrs {
		ma, err := multiaddr.NewMultiaddr(addr)
		if err != nil {
			continue // the configuration's own check says so
		}
		network, at, err := manet.DialArgs(ma)
		if err == nil {
			err = tryListening(network, at)
		}
		switch {
		case errors.Is(err, syscall.EADDRINUSE):
			bad = append(bad, unusable{
				addr + " is taken by another program",
				"end what has it, or choose another address under listen in config.yaml",
			})
		case errors.Is(err, syscall.EADDRNOTAVAIL):
			bad = append(bad, unusable{
				"the node cannot listen at " + addr + ": this machine has no such address",
				"under listen in config.yaml name an address of this machine, or all: /ip4/0.0.0.0/…",
			})
		case err != nil:
			bad = append(bad, unusable{
				fmt.Sprintf("the node cannot listen at %s: %v", addr, err),
				"choose another address under listen in config.yaml",
			})
		}
	}
	state, then := api.FindingWarning, "; partners reach the node by the others only"
	if len(bad) == len(addrs) {
		state, then = api.FindingWrong, "; the node does not start before"
	}
	for _, b := range bad {
		add(state, "ports", b.what, b.mend+then)
	}
}

// unusable is an address at which the node cannot listen, and what to do.
type unusable struct{ what, mend string }

// tryListening reports why this machine does not let the node listen at an address.
func tryListening(network, at string) error {
	var c io.Closer
	var err error
	if strings.HasPrefix(network, "udp") {
		c, err = net.ListenPacket(network, at)
	} else {
		c, err = net.Listen(network, at)
	}
	if err != nil {
		return err
	}
	_ = c.Close() // nothing came
	return nil
}

// examineMember judges the certificate by this machine's clock.
func examineMember(add finding, m node.Member) {
	leaf, now := m.Chain.Leaf(), node.NewSystemClock().Now().Wall
	err := m.Chain.Verify(m.Mesh, now, nil)
	if errors.Is(err, trust.ErrExpired) {
		add(api.FindingWarning, "member", "the certificate that it joined with has run out: "+err.Error(),
			"start it: if the certificate was renewed, the store has the new one; else doctor says then what to do")
		return
	}
	if err != nil {
		add(api.FindingWrong, "member", err.Error(),
			"no partner admits this node as it is: set the clock if it is wrong, else ask for an invitation and join again with a fresh folder")
		return
	}
	add(api.FindingOK, "member", fmt.Sprintf("%s of mesh %s, with a certificate until %s", leaf.Name, m.Mesh.Name,
		leaf.NotAfter), "")
}

// examineStore reads all files of the store.
func examineStore(add finding, dir string) {
	wrong, err := store.Examine(filepath.Join(dir, storeFolder))
	var locked *store.LockedError
	switch {
	case errors.As(err, &locked):
		add(api.FindingWarning, "store",
			fmt.Sprintf("a node is starting or stopping here just now: process %d has the store", locked.PID),
			"ask again in a moment")
	case err != nil:
		add(api.FindingWrong, "store", err.Error(), "look at the disk of the node's folder")
	case len(wrong) > 0:
		add(api.FindingWrong, "store", "damaged: "+strings.Join(wrong, "; "),
			"start the node: it saves what can be read, and partners bring back what they have; then look at the disk, which may be failing")
	case !stored(dir) && ran(dir):
		add(api.FindingWrong, "store", "it is gone: the node has run here, and what it did is no longer known",
			"start the node, and partners bring back what they have; what nobody else had is lost, and its vote as well until a new electorate counts it. An old copy of the folder makes it worse")
	case !stored(dir):
		add(api.FindingOK, "store", "there is none yet: the node makes it when it starts", "")
	default:
		add(api.FindingOK, "store", "all of its files can be read", "")
	}
}

// examineContent reads the content of all files that instances have.
func examineContent(add finding, dir string) {
	wrong, kept, err := files.Examine(context.Background(), filepath.Join(dir, filesFolder))
	switch {
	case errors.Is(err, fs.ErrNotExist) && ran(dir):
		add(api.FindingWrong, "content",
			"the folder "+filesFolder+" is gone, with the content of all files that instances have",
			"start the node: partners that have them are asked for what its instances name; what nobody else had is lost")
	case errors.Is(err, fs.ErrNotExist):
		add(api.FindingOK, "content", "there are no files yet", "")
	case err != nil:
		add(api.FindingWrong, "content", "the folder "+filesFolder+" cannot be read: "+err.Error(),
			"look at the disk of the node's folder")
	default:
		files.Report(add, wrong, kept)
	}
}

// OK, Warn and Wrong implement files.Findings.
func (f finding) OK(check, format string, args ...any) {
	f(api.FindingOK, check, fmt.Sprintf(format, args...), "")
}
func (f finding) Warn(check, what, mend string)  { f(api.FindingWarning, check, what, mend) }
func (f finding) Wrong(check, what, mend string) { f(api.FindingWrong, check, what, mend) }

// stored reports whether a node's folder has a store with anything in it but the lock.
func stored(dir string) bool {
	files, err := os.ReadDir(filepath.Join(dir, storeFolder))
	return err == nil && slices.ContainsFunc(files, func(f os.DirEntry) bool { return f.Name() != store.LockFile })
}

// there reports whether a folder has something under a name.
func there(dir, name string) bool {
	_, err := os.Lstat(filepath.Join(dir, name))
	return err == nil
}

// landmark is a moment that is past, by whoever said so.
type landmark struct {
	at   time.Time
	what string
}

// landmarks are what a wall clock that is right is later than: when this program was
// built, when the certificate began, and when the store was last written, by this clock.
func landmarks(dir string, m node.Member) (out []landmark) {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if at, err := time.Parse(time.RFC3339, s.Value); s.Key == "vcs.time" && err == nil {
				out = append(out, landmark{at, "the program was built from what was written"})
			}
		}
	}
	if len(m.Chain) > 0 {
		out = append(out, landmark{m.Chain.Leaf().NotBefore.Time(), "the node's certificate begins"})
	}
	if at := lastWritten(filepath.Join(dir, storeFolder)); !at.IsZero() {
		out = append(out, landmark{at, "the store was last written"})
	}
	return out
}

// lastWritten is when a file of a folder was last changed; zero: there is none.
func lastWritten(dir string) (at time.Time) {
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error { // what cannot be read says nothing
		if err != nil {
			return nil
		}
		if info, err := e.Info(); err == nil && !e.IsDir() && info.ModTime().After(at) {
			at = info.ModTime()
		}
		return nil
	})
	return at
}

// longAgo is for how long a node that is used is hardly off.
const longAgo = 366 * 24 * time.Hour

// examineClock judges the wall clock by what is past. No partner is asked: that a running
// node does.
func examineClock(add finding, now time.Time, past []landmark) {
	const mend = "set the clock: certificates and invitations end by it, and partners may refuse what the node says"
	says := "it says " + now.UTC().Format(time.RFC3339)
	var latest landmark
	for _, l := range past {
		if l.at.After(latest.at) {
			latest = l
		}
	}
	since := "and " + latest.what + " at " + latest.at.UTC().Format(time.RFC3339)
	switch {
	case latest.at.IsZero():
		add(api.FindingOK, "clock", says+", and nothing here is later", "")
	case now.Add(trust.ClockSkew).Before(latest.at):
		add(api.FindingWrong, "clock", says+", "+since+", which is later", mend)
	case now.Add(time.Minute).Before(latest.at):
		add(api.FindingWarning, "clock", says+", "+since+", which is later", mend)
	case now.Sub(latest.at) > longAgo:
		add(api.FindingWarning, "clock", says+", "+since+", more than a year before",
			"set the clock if it is wrong; nothing, if the node was off for so long")
	default:
		add(api.FindingOK, "clock", says+", "+since, "")
	}
}
