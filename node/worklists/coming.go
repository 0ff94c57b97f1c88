package worklists

import (
	"slices"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/users"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist"
	"github.com/mutirao-mesh/mutirao/worklist/device"
)

// coming says which files of an item that a user has are not here yet, how long they take over the links as they are,
// and what is best done about that; nil: all is here, or the user does not have the item.
func (d *Desk) coming(who users.Who, r *Row, s *Sheet) *api.Coming {
	var out api.Coming
	var from []workflow.PartnerID
	var lacking []workflow.File
	var missing []Content
	files, _ := d.readable(s.contents(who, r))
	for _, c := range files {
		if d.in.Has(c.File) {
			continue
		}
		if !slices.Contains(lacking, c.File) { // two data may be one file
			lacking, missing = append(lacking, c.File), append(missing, c)
			out.Bytes += d.in.Lacks(c.File)
		}
		for _, p := range append([]workflow.PartnerID{c.At}, c.Givers...) {
			if !slices.Contains(from, p) {
				from = append(from, p)
			}
		}
	}
	if out.Files = len(lacking); out.Files == 0 {
		return nil
	}
	out.Reachable = slices.ContainsFunc(from, d.in.Peers.Up)
	out.Rate, out.NoRoom = d.in.Rate(from), d.in.NoRoom(missing)
	takes, prefetch := device.Takes(out.Bytes, out.Rate), d.settingOf(who)
	advice := device.Advise(device.Link{
		Reachable: out.Reachable, NoRoom: out.NoRoom > 0, Takes: takes, Locked: r.Mine == worklist.Lock,
		Offline: r.Offline, Prefetches: prefetch.On,
	})
	if advice == device.Coming && prefetch.AtMost > 0 && prefetch.AtMost < out.Rate {
		out.AtMost = prefetch.AtMost
		takes = device.Takes(out.Bytes, out.AtMost)
	}
	if takes > 0 && out.NoRoom == 0 {
		out.Takes = takes.String()
	}
	out.Advice = string(advice)
	return &out
}
