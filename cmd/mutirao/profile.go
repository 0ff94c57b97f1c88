package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

func newProfileCommand() *cobra.Command {
	return newGroup("profile", "What this partner says about itself", newProfileShowCommand(), newProfileSetCommand())
}

func newProfileShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show",
		Short: "This partner's capabilities, applications, suitability and availability",
		Example: `  mutirao profile show
  mutirao profile show -o yaml`,
		Args: arguments(),
		RunE: ask(func(ctx context.Context, u *ui, node api.Service, _ []string) error {
			p, err := node.Profile(ctx)
			return u.writeProfile(p, err)
		}),
	}
}

// profileOptions are the options of profile set.
type profileOptions struct {
	capabilities, applications, suitability []string
	availability, connectionTime            string
}

func newProfileSetCommand() *cobra.Command {
	var o profileOptions
	cmd := &cobra.Command{
		Use:   "set [--capability C]... [--application A]... [--suitability NAME=0..1]... [--availability 0..1] [--connection-time 15s]",
		Short: "Change what this partner says about itself",
		Long: `Changes the profile, which all partners see and by which work is assigned. An option
that may be repeated replaces the whole list, and "" empties it; --suitability changes
single entries, and NAME= removes one. Roles come with the certificate: they cannot be
set here.`,
		Example: `  mutirao profile set --capability pump --capability ladder
  mutirao profile set --suitability rescue=0.9 --suitability driver=0.4
  mutirao profile set --availability low
  mutirao profile set --application file-report     # the node has what runs it
  mutirao profile set --connection-time 5m`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, args []string) error {
			change, err := o.change(cmd.Flags())
			if err != nil {
				return err
			}
			return ask(func(ctx context.Context, u *ui, node api.Service, _ []string) error {
				was, err := node.Profile(ctx)
				if err != nil {
					return err
				}
				p, err := node.SetProfile(ctx, change)
				if err == nil {
					u.noteDropped(was, p)
				}
				return u.writeProfile(p, err)
			})(cmd, args)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringSliceVar(&o.capabilities, "capability", nil, "a `capability`; may be repeated")
	f.StringSliceVar(&o.applications, "application", nil,
		"an `application` beside the configured ones; may be repeated")
	f.StringArrayVar(&o.suitability, "suitability", nil,
		"how apt it is for a task, role or capability: `NAME=0..1`; may be repeated")
	f.StringVar(&o.availability, "availability", "",
		"high (1), medium (0.9), low (0.8), none (0: it is given nothing) or a `number` from 0 to 1")
	completeWords(cmd, "availability", "high", "medium", "low", "none")
	f.StringVar(&o.connectionTime, "connection-time", "",
		"how `long` others may go without hearing of it; 0: as configured")
	return cmd
}

// noteDropped says what a node announces no more: what is set stands in place of all that was set before, and what ran
// by it fails.
func (u *ui) noteDropped(was, is *api.Profile) {
	var gone []string
	for _, kind := range []struct {
		what    string
		was, is []string
	}{{"application ", was.Applications, is.Applications}, {"capability ", was.Capabilities, is.Capabilities}} {
		for _, name := range kind.was {
			if !slices.Contains(kind.is, name) {
				gone = append(gone, kind.what+name)
			}
		}
	}
	if len(gone) > 0 {
		u.note("%s has no more: %s; name all that it is to have", is.Name, strings.Join(gone, ", "))
	}
}

// change reads the options that were given.
func (o profileOptions) change(f *pflag.FlagSet) (api.ProfileChange, error) {
	var c api.ProfileChange
	given := 0
	f.Visit(func(x *pflag.Flag) {
		switch x.Name {
		case "capability":
			c.Capabilities = named(o.capabilities)
		case "application":
			c.Applications = named(o.applications)
		case "suitability", "availability", "connection-time":
		default:
			return
		}
		given++
	})
	if given == 0 {
		return c, usagef("profile set needs something to change")
	}
	if err := o.readSuitability(&c); err != nil {
		return c, err
	}
	return c, o.readRest(&c)
}

// named drops the empty name, which stands for no names at all.
func named(list []string) *[]string {
	out := slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == "" })
	if out == nil {
		out = []string{}
	}
	return &out
}

func (o profileOptions) readSuitability(c *api.ProfileChange) error {
	entries, err := pairs("suitability", "NAME=0..1", o.suitability)
	if err != nil {
		return err
	}
	c.Suitability = map[string]float64{}
	for name, text := range entries {
		if text == "" {
			c.Suitability[name] = -1
			continue
		}
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || !(v >= 0 && v <= 1) {
			return usagef("--suitability %s=%s: want a number from 0 to 1", name, text)
		}
		c.Suitability[name] = v
	}
	return nil
}

// availabilities are the levels that have a name.
var availabilities = map[string]float64{"high": 1, "medium": 0.9, "low": 0.8, "none": 0}

func (o profileOptions) readRest(c *api.ProfileChange) error {
	if o.availability != "" {
		v, ok := availabilities[o.availability]
		if !ok {
			var err error
			if v, err = strconv.ParseFloat(o.availability, 64); err != nil || !(v >= 0 && v <= 1) {
				return usagef("--availability %s: want high, medium, low, none or a number from 0 to 1", o.availability)
			}
		}
		c.Availability = &v
	}
	if o.connectionTime != "" {
		d, err := workflow.ParseDuration(o.connectionTime)
		if err != nil && o.connectionTime != "0" {
			return usagef("--connection-time %s: want a duration such as 15s or 5m", o.connectionTime)
		}
		span := api.Span(d)
		c.ConnectionTime = &span
	}
	return nil
}

func (u *ui) writeProfile(p *api.Profile, err error) error {
	if err != nil {
		return err
	}
	return u.result(p, func(w io.Writer) {
		line := func(name, value string) { fmt.Fprintf(w, "%-15s %s\n", name, orDash(value)) }
		var suits []string
		for _, name := range slices.Sorted(maps.Keys(p.Suitability)) {
			suits = append(suits, fmt.Sprintf("%s=%v", name, p.Suitability[name]))
		}
		line("name", p.Name)
		line("roles", strings.Join(p.Roles, ", "))
		line("capabilities", strings.Join(p.Capabilities, ", "))
		line("applications", strings.Join(p.Applications, ", "))
		line("databases", strings.Join(p.Databases, ", "))
		line("suitability", strings.Join(suits, ", "))
		for _, l := range p.Learned {
			line("learned", l.Task+": "+l.From)
		}
		line("availability", fmt.Sprint(p.Availability))
		line("connection-time", span(p.ConnectionTime))
	})
}
