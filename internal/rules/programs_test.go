package rules_test

import (
	"fmt"
	"slices"
	"strings"
)

// starters are the packages by which a program could be started, or taken in.
var starters = []string{"os/exec", "plugin"}

// programComplaints finds code that could start programs and is not permitted to. What runs on a device is what its
// owner has put into config.yaml or on a command line, and nothing that came from partners: so these places are few.
func programComplaints(t *tree) []string {
	var out []string
	for _, f := range t.files {
		if strings.HasPrefix(f.dir, "internal/") { // it is in no program that people get
			continue
		}
		for _, im := range f.imports {
			if slices.Contains(starters, im.path) && !t.permits("program", f.name) {
				out = append(out, t.complaint(im.pos, fmt.Sprintf("%s imports %s", f.name, im.path),
					"what runs on a device needs the consent of its owner, who gives it in config.yaml",
					"have node/runner run it, or list the file with the reason in internal/rules/permissions_test.go"))
			}
		}
	}
	return out
}
