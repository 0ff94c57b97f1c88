package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/node/api"
)

func newStatusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Who this node is and how it fares",
		Example: `  mutirao status
  mutirao status -v                  # with its counters
  mutirao status -o json`,
		Args: arguments(),
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, _ []string) error {
			st, err := node.Status(ctx)
			if err != nil {
				return err
			}
			return u.result(st, func(w io.Writer) { u.writeStatus(w, st) })
		}),
	}
}

func (u *ui) writeStatus(w io.Writer, st *api.Status) {
	line := func(name, value string) { fmt.Fprintf(w, "%-12s %s\n", name, orDash(value)) }
	line("name", st.Name)
	line("mesh", st.Mesh)
	line("id", string(st.ID))
	line("roles", strings.Join(st.Roles, ", "))
	line("addresses", strings.Join(st.Addresses, "\n             "))
	line("running", "since "+clock(st.Since))
	line("instances", fmt.Sprint(st.Instances))
	switch {
	case st.Leaving && st.ForGood:
		line("leaving", "it takes nothing new on, and leaves for good when what it holds is done; to take that back before, restart it")
	case st.Leaving:
		line("leaving", "it takes nothing new on, and goes when what it holds is done; to take that back, restart it")
	}
	if st.Disconnected != nil {
		told := ""
		if st.Back != nil {
			told = ", until about " + clock(*st.Back) + " as partners were told"
		}
		line("contact", "disconnected on purpose since "+clock(*st.Disconnected)+told+"; back: mutirao worklist reconnect")
	}
	if st.LAN != nil {
		line("page", st.LAN.String())
	}
	line("version", st.Version)
	device := st.Device.OS + "/" + st.Device.Arch
	if st.Device.Battery != nil {
		device += ", " + st.Device.Battery.String()
	}
	if st.Device.Disk != nil {
		device += ", " + st.Device.Disk.String()
	}
	line("device", device)
	if u.verbose {
		line("incarnation", st.Incarnation)
		line("boot", fmt.Sprint(st.Boot))
		line("received", fmt.Sprintf("%d frames, %d bytes from partners", st.Traffic.FramesIn, st.Traffic.BytesIn))
		line("sent", fmt.Sprintf("%d frames, %d bytes to partners", st.Traffic.FramesOut, st.Traffic.BytesOut))
		for _, name := range slices.Sorted(maps.Keys(st.Counters)) {
			fmt.Fprintf(w, "  %-40s %d\n", name, st.Counters[name])
		}
	}
	for _, trouble := range st.Trouble {
		fmt.Fprintf(w, "%s %s\n", u.paint(red, fmt.Sprintf("%-12s", "trouble")), oneLine(trouble))
	}
}
