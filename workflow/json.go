package workflow

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/token"
)

// jsonSource turns a text that is JSON into nodes. JSON is YAML, so the result is
// the same as the YAML library's; but it takes time in proportion to the text, and
// the library takes the square of the keys. Canonical forms, and so all that comes
// from other nodes, are JSON.
type jsonSource struct {
	text      string
	decoder   *json.Decoder
	source    *source
	offset    int // that line and col belong to
	line, col int
}

// readJSON reads a text that json.Valid has found to be JSON.
func readJSON(src []byte, pr *problems) *node {
	j := &jsonSource{text: string(src), decoder: json.NewDecoder(bytes.NewReader(src)), line: 1, col: 1}
	j.source = &source{text: strings.Split(j.text, "\n"), problems: pr}
	j.decoder.UseNumber()
	return j.node(0)
}

// node reads the next value; nil: it is reported as too deep.
func (j *jsonSource) node(depth int) *node {
	out := &node{}
	out.line, out.col = j.place()
	start := j.offset
	tk, err := j.decoder.Token()
	if err != nil { // cannot be: json.Valid has looked
		j.source.problems.at(out.line, out.col, "this is not JSON: "+err.Error(), "")
		return nil
	}
	if _, opens := tk.(json.Delim); opens && depth >= MaxDepth {
		j.source.problems.at(out.line, out.col, tooDeep, "")
		return nil
	}
	switch tk := tk.(type) {
	case json.Delim:
		j.inside(out, tk, depth)
	case string:
		out.value, out.text = tk, tk
		out.place = &textPlace{
			source: j.source, style: token.DoubleQuoteType, line: out.line, col: out.col, from: j.text[start:],
		}
	case json.Number:
		out.text = tk.String()
		if i, err := strconv.ParseInt(out.text, 10, 64); err == nil {
			out.value = i
		} else {
			j.source.fraction(out)
		}
	case bool:
		out.value, out.text = tk, strconv.FormatBool(tk)
	case nil:
		out.text = "null"
	}
	return out
}

// inside reads what is between two brackets.
func (j *jsonSource) inside(out *node, open json.Delim, depth int) {
	for j.decoder.More() && !j.source.problems.full() {
		if open == '[' {
			item := j.node(depth + 1)
			if item == nil {
				return
			}
			out.kind, out.items = listNode, append(out.items, item)
			continue
		}
		key, value := j.node(depth+1), j.node(depth+1)
		if key == nil || value == nil {
			return
		}
		out.entries = append(out.entries, entry{key, value})
	}
	out.kind = listNode
	if open == '{' {
		out.kind = mapNode
	}
	if !j.source.problems.full() {
		_, _ = j.decoder.Token() // the other bracket, which is there
	}
}

// place is where the next value begins.
func (j *jsonSource) place() (line, col int) {
	at := int(j.decoder.InputOffset())
	for at < len(j.text) && strings.IndexByte(" \t\r\n,:", j.text[at]) >= 0 {
		at++
	}
	for passed := j.text[j.offset:at]; len(passed) > 0; {
		r, size := utf8.DecodeRuneInString(passed)
		passed = passed[size:]
		if j.col++; r == '\n' {
			j.line, j.col = j.line+1, 1
		}
	}
	j.offset = at
	return j.line, j.col
}
