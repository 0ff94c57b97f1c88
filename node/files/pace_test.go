package files_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/node/files"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Over a link of 8 kB/s files come, several at once too, each piece of them once, and little slower than the link is.
func TestFilesComeOverASlowLink(t *testing.T) {
	for _, n := range []int{1, 6} {
		t.Run(fmt.Sprint(n, " files"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				honest, taker := siteThatTakes(t)
				taker.link.rates["giver"] = 8000
				var refs []files.Ref
				for i := range n {
					f, _ := honest.put(t, 3*files.Chunk+i)
					refs = append(refs, files.Ref{Item: workflow.DataName(fmt.Sprint("f", i)), File: f})
				}
				taker.link.to["other"], taker.link.to["third"] = nothing(t), nothing(t)
				taker.ahead(0, "starter", refs, nil, "giver", "other", "third")
				began, least := time.Now(), time.Duration(n*3*files.Chunk/8000)*time.Second
				for here := 0; here < n && time.Since(began) < 2*least; {
					time.Sleep(time.Second)
					here = 0
					for _, r := range refs {
						if _, whole := taker.Path(r.File); whole {
							here++
						}
					}
				}
				took := time.Since(began)
				t.Logf("%d files took %v, %v at the least", n, took, least)
				if took > least*3/2 {
					t.Errorf("it took %v, %v are the least", took, least)
				}
			})
		})
	}
}

// Over a link that became slow it is told how slow while the first chunk is under way, and after it.
func TestASlowLinkIsKnownWhileAFileComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		honest, taker := siteThatTakes(t)
		ahead := func(size int) {
			f, _ := honest.put(t, size)
			taker.ahead(0, "starter", []files.Ref{{Item: "f", File: f}}, nil, "giver")
		}
		taker.link.speed("giver", 40<<20)
		ahead(20 * files.Chunk)
		time.Sleep(time.Minute)
		before, _ := taker.RateFrom("giver")
		taker.link.speed("giver", 100<<10)
		ahead(4*files.Chunk + 1)
		for _, after := range []time.Duration{3 * time.Second, 9 * time.Second, 20 * time.Second} {
			time.Sleep(after)
			if got, ago := taker.RateFrom("giver"); got < 50<<10 || got > 500<<10 || ago > time.Second {
				t.Errorf("%s later files come at %d bytes a second, last %s ago; it was %d and is %d", after, got, ago,
					before, 100<<10)
			}
		}
	})
}

// nothing is a partner that has no file.
func nothing(t *testing.T) *files.Topic {
	return newSite(t, t.TempDir(), files.Options{}, everybody{}).Topic
}

// A partner that drips costs a file that another has no more than half a minute, once.
func TestADrippingPartnerLosesItsPlace(t *testing.T) {
	for _, rate := range []int{1, 900, 5000} {
		t.Run(fmt.Sprint(rate, " B a second"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				honest, taker := siteThatTakes(t)
				taker.link.knows("liar", honest.Topic)
				taker.link.rates["liar"] = rate
				// Its hashes come at once: it lies where it hurts most.
				taker.link.quickSums = true
				for i, most := range []time.Duration{40 * time.Second, 2 * time.Second} {
					f, _ := honest.put(t, 20*files.Chunk+i)
					if took := taker.comes(t, want(f, "liar", "giver")); took > most {
						t.Errorf("file %d took %v, want %v at most", i, took, most)
					}
				}
			})
		})
	}
}

