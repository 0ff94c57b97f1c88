package main

import (
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/mutirao-mesh/mutirao/internal/plain"
)

// The demo's last lines run as they are printed, also where paths have spaces, and fit
// into a terminal unless a path does not.
func TestTheLastLinesOfTheDemoRun(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is no shell to try them with")
	}
	for _, c := range []struct{ program, dir string }{
		{"echo", "/tmp/mutirao-1"}, {"echo", "/tmp/my folder/it's/mutirao-1"},
		{"echo", "/var/folders/" + strings.Repeat("x", 40) + "/T/mutirao-1"},
		{"echo", "/var/folders/" + strings.Repeat("x", 90) + "/T/mutirao-1"},
	} {
		lines := lookAround(c.program, c.dir+"/station", c.dir+"/engine")
		for _, line := range lines {
			if plain.Width(line) > demoWidth-2 && len(c.dir) < demoWidth-30 {
				t.Errorf("a line of %d columns: %s", plain.Width(line), line)
			}
		}
		out, err := exec.Command("sh", "-c", strings.Join(lines, "\n")).Output()
		want := []string{"--dir " + c.dir + "/station partners", "--dir " + c.dir + "/engine instances --all"}
		if got := strings.Split(strings.TrimSpace(string(out)), "\n"); err != nil || !slices.Equal(got, want) {
			t.Errorf("a shell made of %q: %q, %v", lines, got, err)
		}
	}
	if first := lookAround("/opt/my tools/mutirao", "/tmp/m", "/tmp/m")[0]; first != "'/opt/my tools/mutirao' --dir /tmp/m partners" {
		t.Errorf("a program in a folder with a space: %s", first)
	}
}
