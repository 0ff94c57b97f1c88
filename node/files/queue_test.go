package files_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/node/files"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// named are n references to content that nobody needs to have, each of one byte.
func named(n int) []files.Ref {
	out := make([]files.Ref, n)
	for i := range out {
		out[i] = files.Ref{
			Item: workflow.DataName(fmt.Sprint("f", i)), File: workflow.File{Name: fmt.Sprint("x", i), Size: 1},
		}
		binary.BigEndian.PutUint32(out[i].File.Root[:], uint32(i+1))
	}
	return out
}

// renamed are references to the same content under another name.
func renamed(refs []files.Ref, name string) []files.Ref {
	out := slices.Clone(refs)
	for i := range out {
		out[i].File.Name = name
	}
	return out
}

// ahead has tasks of an instance about to read files, and counts how often their partners are
// asked for.
func (s *site) ahead(
	instance byte, by workflow.PartnerID, refs []files.Ref, asks *atomic.Int64, from ...workflow.PartnerID,
) {
	id := workflow.InstanceID{instance}
	s.Ahead(id, by, refs, func(r files.Ref) files.Want {
		return files.Want{File: r.File, Item: r.Item, Instance: id, By: by,
			From: func(context.Context) ([]workflow.PartnerID, error) {
				if asks != nil {
					asks.Add(1)
				}
				return from, nil
			}}
	})
}

func siteThatTakes(t *testing.T) (giver, taker *site) {
	giver, taker = newSite(t, t.TempDir(), files.Options{}, everybody{}),
		newSite(t, t.TempDir(), files.Options{}, everybody{})
	taker.link.knows("giver", giver.Topic)
	taker.link.cut("away", true)
	taker.link.hangs = map[workflow.PartnerID]bool{"mute": true}
	return giver, taker
}

// comes reports how long a file takes to come, for at most an hour.
func (s *site) comes(t *testing.T, w files.Want) time.Duration {
	t.Helper()
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	if err := s.Fetch(ctx, w); err != nil {
		t.Errorf("a file did not come in %v: %v", time.Since(began), err)
	}
	return time.Since(began)
}

// Files that do not come, as their giver is away, or takes requests and never answers, do not
// keep another member's from coming, nor this node's own; and what somebody waits for comes
// though four members have such files.
func TestFilesThatDoNotComeHoldUpNobodyElses(t *testing.T) {
	for _, giver := range []workflow.PartnerID{"away", "mute"} {
		for _, members := range []int{1, 4} {
			t.Run(fmt.Sprint(members, " members, the giver is ", giver), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					honest, taker := siteThatTakes(t)
					for m := range members {
						by := workflow.PartnerID(fmt.Sprint("liar", m))
						refs := named(40)
						for i := range refs {
							refs[i].File.Root[31] = byte(m)
						}
						taker.ahead(byte(m), by, refs, nil, giver)
					}
					time.Sleep(time.Minute)
					f, _ := honest.put(t, 7)
					asked := want(f, "giver")
					asked.Asked = true
					if took := taker.comes(t, asked); took > time.Second {
						t.Errorf("what somebody waits for took %v", took)
					}
					g, _ := honest.put(t, 8)
					own := want(g, "giver")
					own.By = ""
					if took := taker.comes(t, own); took > time.Second {
						t.Errorf("what this node began took %v", took)
					}
					h, _ := honest.put(t, 9)
					if took := taker.comes(t, want(h, "giver")); took > time.Second {
						t.Errorf("what another member began took %v", took)
					}
				})
			})
		}
	}
}

// A giver that is slow does not keep the turns of others: it has them for a while and goes on
// later, and what came is not asked for again.
func TestSlowFilesLetOthersHaveTheirTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		honest, taker := siteThatTakes(t)
		taker.link.takes = 5 * time.Second
		var large []workflow.File
		for i := range files.MemberTurns {
			f, _ := honest.put(t, 40*files.Chunk+i)
			large = append(large, f)
		}
		var refs []files.Ref
		for i, f := range large {
			refs = append(refs, files.Ref{Item: workflow.DataName(fmt.Sprint("f", i)), File: f})
		}
		taker.ahead(0, "starter", refs, nil, "giver")
		time.Sleep(time.Second)
		small, _ := honest.put(t, 10)
		if took := taker.comes(t, want(small, "giver")); took > 45*time.Second {
			t.Errorf("a small file of the same member took %v beside large ones", took)
		}
		time.Sleep(10 * time.Minute)
		for _, f := range large {
			taker.read(t, f)
		}
		pieces := 0
		for _, n := range taker.link.asked {
			pieces += n
		}
		if most := 2*40*2 + 2; pieces > most {
			t.Errorf("%d pieces were asked for, and there are %d", pieces, most)
		}
	})
}

