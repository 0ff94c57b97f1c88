package node

import (
	"context"
	"time"

	"github.com/mutirao-mesh/mutirao/node/filing"
	"github.com/mutirao-mesh/mutirao/node/show"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file is what the rest of the node has to do with files of instances.

// filed are the instances here for their files.
type filed struct{ *desk }

func (x filed) Peek(ctx context.Context, id workflow.InstanceID, read func(*filing.Held)) error {
	return x.peek(ctx, id, func(h *held) { read(h.filed()) })
}

func (x filed) Visit(ctx context.Context, id workflow.InstanceID, do func(*filing.Held)) error {
	return x.visit(ctx, id, func(h *held) { do(h.filed()) })
}

func (x filed) Look(ctx context.Context, ref string, read func(*filing.Held)) error {
	return x.look(ctx, ref, func(h *held) { read(h.filed()) }, x.onlyThere)
}

// shownFiles are the files of instances for those who show them.
type shownFiles struct{ *filing.Desk }

func (x shownFiles) OnlyHere(h *show.Held, item workflow.DataName, f workflow.File) bool {
	return x.FileOnlyHere(&filing.Held{M: h.M, Def: h.Def}, item, f)
}

func (x shownFiles) LostData(h *show.Held) (out []show.LostFile) {
	for _, l := range x.Desk.LostData(&filing.Held{
		M: h.M, Def: h.Def, By: h.M.Genesis().Chain.Author, Ended: h.Ended,
	}) {
		out = append(out, show.LostFile{What: l.What, At: l.At})
	}
	return out
}

func (x shownFiles) Waits(h *show.Held, item workflow.DataName, f workflow.File) string {
	return x.WaitsFor(&filing.Held{M: h.M, Def: h.Def, By: h.M.Genesis().Chain.Author, Ended: h.Ended}, item, f)
}

func (x shownFiles) OnlyFor(h *show.Held, at workflow.PartnerID, item workflow.DataName, f workflow.File) []string {
	return x.Desk.OnlyFor(&filing.Held{M: h.M, Def: h.Def}, at, "", item, f.String())
}

func (x shownFiles) Lost(id workflow.InstanceID, f workflow.File) (why string, at time.Time, lost bool) {
	if is := x.Files.Lost(id, f); is != nil {
		return is.Why, is.At, true
	}
	return "", time.Time{}, false
}
