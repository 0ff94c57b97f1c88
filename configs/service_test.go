package configs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The unit that is shipped starts the node as the documentation says, and
// systemd, where there is one, finds nothing to complain of.
func TestServiceUnit(t *testing.T) {
	b, err := os.ReadFile("mutirao.service")
	if err != nil {
		t.Fatal(err)
	}
	unit := string(b)
	const start = "ExecStart=/usr/local/bin/mutirao up --dir /var/lib/mutirao\n"
	for _, line := range []string{
		start, "StateDirectory=mutirao\n", "KillSignal=SIGTERM\n", "RestartPreventExitStatus=2 3 6\n",
		"WantedBy=multi-user.target\n",
	} {
		if !strings.Contains(unit, "\n"+line) {
			t.Errorf("the unit has no line %q", line)
		}
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Log("there is no systemd-analyze here: its verdict is not known")
		return
	}
	// It insists on a program and a user that exist.
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	unit = strings.Replace(unit, start, "ExecStart="+program+" up --dir /var/lib/mutirao\n", 1)
	unit = strings.Replace(unit, "User=mutirao\n", "User=root\n", 1)
	path := filepath.Join(t.TempDir(), "mutirao.service")
	if err := os.WriteFile(path, []byte(unit), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), analyze, "verify", "--man=no", path).CombinedOutput()
	if complaints := about(string(out), path); err != nil && complaints == "" {
		t.Logf("systemd-analyze could not judge: %v: %s", err, out)
	} else if complaints != "" {
		t.Errorf("systemd complains:\n%s", complaints)
	}
}

// about are the lines that concern the unit, and not others of this machine.
func about(out, path string) string {
	var lines []string
	for line := range strings.Lines(out) {
		if strings.Contains(line, path) || strings.Contains(line, filepath.Base(path)) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}