// Whoever drips holds no turn: members with a dozen files each of dripping partners hold up neither another member's
// file nor this node's own nor what somebody waits for.
func TestDrippingMembersHoldUpNobody(t *testing.T) {
	t.Parallel()
	for _, rate := range []int{1500, 4000} {
		t.Run(fmt.Sprint(rate, " B a second"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				honest, taker := siteThatTakes(t)
				taker.link.quickSums = true
				for m := range 8 {
					var refs []files.Ref
					p := workflow.PartnerID(fmt.Sprint("dripping", m))
					taker.link.drips(p, honest.Topic, rate)
					for i := range 12 {
						f, _ := honest.upload(t, files.Chunk+100*m+i)
						if err := honest.Give(f, workflow.InstanceID{byte(m + 1)}.String(), "", time.Now()); err != nil {
							t.Fatal(err)
						}
						refs = append(refs, files.Ref{Item: workflow.DataName(fmt.Sprint("f", i)), File: f})
					}
					taker.ahead(byte(m+1), workflow.PartnerID(fmt.Sprint("liar", m)), refs, nil, p)
				}
				for i := range 10 {
					time.Sleep(20 * time.Second)
					asked := want(first(honest.put(t, 7+100*i)), "giver")
					asked.Asked = true
					own := want(first(honest.put(t, 8+100*i)), "giver")
					own.By = ""
					for what, w := range map[string]files.Want{
						"what somebody waits for": asked, "what this node began": own,
						"what another member began": want(first(honest.put(t, 9+100*i)), "giver"),
					} {
						if took := taker.comes(t, w); took > 10*time.Second {
							t.Errorf("%s took %v", what, took)
						}
					}
				}
				if taker.Lent() > files.Lendable {
					t.Errorf("%d wait for answers", taker.Lent())
				}
			})
		})
	}
}

func first[A, B any](a A, _ B) A { return a }

// What came over a slow link that stops in the middle is kept, and the rest comes when it is back.
func TestASlowLinkThatStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		honest, taker := siteThatTakes(t)
		taker.link.rates["giver"] = 8000
		f, _ := honest.put(t, 3*files.Chunk)
		done := make(chan error, 1)
		go func() { done <- taker.Fetch(context.Background(), want(f, "giver")) }()
		time.Sleep(200 * time.Second) // one chunk and a half
		taker.link.speed("giver", 1)
		time.Sleep(5 * time.Minute)
		taker.link.speed("giver", 8000)
		began := time.Now()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > 15*time.Minute {
			t.Errorf("the rest took %v", took)
		}
	})
}

// A partner of which nothing at all was heard while it did not answer, as where the link was cut, is asked again soon
// after something is; one that is heard all the time, or that is heard each time it was not and still gives nothing,
// more and more rarely.
func TestALinkThatWasCutIsNoMutePartner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		honest, taker := siteThatTakes(t)
		began := time.Now()
		cut := func() time.Duration { return 0 }
		now := func() time.Duration { return time.Since(began) }
		taker.link.heardBy(cut)
		taker.link.hang("giver", true)
		f, _ := honest.put(t, files.Chunk)
		w := want(f, "giver")
		w.Asked, w.By = true, ""
		done := make(chan error, 1)
		go func() { done <- taker.Fetch(context.Background(), w) }()
		time.Sleep(40 * time.Second)
		taker.link.hang("giver", false)
		taker.link.heardBy(now)
		back := time.Now()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if took := time.Since(back); took > 8*time.Second {
			t.Errorf("after the link was back it took %v", took)
		}
	})
	asked := func(heard func(since time.Duration) time.Duration) (n int) {
		synctest.Test(t, func(t *testing.T) {
			honest, taker := siteThatTakes(t)
			began := time.Now()
			taker.link.heardBy(func() time.Duration { return heard(time.Since(began)) })
			taker.link.hang("giver", true)
			f, _ := honest.put(t, files.Chunk)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
			defer cancel()
			if err := taker.Fetch(ctx, want(f, "giver")); err == nil {
				t.Error("it came from a partner that gives nothing")
			}
			n = taker.link.total()
		})
		return n
	}
	always := asked(func(since time.Duration) time.Duration { return since })
	after := asked(func(since time.Duration) time.Duration { return since.Truncate(time.Minute) })
	if always > 20 || after > always+4 {
		t.Errorf("one that is heard was asked %d times in two hours, one that is heard each minute %d times", always, after)
	}
}
