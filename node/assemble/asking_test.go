package assemble_test

import (
	"database/sql"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/assemble"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// stocked has a node with a database of SQLite.
func stocked(t *testing.T) func(dir string, c *configs.Config) {
	return func(dir string, c *configs.Config) {
		db, err := sql.Open("sqlite", filepath.Join(dir, "depot.db"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.Exec(`create table parts (shelf integer); insert into parts values (7)`); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		c.Databases = map[workflow.DatabaseName]configs.Database{"depot": {File: "depot.db"}}
	}
}

// begin has a host list a workflow, and start it.
func begin(t *testing.T, h *assemble.Host, name, source string) (id string) {
	t.Helper()
	if _, err := h.Service().AddWorkflow(t.Context(), name+".yaml", []byte(source)); err != nil {
		t.Fatal(err)
	}
	st, err := h.Service().Start(t.Context(), api.StartRequest{Workflow: name})
	if err != nil {
		t.Fatal(err)
	}
	return st.ID
}

// Over HTTP a worker that sets what a database answers has a status of 409 that says why and what to do. Its lease
// goes on, and the result without that counts.
func TestAWorkerSetsAnAnswerOverHTTP(t *testing.T) {
	h, url, token := served(t, configs.Local, stocked(t))
	id := begin(t, h, "weighing", `
workflow: weighing
data:
  weight: {type: integer}
  stock: {type: query, database: depot, expression: "select shelf from parts"}
tasks:
  weigh: {application: weigh, out: [weight, stock], timeout: 10m}
`)
	post := func(path, body string) (int, string, string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(b), resp.Header.Get("Mutirao-Lease")
	}
	status, body, lease := post("/v1/jobs/take", `{"application": "weigh", "wait": "30s"}`)
	if status != http.StatusOK || !strings.Contains(body, `"shelf":7`) {
		t.Fatalf("the job: %d, %s", status, body)
	}
	for _, outputs := range []string{`{"weight": 11, "stock": [{"shelf": 7}]}`, `{"stock": []}`} {
		status, body, _ := post("/v1/leases/"+lease+"/complete", `{"outputs": `+outputs+`}`)
		if status != http.StatusConflict || !strings.Contains(body, "it sets stock, which database depot answered") ||
			!strings.Contains(body, "complete it without stock") {
			t.Errorf("%s: status %d, %s", outputs, status, body)
		}
	}
	if status, body, _ := post("/v1/leases/"+lease+"/heartbeat", `{}`); status != http.StatusOK {
		t.Errorf("a sign of life: status %d, %s", status, body)
	}
	status, body, _ = post("/v1/leases/"+lease+"/complete", `{"outputs": {"weight": 12}}`)
	if status != http.StatusNoContent {
		t.Errorf("the result: status %d, %s", status, body)
	}
	in, err := h.Service().Show(t.Context(), id)
	if err != nil || in.State != workflow.InstanceSucceeded || fmt.Sprint(in.Data["weight"]) != "12" {
		t.Errorf("%v: it is %+v", err, in)
	}
}

// Instances are cancelled about when SQLite answers the query of their task: nothing that they began runs on, and what
// they have not begun does not begin any more.
func TestCancelledWhileSQLiteAnswers(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the programs of this test are written for a shell of Unix")
	}
	const instances, longest = 60, 40 * time.Millisecond
	began := t.TempDir()
	h, _, _ := served(t, configs.Local, stocked(t), func(_ string, c *configs.Config) {
		c.Applications["use"] = configs.Application{
			Command: []string{"sh", "-c", `echo > "` + began + `/$$"; exec sleep 600`},
		}
	})
	source := `
workflow: using
data:
  most: {type: integer}
  stock:
    type: query
    database: depot
    expression: |
      with recursive n(i) as (select 1 union all select i + 1 from n where i < :most)
      select max(i) + min(shelf) as shelf from n, parts
tasks:
  use: {application: use, in: [most], out: [stock], timeout: 1h}
`
	if _, err := h.Service().AddWorkflow(t.Context(), "using.yaml", []byte(source)); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 4 { // at once
		all.Go(func() {
			for range instances / 4 {
				// However fast this machine is, some of the queries take less time than there is, and some more.
				most := fmt.Sprintf("%.0f", math.Pow(10, 7*rand.Float64()))
				st, err := h.Service().Start(t.Context(),
					api.StartRequest{Workflow: "using", Input: map[string]string{"most": most}})
				if err != nil {
					t.Error(err)
					return
				}
				<-time.After(rand.N(longest))
				if err := h.Service().Cancel(t.Context(), st.ID, "no need"); err != nil {
					t.Error(err)
				}
				in, err := h.Service().Show(t.Context(), st.ID)
				if err != nil || in.State != workflow.InstanceCancelled || in.Data["stock"] != nil {
					t.Errorf("%v: it is %+v", err, in)
				}
			}
		})
	}
	all.Wait()
	before, after := 0, 0
	for deadline := time.Now().Add(time.Minute); ; <-time.After(200 * time.Millisecond) {
		names, err := os.ReadDir(began)
		if err != nil {
			t.Fatal(err)
		}
		alive := 0
		for _, name := range names {
			if runs(name.Name()) {
				alive++
			}
		}
		before, after = after, len(names)
		if alive == 0 && before == after {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d programs of cancelled instances run on", alive)
		}
	}
	if after == instances || after == 0 {
		t.Errorf("of %d instances %d were cancelled after their answer: want some, and not all", instances, after)
	}
}

// runs reports whether a process is there.
func runs(pid string) bool {
	_, err := os.Stat(filepath.Join("/proc", pid))
	return !errors.Is(err, os.ErrNotExist)
}
