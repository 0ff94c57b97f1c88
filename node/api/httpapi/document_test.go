package httpapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/mutirao-mesh/mutirao/internal/golden"
	"github.com/mutirao-mesh/mutirao/node/api"
)

const apiFile = "../../../docs/api.md"

// docs/api.md says what the OpenAPI document says. After a change: go test
// ./node/api/httpapi -run "OpenAPI|Page" -rewrite.
func TestPageOfTheAPIIsUpToDate(t *testing.T) {
	src, err := os.ReadFile("openapi.json") // as it is written by now
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, apiFile, apiPage(t, src))
}

// described is what the page shows of an OpenAPI document.
type described struct {
	Info  struct{ Description string }
	Paths map[string]map[string]struct {
		Summary    string
		Security   []map[string][]string
		Parameters []struct {
			Name, In, Description string
			Schema                shape
		}
		RequestBody struct {
			Content map[string]struct{ Schema shape }
		} `json:"requestBody"`
		Responses map[string]struct {
			Description string
			Content     map[string]struct{ Schema shape }
		}
	}
	Components struct{ Schemas map[string]shape }
}

// shape is the type of a value.
type shape struct {
	Type, Format, Description string
	Ref                       string `json:"$ref"`
	Enum, Examples            []string
	AnyOf                     []shape `json:"anyOf"`
	Items                     *shape
	Additional                *shape `json:"additionalProperties"`
	Properties                map[string]shape
	Required                  []string
}

// name says in Markdown what a value looks like.
func (s shape) name() string {
	switch {
	case s.Ref != "":
		of := s.Ref[strings.LastIndex(s.Ref, "/")+1:]
		return fmt.Sprintf("[%s](#%s)", of, strings.ToLower(of))
	case len(s.AnyOf) > 0:
		return s.AnyOf[0].name() + " or null"
	case len(s.Enum) > 0:
		return "`" + strings.Join(s.Enum, "`, `") + "`"
	case s.Items != nil:
		return "list of " + s.Items.name()
	case s.Additional != nil:
		return "object: name → " + s.Additional.name()
	case s.Format == "date-time":
		return "time"
	case len(s.Examples) > 0:
		return "duration, such as `" + strings.Join(s.Examples, "`, `") + "`"
	}
	return cmp.Or(s.Type, "any value")
}

// apiPage is docs/api.md.
func apiPage(t *testing.T, src []byte) string {
	t.Helper()
	var doc described
	if err := json.Unmarshal(src, &doc); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `# The local API

This page is made of the document that each node serves as %s, by a test; do not edit it.

%s

%s
token=$(mutirao token add dashboard --scope read)
curl -H "Authorization: Bearer $token" http://127.0.0.1:7878/v1/partners
%s

Requests and replies are JSON, times are RFC 3339, and durations texts such as "2h" or "1d12h". A whole number
in the place of such a text is read as nanoseconds, which is how versions before 2026-11-29 wrote it. A request that fails gets an
[Error](#error). Its code is also the status of the reply, and the [exit status](commands.md#exit-status) of a command:

| code | HTTP status | exit status |
|---|---|---|
`, "`/v1/openapi.json`", doc.Info.Description, "```", "```")
	for _, c := range api.Codes() {
		fmt.Fprintf(&b, "| `%s` | %d | %d |\n", c, c.HTTP(), c.Exit())
	}
	b.WriteString("\nStatus 401 means that the token is missing or wrong.\n")
	b.WriteString("\n## Requests\n\n| request | scope | does |\n|---|---|---|\n")
	doc.requests(func(method, path string) {
		op := doc.Paths[path][method]
		fmt.Fprintf(&b, "| [`%s %s`](#%s) | %s | %s |\n",
			strings.ToUpper(method), path, anchor(method, path), doc.scope(method, path), op.Summary)
	})
	doc.requests(func(method, path string) { doc.writeRequest(&b, method, path) })
	b.WriteString("\n## Types\n")
	for _, name := range slices.Sorted(maps.Keys(doc.Components.Schemas)) {
		writeType(&b, name, doc.Components.Schemas[name])
	}
	return b.String()
}

// requests calls fn for each request, by path.
func (doc *described) requests(fn func(method, path string)) {
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		for _, method := range slices.Sorted(maps.Keys(doc.Paths[path])) {
			fn(method, path)
		}
	}
}

// anchor is where a request's heading can be reached.
func anchor(method, path string) string {
	return method + "-" + strings.NewReplacer("/", "", "{", "", "}", "", ".", "").Replace(path)
}

// scope is what a token for a request must let its bearer do.
func (doc *described) scope(method, path string) string {
	if security := doc.Paths[path][method].Security; len(security) > 0 {
		return strings.Join(security[0]["token"], ", ")
	}
	return "–"
}

func (doc *described) writeRequest(b *strings.Builder, method, path string) {
	op := doc.Paths[path][method]
	fmt.Fprintf(b, "\n### %s %s\n\n%s.\n\n", strings.ToUpper(method), path, op.Summary)
	for _, p := range op.Parameters {
		what := p.Schema.name()
		if p.Description != "" {
			what = p.Description + ": " + what
		}
		fmt.Fprintf(b, "- `%s` in the %s: %s\n", p.Name, p.In, what)
	}
	for _, kind := range slices.Sorted(maps.Keys(op.RequestBody.Content)) {
		fmt.Fprintf(b, "- Body (%s): %s\n", kind, op.RequestBody.Content[kind].Schema.name())
	}
	for _, status := range slices.Sorted(maps.Keys(op.Responses)) {
		r := op.Responses[status]
		switch {
		case status == "default":
			continue
		case len(r.Content) == 0:
			fmt.Fprintf(b, "- Reply: status %s, no body\n", status)
		}
		for _, kind := range slices.Sorted(maps.Keys(r.Content)) {
			fmt.Fprintf(b, "- Reply (%s): %s\n", kind, r.Content[kind].Schema.name())
		}
	}
}

// writeType writes the table of a type's fields.
func writeType(b *strings.Builder, name string, s shape) {
	fmt.Fprintf(b, "\n### %s\n\n%s\n\n| field | type | means |\n|---|---|---|\n", name, s.Description)
	for _, field := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[field]
		kind := p.name()
		if len(s.Required) > 0 && !slices.Contains(s.Required, field) {
			kind += ", may be left out"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", field, kind, strings.ReplaceAll(p.Description, "|", `\|`))
	}
}
