package worklists

import (
	"bytes"
	"context"
	"slices"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/codec"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/node/users"
	"github.com/mutirao-mesh/mutirao/workflow"
	"github.com/mutirao-mesh/mutirao/worklist/own"
)

// This file keeps whether the files of a user's items come before they are needed, and says
// which those are.

// PrefixSetting begins the keys of what users set for their lists: the whole ID follows.
const PrefixSetting = 'j'

// setting is what a user set.
type setting struct {
	_        struct{} `cbor:",toarray"`
	Prefetch bool
	AtMost   int64 // bytes a second; 0: all that the link gives
	Count    uint64
	By       string
}

// settingBefore is setting as versions before this one wrote it, which told nobody.
type settingBefore struct {
	_        struct{} `cbor:",toarray"`
	Prefetch bool
	AtMost   int64
}

// DecodesSetting returns an error for what cannot be read of the store.
func DecodesSetting(b []byte) error {
	_, err := readSetting(b, "")
	return err
}

// readSetting reads what a user set. What has no count yet was set on this device.
func readSetting(b []byte, self workflow.PartnerID) (own.Switch, error) {
	var s setting
	if err := codec.Decode(b, &s); err != nil {
		var before settingBefore
		if codec.Decode(b, &before) != nil {
			return own.Switch{}, err
		}
		s = setting{Prefetch: before.Prefetch, AtMost: before.AtMost, Count: 1, By: string(self)}
	}
	return own.Switch{On: s.Prefetch, AtMost: s.AtMost, Count: s.Count, By: workflow.PartnerID(s.By)}, nil
}

func writeSetting(user string, s own.Switch) kv.Write {
	return kv.Write{Key: settingKey(user), Value: codec.Encode(setting{
		Prefetch: s.On, AtMost: s.AtMost, Count: s.Count, By: string(s.By),
	})}
}

func settingKey(user string) []byte { return append([]byte{PrefixSetting}, user...) }

// loadSettings reads what users set.
func (d *Desk) loadSettings() error {
	return d.in.Store.Scan([]byte{PrefixSetting}, func(key, value []byte) error {
		s, err := readSetting(value, d.in.Self)
		if err != nil {
			return err
		}
		d.settings[string(bytes.Clone(key[1:]))] = s
		return nil
	})
}

func (d *Desk) settingOf(who users.Who) own.Switch {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.settings[who.ID]
}

// Prefetches reports whether anybody wants files before they are needed.
func (d *Desk) Prefetches() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.settings {
		if s.On {
			return true
		}
	}
	return false
}

// SetPrefetch sets whether files come before they are needed, for a user. It returns when that is durable.
func (d *Desk) SetPrefetch(ctx context.Context, r api.PrefetchRequest) (*api.Prefetch, error) {
	who, err := d.in.People.Who(r.User)
	if err != nil {
		return nil, err
	}
	if r.AtMost < 0 {
		return nil, api.Errorf(api.Invalid, "at most %d bytes a second: want 0 (all that the link gives) or more",
			r.AtMost)
	}
	d.mu.Lock()
	next := own.State{Prefetch: d.settings[who.ID]}
	next.Set(r.On, r.AtMost, d.in.Self)
	if err = d.in.Store.CommitWait([]kv.Write{writeSetting(who.ID, next.Prefetch)}); err == nil {
		d.settings[who.ID] = next.Prefetch
		d.follow.changed(who.ID)
	}
	d.mu.Unlock()
	if err != nil {
		return nil, err
	}
	d.in.Nudge()
	return d.prefetchOf(ctx, who)
}

// Prefetch says what comes before it is needed, for a user.
func (d *Desk) Prefetch(ctx context.Context, ref string) (*api.Prefetch, error) {
	who, err := d.in.People.Who(ref)
	if err != nil {
		return nil, err
	}
	return d.prefetchOf(ctx, who)
}

func (d *Desk) prefetchOf(ctx context.Context, who users.Who) (*api.Prefetch, error) {
	s := d.settingOf(who)
	out := &api.Prefetch{User: who.Name, On: s.On, AtMost: s.AtMost, Items: []api.Item{}}
	all, err := d.ahead(ctx, who)
	counted := map[workflow.File]bool{}
	var missing []Content
	for _, a := range all {
		out.Items = append(out.Items, a.Item)
		for _, c := range a.Files {
			if !counted[c.File] && !d.in.Has(c.File) { // several items may need one
				out.Volume += d.in.Lacks(c.File)
				missing = append(missing, c)
			}
			counted[c.File] = true
		}
	}
	out.NoRoom = d.in.NoRoom(missing)
	return out, err
}

// ahead are the items of a user whose files come before they are needed: those that may be
// done out of reach, locked ones first, and else in the order of the list.
func (d *Desk) ahead(ctx context.Context, who users.Who) ([]Along, error) {
	all, err := d.alongOf(ctx, who)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(a Along) bool { return !a.Item.Offline })
	slices.SortStableFunc(all, func(a, b Along) int {
		switch {
		case a.Locked == b.Locked:
			return 0
		case a.Locked:
			return -1
		}
		return 1
	})
	return all, nil
}

// Ahead are the files that are to come before they are needed and are not here, in the order in
// which they are fetched.
func (d *Desk) Ahead(ctx context.Context) (out []Content, err error) {
	for _, who := range d.in.People.Here() {
		s := d.settingOf(who)
		if !s.On {
			continue
		}
		all, err := d.ahead(ctx, who)
		if err != nil {
			return nil, err
		}
		for _, a := range all {
			for _, c := range a.Files {
				if c.AtMost = s.AtMost; !d.in.Has(c.File) {
					out = append(out, c)
				}
			}
		}
	}
	return out, nil
}

// needed remembers what items need, since of those that are not locked nothing is kept.
func (d *Desk) needed(who users.Who, of []Along) {
	needs := map[string][]workflow.File{}
	for _, a := range of {
		files := []workflow.File{}
		for _, c := range a.Files {
			files = append(files, c.File)
		}
		needs[a.Item.ID] = files
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.needs[who.ID] = needs
}
