package main

import (
	"context"
	"fmt"
	"io"

	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// given are the definitions that one may use: those of the files that are checked, and those
// that the node in a folder lists, if one runs there.
type given struct {
	files map[workflow.Name]*workflow.Definition
	here  func(workflow.Name) *workflow.Definition
	asked map[workflow.Name]*workflow.Definition
	// pieces are those of the files, by model/NAME and application/NAME; piece asks the node for others.
	pieces map[string]*workflow.Piece
	piece  func(ref string) *workflow.Piece
}

// shared finds a piece, as a definition takes it.
func (g *given) shared(kind workflow.PieceKind, name string) *workflow.Piece {
	ref := string(kind) + "/" + name
	if p := g.pieces[ref]; p != nil || g.piece == nil {
		return p
	}
	return g.piece(ref)
}

// readGiven reads all files, in their order; those with mistakes are used by none.
func readGiven(ctx context.Context, stdin io.Reader, dir string, files []string) (texts [][]byte, g *given, err error) {
	g = &given{
		files: map[workflow.Name]*workflow.Definition{}, asked: map[workflow.Name]*workflow.Definition{},
		pieces: map[string]*workflow.Piece{},
	}
	for _, file := range files {
		src, err := readSource(stdin, file)
		if err != nil {
			return nil, nil, err
		}
		texts = append(texts, src)
		pieces, _ := workflow.ParsePieces(file, src) // mistakes are reported with the file
		for _, p := range pieces {
			g.pieces[p.Ref()] = p
		}
	}
	node, err := httpapi.Dial(dir)
	if err == nil {
		g.piece = func(ref string) *workflow.Piece { return listedPiece(ctx, node, ref) }
	}
	for i, file := range files {
		if def, err := workflow.ParseWith(file, texts[i], g.shared); err == nil {
			g.files[def.Name] = def
		}
	}
	if err != nil {
		return texts, g, nil // no node runs there
	}
	g.here = func(name workflow.Name) *workflow.Definition { return listed(ctx, node, name) }
	return texts, g, nil
}

// listed is the definition that a node lists under a name; nil: none, or it does not answer.
func listed(ctx context.Context, node api.Service, name workflow.Name) *workflow.Definition {
	w, err := node.Workflow(ctx, string(name))
	if err != nil {
		return nil
	}
	def, err := workflow.Parse(string(name), w.Definition)
	if err != nil {
		return nil
	}
	return def
}

func (g *given) known(name workflow.Name) *workflow.Definition {
	if def := g.files[name]; def != nil || g.here == nil {
		return def
	}
	if _, asked := g.asked[name]; !asked {
		g.asked[name] = g.here(name)
	}
	return g.asked[name]
}

// unknown are the uses of workflows that are neither given nor known.
func (g *given) unknown(def *workflow.Definition) (out []workflow.FeatureUse) {
	for _, f := range workflow.Features(def) {
		if t := def.Task(f.Task); f.Feature == "uses" && t != nil && g.known(t.Uses.Workflow) == nil {
			out = append(out, f)
		}
	}
	return out
}

// loop reports the tasks of a definition by which it would be part of itself, or instances be nested too deep.
func (g *given) loop(file string, def *workflow.Definition) (out workflow.Errors) {
	height := map[workflow.Name]int{}
	for _, f := range workflow.Features(def) {
		t := def.Task(f.Task)
		if f.Feature != "uses" || t == nil {
			continue
		}
		if way := g.walk(t.Uses.Workflow, string(def.Name), []workflow.Name{def.Name}, height); way != "" {
			out = append(out, workflow.Problem{File: file, Line: f.Line, Col: f.Col,
				Message: fmt.Sprintf("task %s: %s", f.Task, way),
				Hint: fmt.Sprintf("a workflow cannot be part of itself, and instances are nested %d deep at most",
					fact.MaxNesting)})
		}
	}
	return out
}

// walk returns the way to a workflow that is its own part, or lies too deep; empty: there is none.
func (g *given) walk(name workflow.Name, way string, path []workflow.Name, height map[workflow.Name]int) string {
	way += " uses " + string(name)
	for _, p := range path {
		if p == name {
			return way
		}
	}
	if len(path)+height[name] > fact.MaxNesting {
		return way
	}
	def := g.known(name)
	if _, walked := height[name]; walked || def == nil {
		return ""
	}
	below := 0
	for _, sub := range workflow.SubWorkflows(def) {
		if w := g.walk(sub, way, append(path[:len(path):len(path)], name), height); w != "" {
			return w
		}
		below = max(below, height[sub]+1)
	}
	height[name] = below
	return ""
}

// listedPiece is the piece that a node lists under a name; nil: none, or it does not answer.
func listedPiece(ctx context.Context, node api.Service, ref string) *workflow.Piece {
	w, err := node.Workflow(ctx, ref)
	if err != nil || w.Kind == "" {
		return nil
	}
	p, err := workflow.ParsePiece(w.Definition)
	if err != nil {
		return nil
	}
	return p
}
