package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/internal/private"
	"github.com/mutirao-mesh/mutirao/node"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// membershipInfo is what init and join print for programs.
type membershipInfo struct {
	Mesh  string   `json:"mesh"`
	Name  string   `json:"name"`
	Roles []string `json:"roles"`
	Dir   string   `json:"dir"`
}

func newInitCommand() *cobra.Command {
	var o node.InitOptions
	cmd := &cobra.Command{
		Use:   "init --mesh NAME --name PARTNER [--role R]...",
		Short: "° Found a mesh, with this node as its first partner",
		Long: `Makes the folder of a new node and founds a mesh with it. The founder's key, in
that folder, decides who belongs to the mesh: keep a copy of it in a safe place.`,
		Example: `  mutirao init --mesh fire-service --name station --role commander
  mutirao init --mesh trial --name one --dir ./one`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkRoles(cmd, o.Roles); err != nil {
				return err
			}
			o.Mesh, o.Name = workflow.UsualForm(o.Mesh), workflow.UsualForm(o.Name)
			for i, role := range o.Roles {
				o.Roles[i] = workflow.UsualForm(role)
			}
			if err := checkNames(map[string][]string{"mesh": {o.Mesh}, "name": {o.Name}, "role": o.Roles}); err != nil {
				return err
			}
			dir := nodeDir(cmd)
			if _, err := node.Init(dir, o); err != nil {
				return err
			}
			return uiOf(cmd).writeMembership(membershipInfo{o.Mesh, o.Name, append([]string{}, o.Roles...), dir},
				"founded")
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&o.Mesh, "mesh", "", "the `name` of the new mesh")
	f.StringVar(&o.Name, "name", "", "this `partner`'s name")
	f.StringSliceVar(&o.Roles, "role", nil, "a `role` of this partner; may be repeated")
	return cmd
}

// checkNames checks options that are names; an empty one was left out.
func checkNames(flags map[string][]string) error {
	for _, flag := range []string{"mesh", "name", "role"} {
		for _, name := range flags[flag] {
			if name == "" {
				return usagef("--%s is missing", flag)
			}
			if rule := workflow.NameRule(name); rule != "" {
				return usagef("--%s %q: want %s", flag, name, rule)
			}
		}
	}
	return nil
}

// checkRoles refuses --role without a name, as of a variable that is not set in a script:
// nobody wants a partner without its role by mistake.
func checkRoles(cmd *cobra.Command, roles []string) error {
	if f := cmd.Flags().Lookup("role"); f != nil && f.Changed && len(roles) == 0 {
		return usagef("--role has no name: name a role, or leave --role out")
	}
	return nil
}

func (u *ui) writeMembership(m membershipInfo, did string) error {
	err := u.result(m, func(w io.Writer) { fmt.Fprintf(w, "%s %s mesh %s in %s\n", m.Name, did, m.Mesh, m.Dir) })
	u.note("Next: mutirao up --dir %s", private.Quote(m.Dir))
	return err
}
