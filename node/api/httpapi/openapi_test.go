package httpapi

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/internal/golden"
	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// The document that the node serves is what follows from the table of routes,
// the types of requests and replies, and their comments. After a change:
// go test ./node/api/httpapi -run OpenAPI -rewrite.
func TestOpenAPIDocumentIsUpToDate(t *testing.T) {
	d := newDocument(t)
	got, err := json.MarshalIndent(d.build(), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	golden.Compare(t, "openapi.json", got)
}

type object = map[string]any

// document makes an OpenAPI 3.1 document from the table of routes.
type document struct {
	comments map[string]string // "Type" or "Type.Field" → comment
	schemas  object
}

func newDocument(t *testing.T) *document {
	t.Helper()
	d := &document{comments: map[string]string{}, schemas: object{}}
	files, err := filepath.Glob("*.go")
	if err == nil {
		var contract []string
		contract, err = filepath.Glob("../*.go")
		files = append(files, contract...)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		d.readComments(f)
	}
	return d
}

func (d *document) readComments(f *ast.File) {
	for _, decl := range f.Decls {
		g, ok := decl.(*ast.GenDecl)
		if !ok || g.Tok != token.TYPE {
			continue
		}
		for _, spec := range g.Specs {
			ts := spec.(*ast.TypeSpec)
			d.comments[ts.Name.Name] = comment(g.Doc)
			st, ok := ts.Type.(*ast.StructType)
			if !ok {
				continue
			}
			for _, field := range st.Fields.List {
				text := comment(field.Doc)
				if text == "" {
					text = comment(field.Comment)
				}
				for _, name := range field.Names {
					d.comments[ts.Name.Name+"."+name.Name] = text
				}
			}
		}
	}
}

func comment(c *ast.CommentGroup) string {
	return strings.Join(strings.Fields(c.Text()), " ")
}

func (d *document) build() object {
	paths := object{}
	for _, rt := range routes {
		item, ok := paths[rt.path].(object)
		if !ok {
			item = object{}
			paths[rt.path] = item
		}
		item[strings.ToLower(rt.method)] = d.operation(rt)
	}
	d.schema(reflect.TypeFor[api.Error]())
	return object{
		"openapi": "3.1.0",
		"info": object{
			"title": "Mutirão: a node's local interface", "version": "1",
			"description": "Everything that the command line can do. The address and the token are in " +
				api.AccessFile +
				" in the node's folder; that token may do everything. Others are added with a scope (mutirao token add): read looks at everything, work also " +
				"starts and cancels instances, finishes and rejects tasks, registers data and does jobs, admin does all; worker:APPLICATION " +
				"does the jobs of that application, and nothing else. The security of each operation names the scope that it needs. " +
				"An id may be any unique prefix of an instance's ID.",
		},
		"paths":    paths,
		"security": []any{object{"token": []any{}}},
		"components": object{
			"schemas": d.schemas, "securitySchemes": object{"token": object{"type": "http", "scheme": "bearer"}},
		},
	}
}

// binary is the content of a file.
var binary = object{fileKind: object{"schema": object{"type": "string", "format": "binary"}}}

var braces = regexp.MustCompile(`\{(\w+)\}`)

func (d *document) operation(rt *route) object {
	op := object{"operationId": rt.name, "summary": rt.summary}
	op["security"] = []any{object{"token": []any{rt.scope}}}
	if rt.scope == everybody || rt.local {
		op["security"] = []any{}
	}
	var params []any
	for _, m := range braces.FindAllStringSubmatch(rt.path, -1) {
		params = append(params, object{
			"name": m[1], "in": "path", "required": true, "schema": object{"type": "string"},
		})
	}
	for _, p := range rt.query {
		s := object{"type": "string"}
		if p.values != nil {
			s["enum"] = p.values
		}
		param := object{"name": p.name, "in": "query", "description": p.doc, "schema": s}
		if p.must {
			param["required"] = true
		}
		params = append(params, param)
	}
	if params != nil {
		op["parameters"] = params
	}
	switch rt.body.(type) {
	case nil:
	case source:
		op["requestBody"] = object{
			"required": true, "content": object{"application/yaml": object{"schema": object{"type": "string"}}},
		}
	case content:
		op["requestBody"] = object{"required": true, "content": binary}
	default:
		op["requestBody"] = object{"required": true, "content": d.content("application/json", reflect.TypeOf(rt.body))}
	}
	op["responses"] = d.responses(rt)
	if rt.none != "" {
		op["responses"].(object)["204"] = object{"description": rt.none}
	}
	if rt.example != "" {
		exemplify(op["requestBody"], rt.example)
	}
	if rt.answer != "" {
		exemplify(op["responses"].(object)["200"], rt.answer)
	}
	return op
}

// exemplify puts an example into a body or a reply.
func exemplify(of any, text string) {
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		panic("example " + text + ": " + err.Error())
	}
	for _, content := range of.(object)["content"].(object) {
		content.(object)["example"] = v
	}
}

