package node_test

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/choreo"
	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/state"
	"github.com/mutirao-mesh/mutirao/internal/private"
	"github.com/mutirao-mesh/mutirao/internal/said"
	"github.com/mutirao-mesh/mutirao/membership"
	"github.com/mutirao-mesh/mutirao/membership/election"
	"github.com/mutirao-mesh/mutirao/membership/invitation"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/node"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/elections"
	"github.com/mutirao-mesh/mutirao/node/store/kv"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// What errors from below mean to whoever asked: exit status, HTTP status, and words with
// partners by their names.
func TestErrorsAreExplained(t *testing.T) {
	const crew workflow.PartnerID = "12D3KooWCrewCrewCrew"
	called := func(workflow.PartnerID) string { return "crew" }
	for _, c := range []struct {
		err        error
		code       api.Code
		exit, http int
		what, next string
	}{
		{fmt.Errorf("%w: %q", membership.ErrNoPartner, "x"), api.NotFound, 3, 404, `no such partner: "x"`,
			"mutirao partners lists them"},
		{membership.ErrAmbiguous, api.Invalid, 2, 400, "more than one partner", "mutirao partners shows the IDs"},
		{fmt.Errorf("%w: %q", state.ErrNoTask, "x"), api.NotFound, 3, 404, `no such task: "x"`,
			"mutirao show ID lists the tasks of an instance"},
		{&choreo.Elsewhere{Task: "fly", Partner: crew}, api.Refused, 6, 409, "task fly is held by crew",
			"do that on the node of crew"},
		{&choreo.Unanswerable{By: crew}, api.NotAllowed, 5, 403,
			"only crew, who began the instance, may write somebody off", "do that on the node of crew"},
		{fmt.Errorf("%w: it is done", state.ErrNotNow), api.Refused, 6, 409, "refused: it is done", ""},
		{state.ErrOutput, api.Invalid, 2, 400, "wrong output", ""},
		{fmt.Errorf("%w: %w", state.ErrOutput, fact.ErrInvalid), api.Invalid, 2, 400,
			"wrong output: invalid fact", ""},
		{said.Errorf("vote of %s: %w", crew, trust.ErrNotAllowed), api.NotAllowed, 5, 403, "vote of crew: not allowed",
			""},
		{&elections.Held{By: crew, Evicted: true, Lease: 15 * time.Second}, api.Refused, 6, 409,
			"crew was evicted, and is the coordinator until its lease ends",
			"try again in 15s: nobody else is elected before, as it may not know yet"},
		{&elections.Held{By: crew}, api.Refused, 6, 409, "crew is the coordinator",
			"have it resign first: mutirao coordinator resign, on crew"},
		{&elections.Held{By: crew, Silent: true, Lapses: 8200 * time.Millisecond}, api.Refused, 6, 409,
			"crew is the coordinator as far as this node knows, and cannot be reached: " +
				"it counts as that for 9s more, unless it is heard of",
			"try again then: until its lease has run out it may act in office, and nobody else is elected"},
		{fmt.Errorf("%w: crew is", election.ErrNotCoordinator), api.Refused, 6, 409,
			"this node is not the coordinator: crew is", ""},
		{election.ErrNoElectorate, api.Refused, 6, 409, "this node does not know yet who may vote",
			"it learns it from any partner: mutirao partners shows who can be reached"},
		{fmt.Errorf("%w in x", node.ErrNoMember), api.NotFound, 3, 404, "there is no node in x",
			`make one with "mutirao init" or "mutirao join", or name another folder with --dir`},
		{&private.LooseError{Path: "key", What: "can be read by others", Mend: "chmod 600 key"}, api.Refused, 6, 409,
			"key can be read by others", "chmod 600 key"},
		{api.Errorf(api.Invalid, "%s is named twice", crew), api.Invalid, 2, 400, "crew is named twice", ""},
		{api.ErrStopping, api.NoNode, 4, 503, "the node is stopping", ""},
		{fmt.Errorf("get: %w", kv.ErrDamaged), api.Failed, 1, 500, "get: damaged",
			"mutirao doctor reads all of the store; starting the node again mends what can be mended"},
		{fmt.Errorf("commit: %w", kv.ErrClosed), api.NoNode, 4, 503, "the node is stopping", ""},
		{fmt.Errorf("%w: x has format 9", kv.ErrUnfit), api.Refused, 6, 409, "store not opened: x has format 9", ""},
		{fmt.Errorf("%w: 9, at most 8", election.ErrHandedOver), api.Refused, 6, 409,
			"the electorate was handed over too often: 9, at most 8",
			"the founder signs the next: mutirao coordinator electorate --set … --override"},
		{fmt.Errorf("%w: 9", invitation.ErrManyOpen), api.Refused, 6, 409, "too many invitations are open: 9", ""},
		{api.Judge(api.Invalid, said.Errorf("%s: %w", crew, trust.ErrNotAllowed)), api.Invalid, 2, 400,
			"crew: not allowed", ""},
	} {
		var e *api.Error
		if !errors.As(node.Explain(c.err, called), &e) {
			t.Errorf("%v: want an *api.Error", c.err)
			continue
		}
		if e.Code != c.code || e.Message != c.what || e.Hint != c.next {
			t.Errorf("%v: got %s %q, hint %q, want %s %q, hint %q", c.err, e.Code, e.Message, e.Hint, c.code, c.what,
				c.next)
		}
		if e.Code.Exit() != c.exit || e.Code.HTTP() != c.http {
			t.Errorf("%v: got exit %d and HTTP %d, want %d and %d", c.err, e.Code.Exit(), e.Code.HTTP(), c.exit, c.http)
		}
	}
	// What was not foreseen stays what it is: whoever shows errors logs it, and says so.
	unforeseen := fmt.Errorf("read: %w", fs.ErrPermission)
	for _, err := range []error{nil, context.Canceled, fmt.Errorf("wait: %w", context.DeadlineExceeded), unforeseen} {
		if got := node.Explain(err, called); got != err {
			t.Errorf("%v becomes %v", err, got)
		}
	}
}

