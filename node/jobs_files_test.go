package node_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// hintOf is what an error says that can be done.
func hintOf(err error) string {
	var e *api.Error
	if errors.As(err, &e) {
		return e.Hint
	}
	return ""
}

// A worker that names a file which is not in its folder, or no plain one, is refused and keeps the job: it puts the file
// there, and completes it. Before, its slip made the task fail.
func TestAWorkerThatNamesNoFileKeepsTheJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTeamWith(t, func(c *configs.Config) {
			c.Applications = map[workflow.ApplicationName]configs.Application{"weigh": {Worker: true}}
		}, keepsFiles(t), "one")
		tm.add("one", "workflow: pictures\ndata: {photo: {type: file}}\ntasks:\n  shoot: {application: weigh, out: [photo], timeout: 10m}\n")
		id := tm.begin("one", "pictures", nil)
		pass(time.Second)
		job := tm.mustTake("ana")
		if err := os.Mkdir(filepath.Join(job.Files, "album"), 0o700); err != nil {
			t.Fatal(err)
		}
		for name, says := range map[string]string{
			"photo.jpg": "there is no file photo.jpg", "../photo.jpg": `"../photo.jpg" is no file in the folder`,
			"album": "is no plain file",
		} {
			err := tm.complete("ana", job, `{"photo": "`+name+`"}`)
			isNo(t, name, err, api.Refused, "the result was not taken: output photo: ")
			if err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %v does not say %q", name, err, says)
			}
			if hint := hintOf(err); !strings.Contains(hint, "put the file into that folder") {
				t.Errorf("%s: what to do is %q", name, hint)
			}
			pass(time.Second)
			if task := tm.show("one", id).Tasks[0]; task.State != workflow.Running || task.Worker == nil {
				t.Errorf("%s: the task is %s (%s), with worker %+v", name, task.State, task.Reason, task.Worker)
			}
		}
		if err := tm.beat("ana", job, api.KeepRequest{}); err != nil {
			t.Errorf("it has lost its lease: %v", err)
		}
		photo := filepath.Join(job.Files, "photo.jpg")
		if err := os.WriteFile(photo, make([]byte, 2<<20), 0o600); err != nil { // for which there is no room
			t.Fatal(err)
		}
		err := tm.complete("ana", job, `{"photo": "photo.jpg"}`)
		isNo(t, "too large", err, api.Refused, "the result was not taken: output photo: ")
		if hint := hintOf(err); !strings.Contains(hint, "make room") || strings.Contains(hint, "that folder") {
			t.Errorf("there is no room, and what to do is %q", hint)
		}
		if err := os.WriteFile(photo, []byte("a wheel"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := tm.complete("ana", job, `{"photo": "photo.jpg"}`); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		in := tm.show("one", id)
		if v, _ := in.Data["photo"].(string); in.Tasks[0].State != workflow.Succeeded || !strings.Contains(v, "photo.jpg") {
			t.Errorf("it is %s, with %v", in.Tasks[0].State, in.Data)
		}
		if _, err := os.Stat(job.Files); !os.IsNotExist(err) {
			t.Errorf("its folder is still there: %v", err)
		}
	})
}
