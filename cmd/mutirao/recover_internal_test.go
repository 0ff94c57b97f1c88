package main

import (
	"errors"
	"testing"

	"github.com/mutirao-mesh/mutirao/node/api"
)

// What no instance allows is wrong usage, and nobody is asked about it; what depends on the instance is for its rules.
func TestMisusedRecovery(t *testing.T) {
	for _, x := range []struct {
		method, flag, value, want string
	}{
		{"nomethod", "", "", `no method "nomethod": want compensate, offer, restart, jump-back or jump-forward`},
		{"restart", "steps", "2", "--steps goes with compensate only, not with restart"},
		{"jump-forward", "until", "0", "--until goes with compensate only, not with jump-forward"},
		{"offer", "when", "n == 1", "--when goes with compensate only, not with offer"},
		{"offer", "set", "n=1", "--set goes with jump-back and jump-forward only, not with offer"},
		{"compensate", "set", "n=1", "--set goes with jump-back and jump-forward only, not with compensate"},
		{"compensate", "until", "3", ""},
		{"jump-back", "set", "n=1", ""},
		{"jump-forward", "set", "nosuch=1", ""},
		{"restart", "", "", ""},
	} {
		cmd := newRecoverCommand()
		if x.flag != "" {
			if err := cmd.Flags().Set(x.flag, x.value); err != nil {
				t.Fatal(err)
			}
		}
		err := misused(cmd, x.method)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != x.want {
			t.Errorf("%s --%s: %q, want %q", x.method, x.flag, got, x.want)
		}
		var wrong *api.Error
		if err != nil && (!errors.As(err, &wrong) || wrong.Code != api.Invalid) {
			t.Errorf("%s --%s: %v is not told as wrong usage", x.method, x.flag, err)
		}
	}
}

// The number of a state is read as the history writes it as well.
func TestStateFlag(t *testing.T) {
	for text, want := range map[string]stateFlag{"0": 0, "1": 1, "S1": 1, "s12": 12} {
		var n stateFlag
		if err := n.Set(text); err != nil || n != want {
			t.Errorf("%q is read as %d (%v), want %d", text, n, err, want)
		}
	}
	for _, text := range []string{"", "S", "SS1", "-1", "S-1", "one"} {
		if err := new(stateFlag).Set(text); err == nil {
			t.Errorf("%q is read as the number of a state", text)
		}
	}
}
