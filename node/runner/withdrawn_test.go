package runner_test

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/node/runner"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Once workers do not do an application here any more, what waits for one fails, at once, and says why; what a worker
// has goes on, and fails if it comes back undone. Other applications are as they were.
func TestAnApplicationIsTakenBack(t *testing.T) {
	for _, then := range []string{"waits", "goes on", "lapses", "is given back", "is not given"} {
		t.Run(then, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				served := true
				p := &runner.Pool{Serves: func(app workflow.ApplicationName) bool { return served || app != "pay" }}
				defer p.Close()
				var mu sync.Mutex
				ended := make(map[string]runner.Result)
				for _, app := range []workflow.ApplicationName{"pay", "print"} {
					p.Start(runner.Job{Key: string(app), Application: app}, nil, func(r runner.Result) {
						mu.Lock()
						defer mu.Unlock()
						ended[string(app)] = r
					})
				}
				of := func(app string) (runner.Result, bool) {
					mu.Lock()
					defer mu.Unlock()
					r, over := ended[app]
					return r, over
				}
				by := runner.Worker{Name: "ana"}
				var offer *runner.Offer
				if then != "waits" {
					offer = p.Reserve("pay", func(runner.Job) bool { return true })
				}
				if offer != nil && then != "is not given" {
					if _, ok := offer.Give("lease", by, runner.LeaseTerm); !ok {
						t.Fatal("it cannot be given")
					}
				}
				served = false
				p.Review()
				synctest.Wait()
				if _, over := of("pay"); over != (then == "waits") {
					t.Errorf("that it has ended at once: %t", over)
				}
				switch then {
				case "lapses":
					time.Sleep(2 * runner.LeaseTerm)
				case "is given back":
					if _, err := p.GiveBack("lease", by); err != nil {
						t.Fatal(err)
					}
				case "is not given":
					offer.Release()
				}
				synctest.Wait()
				r, over := of("pay")
				if then == "goes on" {
					if over {
						t.Errorf("it has ended: %+v", r)
					}
				} else if !r.Failed || !strings.HasPrefix(r.Reason, `this node has no application "pay"`) {
					t.Errorf("it came to %+v", r)
				}
				if r, over := of("print"); over {
					t.Errorf("another has ended: %+v", r)
				}
			})
		})
	}
}
