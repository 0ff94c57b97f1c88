package node_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/node"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// setClock is a wall clock that somebody sets while others read it.
type setClock struct {
	bubbleClock
	ahead atomic.Int64 // nanoseconds
}

// clockAhead is ahead of the bubble's by this, behind where it is negative.
func clockAhead(by time.Duration) *setClock {
	c := &setClock{}
	c.set(by)
	return c
}

func (c *setClock) set(ahead time.Duration) { c.ahead.Store(int64(ahead)) }

func (c *setClock) Now() moment.Now {
	now := c.bubbleClock.Now()
	now.Wall = now.Wall.Add(time.Duration(c.ahead.Load()))
	return now
}

// on gives a node this clock.
func (c *setClock) on(p *node.Parts) { p.Clock = c }

// again restarts a partner as told, at these addresses, and meet the others.
func (tm *team) again(name string, at []string, fit func(*node.Parts), meet ...string) {
	p := tm.p[name]
	p.crash()
	p.at, p.fit = at, fit
	p.start()
	for _, other := range meet {
		tm.connect(name, other)
	}
	synctest.Wait()
}

var severity = map[string]int{api.FindingOK: 1, api.FindingWarning: 2, api.FindingWrong: 3}

// finding is the worst that doctor says of one check at a partner.
func (tm *team) finding(at, check string) api.Finding {
	tm.t.Helper()
	d, err := tm.p[at].api.Doctor(tm.t.Context())
	if err != nil {
		tm.t.Fatal(err)
	}
	var found api.Finding
	for _, f := range d.Findings {
		if f.Check == check && severity[f.State] >= severity[found.State] {
			found = f
		}
		if f.State == api.FindingWrong && d.Healthy {
			tm.t.Errorf("healthy although %s is wrong", f.Check)
		}
	}
	return found
}

var onLAN = []string{"/ip4/192.168.1.7/udp/4001/quic-v1"}

// What can be wrong with a node and its links: each says what, and how to mend it.
// refused is what a partner's list says was refused of another.
func (tm *team) refused(at, of string) []api.Refusal {
	tm.t.Helper()
	list, err := tm.p[at].api.Partners(tm.t.Context())
	if err != nil {
		tm.t.Fatal(err)
	}
	for _, p := range list {
		if p.Name == of {
			return p.Refused
		}
	}
	tm.t.Fatalf("%s does not list %s", at, of)
	return nil
}