// Every method of api.Service explains its errors, whatever they come from. Watch ends with
// an error of its caller's.
func TestServiceExplainsItsErrors(t *testing.T) {
	asked := map[string]bool{}
	for m := range reflect.TypeFor[api.Service]().Methods() {
		asked[m.Name] = m.Name != "Watch"
	}
	seen := 0
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv == nil || !asked[fn.Name.Name] || !strings.HasSuffix(receiver(fn), "Service") {
				continue
			}
			seen++
			ast.Inspect(fn.Body, func(n ast.Node) bool {
				if r, ok := n.(*ast.ReturnStmt); ok {
					if last := r.Results[len(r.Results)-1]; !isExplained(last) {
						t.Errorf("%s returns an error that was not explained", fn.Name.Name)
					}
				}
				_, inner := n.(*ast.FuncLit)
				return !inner
			})
		}
	}
	if want := len(asked) - 1; seen != want {
		t.Errorf("%d methods of parts of service answer for api.Service, want %d", seen, want)
	}
}

// An error from below that is only passed on gets its code in explain.go, or by api.Judge:
// nowhere is one made into text without a word about what was done, which would hide from
// the table what it is.
func TestErrorsFromBelowAreJudgedInTheOpen(t *testing.T) {
	err := filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) != 3 {
				return true
			}
			of, isSelector := call.Fun.(*ast.SelectorExpr)
			format, isText := call.Args[1].(*ast.BasicLit)
			if isSelector && isText && of.Sel.Name == "Errorf" && format.Value == `"%v"` {
				t.Errorf("%s: an error is given a code by api.Errorf(…, \"%%v\", err): use api.Judge, or a row in explain.go", name)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// receiver is the type of a method's receiver, without the star.
func receiver(fn *ast.FuncDecl) string {
	if star, ok := fn.Recv.List[0].Type.(*ast.StarExpr); ok {
		return star.X.(*ast.Ident).Name
	}
	return ""
}

// isExplained reports whether a returned error is nil, or what explain says of one.
func isExplained(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name == "nil"
	case *ast.CallExpr:
		sel, ok := e.Fun.(*ast.SelectorExpr)
		return ok && strings.EqualFold(sel.Sel.Name, "explain")
	}
	return false
}
