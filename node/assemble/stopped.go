package assemble

import (
	"errors"
	"fmt"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/internal/private"
	"github.com/mutirao-mesh/mutirao/node"
	"github.com/mutirao-mesh/mutirao/node/api"
)

// Examine looks at the folder of a node that does not run, and changes nothing there:
// what would keep the node from starting. An error wraps node.ErrNoMember where the
// folder is no node's. The store is read when the node starts, not before: to read it
// is to repair it.
func Examine(dir string) (*api.Diagnosis, error) {
	var out []api.Finding
	add := func(state, check, what, mend string) {
		out = append(out, api.Finding{Check: check, State: state, What: what, Mend: mend})
	}
	member, err := node.LoadMember(dir)
	if errors.Is(err, node.ErrNoMember) {
		return nil, err
	}
	add(api.FindingWrong, "running", "no node is running in "+dir, "start it: mutirao up --dir "+dir+"; it reads its whole store then, and says what is damaged")
	cfg, badly := configs.Load(dir)
	if badly != nil {
		add(api.FindingWrong, "config", badly.Error(), "mend it in an editor; the node does not start before")
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
		add(api.FindingOK, "member", fmt.Sprintf("%s of mesh %s, with a certificate until %s", member.Chain.Leaf().Name, member.Mesh.Name, member.Chain.Leaf().NotAfter), "")
	}
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