// An example is what the route takes, or answers.
func TestExamples(t *testing.T) {
	for _, rt := range routes {
		for _, x := range []struct {
			text string
			of   any
		}{{rt.example, rt.body}, {rt.answer, rt.reply}} {
			if x.text == "" {
				continue
			}
			if err := decodeStrict([]byte(x.text), reflect.New(reflect.TypeOf(x.of)).Interface()); err != nil {
				t.Errorf("%s: %s: %v", rt.name, x.text, err)
			}
		}
	}
}

func (d *document) responses(rt *route) object {
	failed := object{
		"description": "What, why, and the next step",
		"content":     d.content("application/json", reflect.TypeFor[api.Error]()),
	}
	switch rt.reply.(type) {
	case nil:
		return object{"204": object{"description": "Done"}, "default": failed}
	case picture:
		content := object{}
		for _, kind := range pictureKinds {
			content[kind] = object{"schema": object{"type": "string"}}
		}
		return object{"200": object{"description": "The drawing", "content": content}, "default": failed}
	case content:
		return object{"200": object{"description": "The content", "content": binary}, "default": failed}
	case exposition:
		return object{"200": object{
			"description": "Samples", "content": object{"text/plain": object{"schema": object{"type": "string"}}},
		}, "default": failed}
	case api.Event, api.JobNotice:
		return object{"200": object{"description": "A stream; each event's data is one JSON value",
			"content": d.content("text/event-stream", reflect.TypeOf(rt.reply))}, "default": failed}
	}
	return object{"200": object{
		"description": "Done", "content": d.content("application/json", reflect.TypeOf(rt.reply)),
	}, "default": failed}
}

func (d *document) content(kind string, t reflect.Type) object {
	return object{kind: object{"schema": d.schema(t)}}
}

