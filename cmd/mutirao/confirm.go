package main

import (
	"bufio"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/node/api"
)

// addYesFlag adds --yes to a command that asks before it does what cannot be
// undone.
func addYesFlag(cmd *cobra.Command, yes *bool) {
	cmd.Flags().BoolVarP(yes, "yes", "y", false, "do not ask")
}

// asks reports whether confirm will ask.
func (u *ui) asks(yes bool) bool {
	in, ok := u.in.(*os.File)
	return !yes && ok && isTTY(in)
}

// confirm says what will happen and asks whether it shall, if somebody sits
// there to answer: a program that runs the command has decided already.
func (u *ui) confirm(yes bool, format string, args ...any) error {
	if !u.asks(yes) {
		return nil
	}
	quiet := u.quiet
	u.quiet = false // a question is no chatter
	u.note(format+"\nGo on? Type yes, or anything else to leave everything as it is.", args...)
	u.quiet = quiet
	answer, _ := bufio.NewReader(u.in).ReadString('\n') // without an answer nothing is done
	if strings.TrimSpace(strings.ToLower(answer)) != "yes" {
		return api.Errorf(api.Failed, "nothing was done").WithHint("--yes does it without asking")
	}
	return nil
}