func TestDoctor(t *testing.T) {
	day, minute := 24*time.Hour, time.Minute
	for _, c := range []struct {
		name  string
		ail   func(*team) // of two, as one of a team of three
		check string
		state string
		what  string
		mend  string
	}{
		{"nothing is wrong with the clock", func(*team) {}, "clock", api.FindingOK, "agrees with 2 partners", ""},
		{"the clock of an evicted partner says nothing", func(tm *team) { tm.expel("one", "three"); synctest.Wait() },
			"clock", api.FindingOK, "agrees with 1 partner", ""},
		{"a clock that is ahead", clockOf(9 * minute), "clock", api.FindingWarning,
			"this clock is 9m0s ahead of the partners'", "set it"},
		{"a clock that is a day behind", clockOf(-day), "clock", api.FindingWrong,
			"this clock is 24h0m0s behind the partners'", "certificates count as expired"},
		{"a clock from before its certificate", clockOf(-400 * day), "clock", api.FindingWrong,
			"before this node's certificate was made", "set it"},
		{"and what that does to the certificate", clockOf(-400 * day), "certificate", api.FindingWrong, "not valid yet",
			"set it, and nothing else is needed"},
		{"one of two partners whose clock is off", func(tm *team) {
			tm.again("three", nil, clockAhead(3*time.Hour).on, "two")
		}, "clock", api.FindingWarning, "the clock of three (3h0m0s ahead of this one)", "too few partners agree to say whose is wrong"},
		{"a partner's clock that was set after it was compared", func(tm *team) {
			clock := clockAhead(3 * time.Hour)
			tm.again("three", nil, clock.on, "two")
			clock.set(0)
			pass(2 * time.Minute)
		}, "clock", api.FindingOK, "agrees with 2 partners", ""},
		{"a clock that was wrong at the start and was set", clockSetTo(-3*time.Hour, 0), "clock", api.FindingWarning,
			"this clock was set 3h0m0s forward while the node ran", "waits do not depend on it"},
		{"a clock that went wrong after it was compared", clockSetTo(0, -3*time.Hour), "clock", api.FindingWarning,
			"this clock is 3h0m0s behind the partners'", "set it"},

		{"room on the disk", space(2<<30, nil), "disk", api.FindingOK, "2048 MiB of 8192 MiB are free", ""},
		{"a disk that is nearly full", space(100<<20, nil), "disk", api.FindingWarning, "100 MiB of 8192 MiB are free",
			"make room on the disk of the node's folder soon"},
		{"a full disk", space(1<<20, nil), "disk", api.FindingWrong, "1 MiB of 8192 MiB are free",
			"without space nothing is acknowledged"},
		{"a disk with less room than the store needs", func(tm *team) {
			tm.again("two", nil, func(p *node.Parts) {
				p.Reserve = 256 << 20
				p.Space = func() (free, total uint64, err error) { return 100 << 20, 8 << 30, nil }
			})
		}, "disk", api.FindingWrong, "100 MiB of 8192 MiB are free, and the store writes nothing with less than 256 MiB", "until then nothing is acknowledged"},
		{"a disk that does not tell", space(0, errors.New("no such device")), "disk", api.FindingWarning,
			"cannot be told: no such device", "look at the disk"},

		{"a store that takes nothing", func(tm *team) {
			tm.p["two"].disk.failWith(kv.ErrFull)
			_, _ = tm.p["two"].api.AddWorkflow(tm.t.Context(), "chain.yaml", []byte(chain)) // fails, which is noticed
		}, "store", api.FindingWrong, "the store cannot write: ", "the node goes on by itself as soon as it can write"},
		{"a store that cannot be read", func(tm *team) { tm.p["two"].disk.blindWith(errors.New("input/output error")) },
			"store", api.FindingWrong, "the store cannot be read: input/output error",
			"join again from a fresh folder"},

		{"a certificate that ends soon", func(tm *team) { clockOf(300 * day)(tm) }, "certificate", api.FindingWarning,
			"ends at ", "it is renewed as soon as one or the founder is in contact"},
		{"a certificate that has ended", func(tm *team) { clockOf(400 * day)(tm) }, "certificate", api.FindingWrong,
			"expired", "If that is wrong, set it, and nothing else is needed; else no partner admits this node any more: ask a partner that may invite for an invitation, and join again with a fresh folder"},
		{"an evicted node", func(tm *team) { tm.expel("one", "two"); synctest.Wait() }, "certificate", api.FindingWrong,
			"two is evicted by one at", "ask a partner that may invite"},

		// At first what others had told of it is fresh: only when that is old does it say that nobody hears it.
		{"a partner that nobody can reach",
			func(tm *team) { tm.disconnect("one", "three"); tm.disconnect("two", "three"); pass(40 * time.Minute) },
			"links", api.FindingWarning, "three cannot be reached at at three", "is it running"},
		{"a partner that only others can reach",
			func(tm *team) { tm.disconnect("two", "three"); pass(40 * time.Minute) },
			"links", api.FindingWarning, "three cannot be reached at at three, and others hear it",
			"it runs: a firewall or a network between the two"},
		{"nobody can be reached", func(tm *team) {
			tm.disconnect("two", "three")
			tm.disconnect("two", "one")
			synctest.Wait()
		},
			"links", api.FindingWrong, "none of 2 partners can be reached",
			"check this machine's network and firewall"},

		{"no address", bare(), "addresses", api.FindingWrong, "nobody can reach this node: it has no address",
			"connect it to a network"},
		{"an interface without address", bare("wlan0"), "addresses", api.FindingWrong,
			"up but without an address: wlan0", "connect it to a network"},
		{"this machine only", func(tm *team) {
			tm.again("three", onLAN, nil, "one")
			tm.again("two", []string{"/ip4/127.0.0.1/tcp/4001"}, nil, "one", "three")
		}, "addresses", api.FindingWrong, "listens on this machine only, and there are partners elsewhere", "check listen in config.yaml"},
		{"a private network, all are here", func(tm *team) { tm.again("two", onLAN, nil, "one", "three") }, "addresses",
			api.FindingOK, onLAN[0], ""},
		{"a private network, one is missing", func(tm *team) { tm.again("two", onLAN, nil, "one") },
			"addresses", api.FindingWarning, "where partners outside cannot connect to it",
			"name a member that relays"},
		{"reachable over a relay", func(tm *team) {
			tm.again("two", []string{
				onLAN[0], "/ip4/192.0.2.7/tcp/1/p2p/12D3KooWD3eckifWpRn9wQpMG9R9hX3sD158z7EqHWmweQAJU5SA/p2p-circuit",
			}, nil, "one")
		}, "addresses", api.FindingOK, "p2p-circuit", ""},

		{"a partner that is gone", func(tm *team) {
			tm.disconnect("two", "three")
			tm.disconnect("one", "three")
			pass(2 * time.Hour)
		},
			"partners", api.FindingWarning, "expired: three", "mutirao evict PARTNER"},
		{"what nothing runs any more", func(tm *team) {
			if _, err := tm.p["two"].api.SetProfile(tm.t.Context(),
				api.ProfileChange{Applications: &[]string{"x-ray"}}); err != nil {
				tm.t.Fatal(err)
			}
			tm.again("two", nil, func(p *node.Parts) { p.Runner = without{tm.p["two"].hand} })
		}, "profile", api.FindingWarning, "x-ray", "start a worker for it"},
		{"too few voters", func(tm *team) {
			tm.disconnect("two", "one")
			tm.disconnect("three", "one")
			synctest.Wait()
		},
			"electorate", api.FindingWarning, "0 of 1 voters can vote, 1 are needed",
			"Work goes on without a coordinator"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tm := newTeam(t, "one", "two", "three")
				c.ail(tm)
				f := tm.finding("two", c.check)
				if f.State != c.state || !strings.Contains(f.What, c.what) || !strings.Contains(f.Mend, c.mend) ||
					(f.Mend == "") != (c.state == api.FindingOK) {
					t.Errorf("doctor says %+v\nwant %s: …%s…, mend it: …%s…", f, c.state, c.what, c.mend)
				}
				tm.p["two"].disk.blindWith(nil)
			})
		})
	}
}

