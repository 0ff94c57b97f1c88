package assemble

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/internal/private"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/node"
	"github.com/mutirao-mesh/mutirao/node/api"
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
	if errors.Is(err, node.ErrNoMember) {
		return nil, err
	}
	if left, err := store.Holds(filepath.Join(dir, storeFolder), node.LeftKey()); err == nil && left {
		add(api.FindingWrong, "running", "the node in "+dir+" left its mesh for good: it does not start again",
			"join again with an empty folder and a new invitation; this one can be deleted, or kept to look at")
	} else {
		add(api.FindingWrong, "running", "no node is running in "+dir, "start it: mutirao up --dir "+dir)
	}
	cfg, badly := configs.Load(dir)
	var mistakes *configs.Error
	switch {
	case errors.As(badly, &mistakes):
		for line := range strings.Lines(mistakes.Error()) {
			add(api.FindingWrong, "config", strings.TrimSpace(line), "mend it in an editor; the node does not start before")
		}
	case badly != nil:
		add(api.FindingWrong, "config", badly.Error(), "see who may read it; the node does not start before")
	default:
		examineConfig(add, dir, cfg)
	}
	h := &Host{dir: dir, cfg: cfg}
	loose := h.loose()
	for _, l := range loose {
		add(api.FindingWrong, "files", l.Error(), l.Mend+"; the node does not start before")
	}
	var already *private.LooseError
	switch {
	case errors.As(err, &already): // it is among the files
	case err != nil:
		add(api.FindingWrong, "member", err.Error(), "the node does not start before")
	default:
		examineMember(add, member)
	}
	examineStore(add, dir)
	if len(loose) == 0 && private.Unchecked == "" {
		add(api.FindingOK, "files", "the key and what else is private are this user's alone", "")
	}
	if free, total, err := diskSpace(dir); err == nil {
		state, mend := api.FindingOK, ""
		if free < node.ScarceSpace {
			state, mend = api.FindingWarning, "make room on the disk of the node's folder"
		}
		add(state, "disk", fmt.Sprintf("%d MiB of %d MiB are free", free>>20, total>>20), mend)
	}
	return &api.Diagnosis{Findings: out}, nil
}

// finding takes one thing that was found.
type finding func(state, check, what, mend string)

// examineConfig looks at what a configuration without mistakes asks of this machine.
func examineConfig(add finding, dir string, cfg configs.Config) {
	var err error
	if h := (&Host{dir: dir, cfg: cfg}); cfg.TLS.Certificate != "" {
		_, err = tls.LoadX509KeyPair(h.file(cfg.TLS.Certificate), h.file(cfg.TLS.Key))
	}
	if err != nil {
		add(api.FindingWrong, "config", "the API's certificate cannot be used: "+err.Error(),
			"tls in config.yaml names two PEM files, a certificate and its key; the node does not start before")
	} else {
		add(api.FindingOK, "config", "it can be used", "")
	}
	if unfit := runner.Unfit(cfg.Applications, dir); len(unfit) > 0 {
		add(api.FindingWarning, "profile", "cannot run what it announces: "+strings.Join(unfit, "; "), "install it, or mend applications in config.yaml")
	}
	if strings.HasPrefix(cfg.API, "unix:") {
		return
	}
	if host, port, err := net.SplitHostPort(cfg.API); err == nil && port != "0" {
		if l, err := net.Listen("tcp", net.JoinHostPort(host, port)); err == nil {
			_ = l.Close() // nothing came
		} else if errors.Is(err, syscall.EADDRINUSE) {
			add(api.FindingWrong, "ports", fmt.Sprintf("port %s of %s, for the API, is taken by another program", port, host), "end that, or choose another under api in config.yaml")
		} else {
			add(api.FindingWrong, "ports", fmt.Sprintf("the API cannot be served at %s: %v", cfg.API, err), "choose another address under api in config.yaml")
		}
	}
}

// examineMember judges the certificate by this machine's clock.
func examineMember(add finding, m node.Member) {
	leaf, now := m.Chain.Leaf(), node.NewSystemClock().Now().Wall
	err := m.Chain.Verify(m.Mesh, now, nil)
	if errors.Is(err, trust.ErrExpired) {
		add(api.FindingWarning, "member", "the certificate that it joined with has run out: "+err.Error(), "start it: if the certificate was renewed, the store has the new one; else doctor says then what to do")
		return
	}
	if err != nil {
		add(api.FindingWrong, "member", err.Error(), "no partner admits this node as it is: set the clock if it is wrong, else ask for an invitation and join again with a fresh folder")
		return
	}
	add(api.FindingOK, "member", fmt.Sprintf("%s of mesh %s, with a certificate until %s", leaf.Name, m.Mesh.Name, leaf.NotAfter), "")
}

// examineStore reads all files of the store.
func examineStore(add finding, dir string) {
	wrong, err := store.Examine(filepath.Join(dir, storeFolder))
	var locked *store.LockedError
	switch {
	case errors.As(err, &locked):
		add(api.FindingWarning, "store", fmt.Sprintf("a node is starting or stopping here just now: process %d has the store", locked.PID), "ask again in a moment")
	case err != nil:
		add(api.FindingWrong, "store", err.Error(), "look at the disk of the node's folder")
	case len(wrong) > 0:
		add(api.FindingWrong, "store", "damaged: "+strings.Join(wrong, "; "),
			"start the node: it saves what can be read, and partners bring back what they have; then look at the disk, which may be failing")
	case !there(dir, storeFolder) && there(dir, meshPorts):
		add(api.FindingWarning, "store", "it is gone: the node has run here, and what it did is no longer known",
			"start the node, and partners bring back what they have; an old copy of the folder makes it worse")
	case !there(dir, storeFolder):
		add(api.FindingOK, "store", "there is none yet: the node makes it when it starts", "")
	default:
		add(api.FindingOK, "store", "all of its files can be read", "")
	}
}

// there reports whether a folder has something under a name.
func there(dir, name string) bool {
	_, err := os.Lstat(filepath.Join(dir, name))
	return err == nil
}