// What waits costs entries, of which each member has a share, and no goroutine, no file, and
// no log line each. What has no place is counted once.
func TestPlacesForFilesToCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, taker := siteThatTakes(t)
		before := runtime.NumGoroutine()
		refs := named(1500)
		for range 3 { // changes of the instances
			for i := range 10 {
				taker.ahead(byte(i), "mal", renamed(refs, fmt.Sprint("copy", i)), nil, "away")
			}
			time.Sleep(10 * time.Second)
		}
		contents, wants, _ := taker.Waiting()
		if n := runtime.NumGoroutine() - before; n > 16 {
			t.Errorf("%d goroutines", n)
		}
		if wants != files.MemberAhead || contents > files.MemberAhead {
			t.Errorf("%d files wait for %d wants", contents, wants)
		}
		if n := len(taker.link.refused); n != 15000-files.MemberAhead {
			t.Errorf("%d were counted, want each that had no place once", n)
		}
		if n := strings.Count(taker.log.String(), "\n"); n > 3 {
			t.Errorf("%d lines in the log:\n%s", n, taker.log.String())
		}
		left, err := os.ReadDir(taker.dir)
		if err != nil || len(left) > 0 {
			t.Errorf("%d files in the folder for content that nobody gave, %v", len(left), err)
		}
		if taker.Waits(workflow.InstanceID{9}, refs[1499].File) == "" {
			t.Error("people are not told why a file without a place does not come")
		}
		for i, by := range []workflow.PartnerID{"bo", "ce", "di"} {
			taker.ahead(byte(20+i), by, named(1500), nil, "away")
		}
		if _, wants, _ = taker.Waiting(); wants != files.OthersAhead {
			t.Errorf("members have %d places, want %d", wants, files.OthersAhead)
		}
		taker.ahead(30, "", named(1500), nil, "away")
		if _, wants, _ = taker.Waiting(); wants != files.MaxAhead {
			t.Errorf("this node's own have %d", wants-files.OthersAhead)
		}
		for i := range 31 { // no task reads them any more
			taker.ahead(byte(i), "", nil, nil)
		}
		synctest.Wait()
		time.Sleep(time.Hour)
		if !taker.Idle() {
			t.Error("something is remembered of files that nobody wants")
		}
	})
}

// Whatever a member names, its files are asked for at a steady rate; and a change of an instance
// costs the same, however many files it has.
func TestStepsOfFilesToCome(t *testing.T) {
	for _, n := range []int{100, 1000, 10000} {
		synctest.Test(t, func(t *testing.T) {
			_, taker := siteThatTakes(t)
			var asks atomic.Int64
			id := workflow.InstanceID{1}
			refs := named(n)
			look := func() { taker.ahead(1, "mal", refs, &asks, "away") }
			taker.again = func(workflow.InstanceID) {
				if taker.Look(id, "mal") {
					look()
				}
			}
			for range 10 * n { // changes, in a hundred seconds
				if taker.Look(id, "mal") {
					look()
				}
				time.Sleep(10 * time.Second / time.Duration(n))
			}
			if _, _, steps := taker.Waiting(); steps > 130*1000 {
				t.Errorf("%d files: %d were looked at for %d changes, want a thousand a second at most", n, steps, 10*n)
			}
			asks.Store(0)
			time.Sleep(time.Hour)
			if got := asks.Load(); got > 3600*16 {
				t.Errorf("%d files: their partners were looked up %d times in an hour, want 16 a second at most", n,
					got)
			}
		})
	}
}

// Files without a place have one soon after others of their initiator have left theirs.
func TestFilesWithoutAPlaceHaveOneLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, taker := siteThatTakes(t)
		late := named(files.MemberAhead + 300)[files.MemberAhead:]
		taker.again = func(id workflow.InstanceID) {
			if id[0] == 2 {
				taker.ahead(2, "bo", late, nil, "away")
			}
		}
		taker.ahead(1, "bo", named(files.MemberAhead), nil, "away")
		taker.ahead(2, "bo", late, nil, "away")
		time.Sleep(10 * time.Second)
		if contents, _, _ := taker.Waiting(); contents != files.MemberAhead {
			t.Errorf("%d wait", contents)
		}
		taker.ahead(1, "bo", nil, nil)
		time.Sleep(time.Second)
		if contents, _, _ := taker.Waiting(); contents != len(late) {
			t.Errorf("%d wait, want the %d that had no place", contents, len(late))
		}
	})
}

