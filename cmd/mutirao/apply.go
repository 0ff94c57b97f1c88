package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/library"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// This file is about what workflow add does with instances that run.

// applied is what became of one instance to which a changed definition was applied.
type applied struct {
	ID      string       `json:"id"`
	Amended *api.Amended `json:"amended"`       // null: it is left as it was
	Why     string       `json:"why,omitempty"` // it is left so
}

// applier applies changed definitions to instances that run, or only says what that would do.
type applier struct {
	to   string // running, or IDs
	dry  bool
	user userFlag
}

func (a *applier) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.to, "apply-to", "",
		"then amend `instances`: running, or IDs with commas between them; see amend")
	cmd.Flags().BoolVar(&a.dry, "dry-run", false,
		"with --apply-to: say what differs and what is refused, and add and change nothing")
	a.user.add(cmd)
}

// running is what --apply-to says for all instances that run.
const running = "running"

// check refuses a list of instances that names none, and --dry-run without one.
func (a *applier) check(cmd *cobra.Command) error {
	ids := a.ids()
	switch {
	case !cmd.Flags().Changed("apply-to") && a.dry:
		return api.Errorf(api.Invalid, "--dry-run says what instances would do with the definition: name them with --apply-to").
			WithHint("mutirao workflow check FILE says what is wrong with a definition")
	case cmd.Flags().Changed("apply-to") && len(ids) == 0:
		return api.Errorf(api.Invalid, "--apply-to %q names no instance: want running, or IDs with commas between them", a.to).
			WithHint("list them: mutirao instances")
	case len(ids) > 1 && slices.Contains(ids, running):
		return usagef("--apply-to %s: running are all that run, so no IDs go with it", a.to)
	}
	return nil
}

// speaker refuses what nobody would sign: several users are signed in, and none is named.
func (a *applier) speaker(ctx context.Context, node userLister) error {
	if a.to == "" {
		return nil
	}
	return oneHere(ctx, node, a.user.who())
}

// ids are those that were named.
func (a *applier) ids() (out []string) {
	for _, id := range strings.Split(a.to, ",") {
		if id = strings.TrimSpace(id); id != "" {
			out = append(out, id)
		}
	}
	return out
}

// instances are the IDs of those that are meant.
func (a *applier) instances(ctx context.Context, node amender, of workflow.Name) ([]string, error) {
	ids := a.ids()
	if !slices.Equal(ids, []string{running}) {
		return ids, nil
	}
	ids = nil
	list, err := node.Instances(ctx, false)
	for _, x := range list {
		if x.Workflow == of && x.Ended == nil {
			ids = append(ids, x.ID)
		}
	}
	return ids, err
}

// apply has instances take a changed definition, and says of which it is not so, and why. That is an error: whoever has a
// script do it is to know that some run on by the definition of before.
func (a *applier) apply(
	ctx context.Context, u *ui, node amender, wf *api.Workflow, file string, src []byte,
) ([]applied, error) {
	ids, err := a.instances(ctx, node, wf.Name)
	if err != nil {
		return nil, err
	}
	out := []applied{}
	take := func(id string) (bool, error) {
		done, err := node.AmendInstance(ctx, api.AmendRequest{
			User: a.user.who(), ID: id, File: file, Source: string(src),
		})
		if err != nil {
			return false, err
		}
		u.note("%s", u.amendedText(done))
		u.atOnce(done.AtOnce)
		u.unheard(done)
		out = append(out, applied{ID: done.ID, Amended: done})
		return true, nil
	}
	leave := func(id string, why error) { out = append(out, applied{ID: id, Why: why.Error()}) }
	err = a.each(ctx, u, ids, edition(*wf), take, leave)
	return out, err
}

// each has instances take something, and says why some are left as they are. What take refuses without an error it has
// said itself. What ends the node ends it all.
func (a *applier) each(
	ctx context.Context, u *ui, ids []string, what string, take func(id string) (bool, error), leave func(string, error),
) error {
	left, code := 0, api.Code("")
	for _, id := range ids {
		taken, err := take(id)
		var no *api.Error
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &no) && no.Code == api.NoNode: // it says nothing of this instance, nor of those that follow
			return err
		case taken:
			continue
		case err != nil:
			leave(id, err)
			u.leftAsItIs(id, err)
		}
		of := api.Refused
		if err != nil {
			of = errorCode(err)
		}
		if left++; left == 1 {
			code = of
		} else if code != of { // they have no reason in common but that they do not take it
			code = api.Refused
		}
	}
	if left == 0 {
		return nil
	}
	return a.notApplied(code, fmt.Sprintf("%d of %s cannot take %s", left, plural(len(ids), "instance"), what))
}

// leftAsItIs says why an instance does not take a change.
func (u *ui) leftAsItIs(id string, err error) {
	var no *api.Error
	why := err.Error()
	if errors.As(err, &no) {
		why = no.Message
		if first, rest, _ := strings.Cut(why, " "); strings.HasPrefix(first, strings.ToLower(id)) {
			why = "it " + rest // this line names the instance
		}
		if no.Hint != "" {
			why += " (" + no.Hint + ")"
		}
	}
	if errorCode(err) == api.NotFound {
		u.note("%s", oneLine(why)) // it names what is not there
	} else {
		u.note("%s is left as it is: %s", oneLine(u.id(id)), oneLine(why))
	}
}

