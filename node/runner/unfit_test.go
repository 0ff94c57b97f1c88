package runner_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/node/runner"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// What cannot be begun is known before a task needs it.
func TestUnfit(t *testing.T) {
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "text"), []byte("no program"), 0o600); err != nil {
		t.Fatal(err)
	}
	apps := map[workflow.ApplicationName]configs.Application{
		"far":     {URL: "http://192.0.2.1/"},
		"fine":    {Command: []string{self}},
		"lost":    {Command: []string{"no-such-program-anywhere"}},
		"nowhere": {Command: []string{self}, Folder: "missing"},
		"text":    {Command: []string{"./text"}},
	}
	got := strings.Join(runner.Unfit(apps, dir), "\n")
	for _, want := range []string{
		"lost: there is no program no-such-program-anywhere", "nowhere: its working folder", "may not be run: ",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("nothing is said of %s: %s", want, got)
		}
	}
	if n := strings.Count(got, "\n") + 1; n != 3 {
		t.Errorf("%d complaints, want 3: %s", n, got)
	}
}