func (d *document) schema(t reflect.Type) object {
	switch t {
	case reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case reflect.TypeFor[time.Duration]():
		panic("a duration of the API is an api.Span: as a number nobody knows of what")
	case reflect.TypeFor[api.Span]():
		return object{"type": "string", "pattern": `^(([0-9]+(\.[0-9]*)?|\.[0-9]+)(d|h|m|s|ms|us|ns))*$`, "examples": []string{"2h", "90s", "2d"}}
	case reflect.TypeFor[json.RawMessage](), reflect.TypeFor[any]():
		return object{}
	}
	if values, ok := enums[t]; ok {
		return object{"type": "string", "enum": values}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return object{"anyOf": []any{d.schema(t.Elem()), object{"type": "null"}}}
	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int, reflect.Int64, reflect.Uint64:
		return object{"type": "integer", "format": "int64"}
	case reflect.Float64:
		return object{"type": "number"}
	case reflect.Slice:
		return object{"type": "array", "items": d.schema(t.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": d.schema(t.Elem())}
	case reflect.Struct:
		d.structure(t)
		return object{"$ref": "#/components/schemas/" + title(t.Name())}
	}
	panic("no schema for " + t.String())
}

// enums are the types of which a reader wants to know all values.
var enums = map[reflect.Type]any{
	reflect.TypeFor[api.Code](): []api.Code{
		api.Failed, api.Invalid, api.NotFound, api.NoNode, api.NotAllowed, api.Refused, api.NotYet,
		api.Internal,
	},
	reflect.TypeFor[workflow.State](): []workflow.State{
		workflow.NotReady, workflow.Ready, workflow.Running, workflow.Succeeded,
		workflow.Failed, workflow.Aborted, workflow.Blocked, workflow.Skipped,
	},
	reflect.TypeFor[workflow.InstanceState](): []workflow.InstanceState{
		workflow.InstanceRunning, workflow.InstanceSucceeded, workflow.InstanceFailed,
		workflow.InstanceBlocked, workflow.InstanceCancelled, workflow.InstanceInterrupted,
	},
	reflect.TypeFor[workflow.Coordination](): []workflow.Coordination{workflow.Choreography, workflow.Orchestration},
}

func (d *document) structure(t reflect.Type) {
	if d.schemas[title(t.Name())] != nil {
		return
	}
	properties, required := object{}, []string{}
	d.schemas[title(t.Name())] = object{
		"type": "object", "description": d.comments[t.Name()], "properties": properties,
	}
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() {
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		s := d.schema(f.Type)
		if text := d.comments[t.Name()+"."+f.Name]; text != "" {
			s["description"] = text
		}
		properties[name] = s
		if !strings.Contains(options, "omitempty") && !strings.HasSuffix(t.Name(), "Request") {
			required = append(required, name)
		}
	}
	if len(required) > 0 {
		d.schemas[title(t.Name())].(object)["required"] = required
	}
}

func title(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// Every field of every type on the wire has a JSON name in snake case: names
// are a contract and must not follow a renamed Go field.
func TestFieldsHaveNames(t *testing.T) {
	snake := regexp.MustCompile(`^[a-z][a-z_]*(,omitempty)?$`)
	d := newDocument(t)
	d.build()
	if len(d.schemas) < 10 {
		t.Fatalf("only %d types found", len(d.schemas))
	}
	for _, rt := range routes {
		for _, v := range []any{rt.body, rt.reply} {
			if v == nil || reflect.TypeOf(v) == reflect.TypeFor[picture]() ||
				reflect.TypeOf(v) == reflect.TypeFor[source]() {
				continue
			}
			typ := reflect.TypeOf(v)
			if typ.Kind() == reflect.Slice {
				typ = typ.Elem()
			}
			if typ.Kind() != reflect.Struct {
				continue
			}
			for i := range typ.NumField() {
				if tag := typ.Field(i).Tag.Get("json"); !snake.MatchString(tag) {
					t.Errorf("%s.%s: JSON name %q", typ, typ.Field(i).Name, tag)
				}
			}
		}
	}
}

// The table has no two rows that a request could mean, and every row can be
// served.
func TestRoutes(t *testing.T) {
	seen := map[string]bool{}
	for _, rt := range routes {
		if (rt.handle == nil) == (rt.raw == nil) {
			t.Errorf("%s: want either handle or raw", rt.name)
		}
		if rt.scope != everybody && !slices.Contains(scopes, rt.scope) && rt.scope != mayServe {
			t.Errorf("%s: say which scope it needs: scope is %q", rt.name, rt.scope)
		}
		if rt.method != http.MethodGet && rt.scope == mayRead {
			t.Errorf("%s: %s changes something, and read is enough for it", rt.name, rt.method)
		}
		if rt.summary == "" || seen[rt.name] || seen[rt.method+rt.path] {
			t.Errorf("%s: no summary, or twice in the table", rt.name)
		}
		seen[rt.name], seen[rt.method+rt.path] = true, true
		if rt.method != http.MethodGet && rt.method != http.MethodPost && rt.method != http.MethodDelete {
			t.Errorf("%s: noRoute does not know the method %s", rt.name, rt.method)
		}
		n := len(braces.FindAllString(rt.path, -1))
		params := slices.Repeat([]string{"a/b c"}, n)
		if got := rt.at(params...); strings.Count(got, "/") != strings.Count(rt.path, "/") ||
			strings.Contains(got, "{") {
			t.Errorf("%s: %s becomes %s", rt.name, rt.path, got)
		}
	}
}

func TestDocumentIsValidJSON(t *testing.T) {
	var doc struct {
		OpenAPI string
		Paths   map[string]map[string]struct {
			OperationID string `json:"operationId"`
			Responses   map[string]any
		}
	}
	if err := json.NewDecoder(bytes.NewReader(openAPI)).Decode(&doc); err != nil {
		t.Fatal(err)
	}
	n := 0
	for path, item := range doc.Paths {
		for method, op := range item {
			n++
			i := slices.IndexFunc(routes, func(rt *route) bool { return rt.name == op.OperationID })
			if i < 0 || routes[i].path != path || !strings.EqualFold(routes[i].method, method) ||
				len(op.Responses) < 2 {
				t.Errorf("%s %s is not in the table of routes", method, path)
			}
		}
	}
	if n != len(routes) || !strings.HasPrefix(doc.OpenAPI, "3.1") {
		t.Errorf("%s operations, %d routes; version %s", strconv.Itoa(n), len(routes), doc.OpenAPI)
	}
}
