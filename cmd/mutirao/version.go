package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// release is the program's version; builds set it with
// -ldflags "-X main.release=v1.2.3".
var release string

// build says what this program was made from.
type build struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

func (b build) String() string {
	return fmt.Sprintf("mutirao %s (commit %s, %s, %s/%s)", b.Version, orDash(b.Commit), b.Go, b.OS, b.Arch)
}

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "° Which version this is",
		Example: `  mutirao version
  mutirao version -o json`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			b := thisBuild()
			return uiOf(cmd).result(b, func(w io.Writer) {
				fmt.Fprintln(w, b)
			})
		},
	}
}

// thisBuild reads what the Go toolchain recorded.
func thisBuild() build {
	b := build{Version: release, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if b.Version == "" {
		b.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			b.Commit = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			b.Commit += "+changes"
		}
	}
	return b
}