// A file without room is refused once, and counted for whoever began the instance; what a
// thousand are refused costs one line in the log. It comes when there is room.
func TestFilesWithoutRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		honest := newSite(t, t.TempDir(), files.Options{}, everybody{})
		ended := "none"
		taker := newSite(t, t.TempDir(), files.Options{Limit: 4 * files.Chunk}, everybody{ended: &ended})
		taker.link.knows("giver", honest.Topic)
		of := func(f workflow.File, instance byte) files.Want {
			w := want(f, "giver")
			w.By, w.Instance = "mal", workflow.InstanceID{instance}
			if err := honest.Give(f, w.Instance.String(), "", time.Now()); err != nil {
				t.Fatal(err)
			}
			return w
		}
		first, _ := honest.put(t, files.Chunk-files.Overhead)
		if err := taker.Fetch(t.Context(), of(first, 9)); err != nil { // the share of mal is full
			t.Fatal(err)
		}
		var refs []files.Ref
		for i := range 30 {
			f, _ := honest.put(t, 1000+i)
			refs = append(refs, files.Ref{Item: workflow.DataName(fmt.Sprint("f", i)), File: f})
		}
		for i := range 20 { // changes of the instance
			taker.ahead(0, "mal", refs[:29+i%2], nil, "giver")
			time.Sleep(time.Minute)
		}
		synctest.Wait()
		if n := len(taker.link.refused); n < 29 || n > 29+20 || taker.link.refused[0] != "files-beyond-room" {
			t.Errorf("%d were counted: %v", n, taker.link.refused)
		}
		if n := strings.Count(taker.log.String(), "\n"); n > 21 {
			t.Errorf("%d lines in the log:\n%s", n, taker.log.String())
		}
		if words := taker.Waits(workflow.InstanceID{}, refs[0].File); !strings.Contains(words, "there is room for 0 B here") {
			t.Errorf("people are told %q", words)
		}
		// A program's file that has no room fails at once, with the reason.
		if err := taker.Fetch(t.Context(), of(refs[0].File, 7)); err == nil ||
			!strings.Contains(err.Error(), "there is room for 0 B here") {
			t.Errorf("it was fetched: %v", err)
		}
		// Instance 9 ends: a day later its file goes, and the others come.
		go taker.Keep(t.Context())
		ended, began := "09", clock{time.Now()}
		for range 4 {
			taker.Tick(began.Now())
			time.Sleep(25 * time.Hour)
		}
		time.Sleep(time.Minute)
		for i, r := range refs {
			if _, here := taker.Path(r.File); !here {
				t.Fatalf("file %d did not come when there was room", i)
			}
		}
	})
}

// Several instances that want the same content have it come once, and each has it then.
func TestInstancesThatWantTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		honest, taker := siteThatTakes(t)
		f, _ := honest.put(t, 3*files.Chunk)
		for i := range 12 {
			taker.ahead(byte(i), "bo", []files.Ref{{Item: "plan", File: f}}, nil,
				map[bool]workflow.PartnerID{true: "giver", false: "away"}[i == 0])
		}
		contents, wants, _ := taker.Waiting()
		if contents != 1 || wants != 12 {
			t.Errorf("%d contents for %d wants", contents, wants)
		}
		time.Sleep(5 * time.Minute)
		taker.read(t, f)
		for at, n := range taker.link.asked {
			if n > 1 {
				t.Errorf("the piece at %d was asked for %d times", at, n)
			}
		}
		if _, wants, _ := taker.Waiting(); wants != 0 {
			t.Errorf("%d wait though it is here", wants)
		}
		// It stays while one of them is here.
		only := workflow.InstanceID{11}
		for _, after := range []time.Duration{25 * time.Hour, 26 * time.Hour} {
			if _, err := taker.Sweep(func(id string) bool { return id == only.String() }, time.Now().Add(after)); err != nil {
				t.Fatal(err)
			}
		}
		taker.read(t, f)
	})
}
