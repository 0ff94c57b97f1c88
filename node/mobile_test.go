package node_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/node/wire"
)

func mobile(c *configs.Config) { *c = configs.Default(configs.Mobile) }

// All frames of a mobile mesh of three in which nothing begins and nothing ends have a budget, whatever runs in it:
// each node gives each partner a sign of life at least every 15/16 of the time between two, and compares what it has
// with one of them once in each connection time, which is a question and an answer. What runs costs no frame.
func TestFramesOfADayOnMobile(t *testing.T) {
	const day, nodes = 24 * time.Hour, 3
	each := configs.Default(configs.Mobile).ConnectionTime
	signs := int(day/(each*5/16*15/16)) + 1
	compared := int(day/each) + 1
	most := nodes * ((nodes-1)*signs + 2*compared)
	const fattest = 100 // bytes, encoded: of the mean frame
	for _, instances := range []int{0, 16} {
		synctest.Test(t, func(t *testing.T) {
			tm := newTeamWith(t, mobile, nil, "judge", "worker", "waiter")
			tm.add("judge", fan)
			tm.p["worker"].hand.hold("a", "b", "c", "d")
			for range instances {
				tm.begin("judge", "fan", map[string]string{"work": "worker", "end": "waiter"})
			}
			pass(10 * time.Minute) // all that began has been told
			before, frames, bytes := elapsed(), 0, 0
			pass(day)
			for _, c := range tm.f.sent(func(c carried) bool { return c.sent > before }) {
				b, err := wire.Encode(c.m)
				if err != nil {
					t.Fatal(err)
				}
				frames, bytes = frames+1, bytes+len(b)
			}
			t.Logf("%d instances: in a day %d frames, at most %d; %d bytes as encoded", instances, frames, most, bytes)
			if frames > most || bytes > frames*fattest {
				t.Errorf("with %d instances under way %d frames of %d bytes were sent in a day; want at most %d, and %d bytes each",
					instances, frames, bytes, most, fattest)
			}
			if frames < most*9/10 {
				t.Errorf("%d frames in a day are so few that the budget of %d bounds nothing: mend it", frames, most)
			}
		})
	}
}