// clockOf sets the clock of two ahead before it starts.
func clockOf(ahead time.Duration) func(*team) { return clockSetTo(ahead, ahead) }

// clockSetTo has two start with its clock off, meet the others, and be set.
func clockSetTo(before, after time.Duration) func(*team) {
	return func(tm *team) {
		clock, meet := clockAhead(before), []string{"one", "three"}
		if before.Abs() > 24*time.Hour {
			meet = nil // nobody's certificate is good by such a clock
		}
		tm.again("two", nil, clock.on, meet...)
		clock.set(after)
	}
}

// space has two's disk tell how much of 8 GiB is free.
func space(free uint64, err error) func(*team) {
	return func(tm *team) {
		tm.again("two", nil, func(p *node.Parts) {
			p.Space = func() (uint64, uint64, error) { return free, 8 << 30, err }
		}, "one", "three")
	}
}

// bare takes two's addresses away, and names interfaces that are up without any.
func bare(names ...string) func(*team) {
	return func(tm *team) {
		tm.again("two", []string{}, func(p *node.Parts) { p.Bare = func() []string { return names } }, "one", "three")
	}
}

// without is a runner that has no applications.
type without struct{ *hand }

func (without) Has(workflow.ApplicationName) bool { return false }

// An evicted node hears of nobody: that all seem to be gone is no finding of its
// own, nor is what it cannot start.
func TestDoctorOfAnEvictedNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeam(t, "one", "two", "three")
		tm.add("one", chain)
		tm.expel("one", "two")
		pass(2 * time.Hour)
		for _, check := range []string{"links", "partners", "electorate"} {
			if f := tm.finding("two", check); f.State != "" {
				t.Errorf("two is evicted, and doctor says: %s: %s", check, f.What)
			}
		}
		_, err := tm.p["two"].api.Start(t.Context(), api.StartRequest{Workflow: "chain"})
		wantRefusal(t, "a start at an evicted node", err, "this node is no member any more: two is evicted by one at")
	})
}
