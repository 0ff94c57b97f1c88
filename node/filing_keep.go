package node

import (
	"context"
	"errors"

	"github.com/mutirao-mesh/mutirao/node/files"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
)

// mentions calls each for every file that an instance here has among its data, now or before.
// complete is false if there are instances that cannot be read.
func (k *filing) mentions(ctx context.Context, each func(files.Mention)) (complete bool) {
	complete = true
	for id, of := range k.index.Definitions() {
		if ctx.Err() != nil {
			return false
		}
		if e, err := k.definitions.Get(of); err == nil && !hasFiles(e.Def) {
			continue // it need not be read
		}
		var all []files.Mention
		err := k.peek(ctx, id, func(h *held) {
			for _, g := range h.m.FilesGiven() {
				all = append(all, files.Mention{
					File: g.File, Instance: id, Item: g.Item, By: k.initiator(h.sum.By), Gave: g.By == k.member.ID(),
				})
			}
		})
		complete = complete && (err == nil || errors.Is(err, kv.ErrNotFound)) // it was given up meanwhile
		for _, m := range all {                                               // not while the instance waits: this may write to the disk
			each(m)
		}
	}
	return complete
}

// wantAgain is what has a file come here again that an instance has.
func (k *filing) wantAgain(m files.Mention) files.Want {
	w := k.want(m.Instance, "", m.Item, m.File)
	w.By = m.By
	return w
}

// keepFiles looks after the files that are here, until the node stops.
func (k *filing) keepFiles() {
	ctx, cancel := k.untilStopped()
	defer cancel()
	k.files.Keep(ctx)
}