// notApplied is the error of instances that are left as they were, all for a reason of that kind.
func (a *applier) notApplied(code api.Code, what string) error {
	switch code {
	case api.NotFound:
		return &exitError{code.Exit(), what + ": there is no such instance here", "list them: mutirao instances --all"}
	case api.NotAllowed:
		return &exitError{
			code.Exit(), what + ": others decide about that",
			"ask those who do, or name somebody who does with --user; mutirao show ID says who answers for it",
		}
	}
	hint := "mutirao amend ID FILE --dry-run lists all that is refused"
	if a.dry {
		hint = "change the file there, and try again; instances that are started later can run by it as it is"
	}
	return &exitError{api.Refused.Exit(), what, hint}
}

// foreseenAll is what instances would do with a changed definition.
type foreseenAll struct {
	Workflow  workflow.Name `json:"workflow"`
	Version   int           `json:"version"`
	Instances []foreseen    `json:"instances"`
}

// foreseen is what one instance would do with a changed definition.
type foreseen struct {
	ID        string         `json:"id"`
	Amendment *api.Amendment `json:"amendment"`     // null: it is left as it is
	Why       string         `json:"why,omitempty"` // it is left so
}

// foresee says what instances would do with the definitions in files. Nothing is added, and nothing is changed. A
// definition takes the pieces of these files, as if those had been added.
func (a *applier) foresee(cmd *cobra.Command, u *ui, node api.Service, files []string) error {
	out := []foreseenAll{}
	before := map[string]*workflow.Piece{}
	var refused error
	read, err := readFiles(cmd, files)
	if err != nil {
		return err
	}
	for _, x := range read {
		file, src := x.file, x.src
		if workflow.HoldsPieces(src) {
			pieces, err := workflow.ParsePieces(filepath.ToSlash(file), src)
			if err != nil {
				return api.Judge(api.Failed, err)
			}
			for _, p := range pieces {
				before[p.Ref()] = p
			}
			u.note("%s: models and applications by themselves, which no instance takes", file)
			continue
		}
		def, err := definitionBy(cmd.Context(), node, filepath.ToSlash(file), src, before)
		if err != nil {
			return api.Judge(api.Failed, err)
		}
		if len(before) > 0 { // the node does not list them
			src = def.Canonical()
		}
		one, err := a.foreseeOne(cmd.Context(), u, node, def, filepath.ToSlash(file), src)
		if err != nil {
			refused = err
		}
		out = append(out, one)
	}
	if err := u.result(out, func(w io.Writer) { u.writeForeseen(w, out) }); err != nil {
		return err
	}
	return refused
}

// definitionBy reads a definition with some pieces, and with those that a node lists.
func definitionBy(
	ctx context.Context, node api.Service, file string, src []byte, pieces map[string]*workflow.Piece,
) (*workflow.Definition, error) {
	g := given{pieces: pieces, piece: func(ref string) *workflow.Piece { return listedPiece(ctx, node, ref) }}
	def, err := workflow.ParseWith(file, src, g.shared)
	if err == nil {
		err = library.Check(def)
	}
	return def, err
}

// foreseeOne says what instances would do with one definition.
func (a *applier) foreseeOne(
	ctx context.Context, u *ui, node amender, def *workflow.Definition, file string, src []byte,
) (out foreseenAll, err error) {
	out = foreseenAll{Workflow: def.Name, Version: def.Version, Instances: []foreseen{}}
	ids, err := a.instances(ctx, node, def.Name)
	if err != nil {
		return out, err
	}
	take := func(id string) (bool, error) {
		seen, err := node.ForeseeAmendment(ctx, api.AmendRequest{
			User: a.user.who(), ID: id, File: file, Source: string(src),
		})
		if err != nil {
			return false, err
		}
		out.Instances = append(out.Instances, foreseen{ID: seen.ID, Amendment: seen})
		return len(seen.Refused)+len(seen.NotYet) == 0, nil
	}
	leave := func(id string, why error) { out.Instances = append(out.Instances, foreseen{ID: id, Why: why.Error()}) }
	err = a.each(ctx, u, ids, fmt.Sprintf("%s@%d", def.Name, def.Version), take, leave)
	return out, err
}

// writeForeseen tells people what each instance would do, under a line that names it.
func (u *ui) writeForeseen(w io.Writer, all []foreseenAll) {
	for _, one := range all {
		for _, x := range one.Instances {
			if x.Amendment == nil {
				continue // it was said why
			}
			fmt.Fprintf(w, "%s %s@%d -> %d\n", u.id(x.ID), x.Amendment.Workflow, x.Amendment.Version,
				x.Amendment.NewVersion)
			if len(x.Amendment.Changes) == 0 {
				fmt.Fprintln(w, "it runs by what means the same: there is nothing to change")
			}
			writeAmendment(w, x.Amendment)
		}
	}
}
