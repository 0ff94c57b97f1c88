package workflow

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
)

// reserved words of the expression language cannot name data.
var reserved = map[string]bool{
	"and": true, "or": true, "not": true, "in": true, "matches": true, "contains": true,
	"startsWith": true, "endsWith": true, "true": true, "false": true, "null": true, "nil": true,
	"let": true, "if": true, "else": true, "instance": true,
}

// data reads the declarations of the instance's context.
func (r *reader) data() {
	r.scope.data = map[DataName]*DataDecl{}
	n := r.written(r.def, "data")
	if n == nil || n.isNull() {
		return
	}
	if n.kind != mapNode {
		r.on(n, cmp.Or(entryHint(n.text), "write data: {name: {type: string}}"), "want a mapping of names, have %s",
			n.what())
		return
	}
	for _, e := range r.unique(n) {
		switch name := e.key.text; {
		case !ValidDataName(name):
			r.on(e.key, cmp.Or(entryHint(name), dataRule(name)), "%s is not a valid name for data", excerpt(name))
		case reserved[name]:
			r.on(e.key, "choose another name", "%q means something in expressions", name)
		default:
			decl := &DataDecl{Name: DataName(name)}
			r.heads[decl] = e.key
			known := readMap(r, e.value, dataKeys, decl)
			r.checkData(decl, known)
			r.scope.data[decl.Name] = decl
		}
	}
	for _, e := range r.unique(n) {
		if decl := r.scope.data[DataName(e.key.text)]; decl != nil {
			r.def.Data = append(r.def.Data, *decl)
		}
	}
}

var dataKeys = []key[DataDecl]{
	{"type", func(r *reader, n *node, d *DataDecl) {
		d.Type = oneOf(r, n, TypeString, TypeInteger, TypeNumber, TypeBoolean, TypeTime, TypeFile, TypeList, TypeMap,
			TypeQuery)
	}},
	{"default", kept[DataDecl]},
	{"required", func(r *reader, n *node, d *DataDecl) { d.Required = r.boolean(n) }},
	{"label", func(r *reader, n *node, d *DataDecl) { d.Label = r.label(n) }},
	{"doc", func(r *reader, n *node, d *DataDecl) { d.Doc = r.text(n) }},
	{"enum", kept[DataDecl]},
	{"min", func(r *reader, n *node, d *DataDecl) { d.Min = r.anyNumber(n) }},
	{"max", func(r *reader, n *node, d *DataDecl) { d.Max = r.anyNumber(n) }},
	{"name", func(r *reader, n *node, d *DataDecl) { d.FileName = r.text(n) }},
	{"readers", func(r *reader, n *node, d *DataDecl) { d.Readers = r.readers(n) }},
	{"database", func(r *reader, n *node, d *DataDecl) { d.Database = r.name(n) }},
	{"expression", func(r *reader, n *node, d *DataDecl) { d.Expression = r.text(n) }},
}

// checkData checks what depends on the type, and reads what only it can read.
func (r *reader) checkData(d *DataDecl, known bool) {
	if d.Type == "" {
		if known && r.written(d, "type") == nil {
			r.on(r.head(d), "write type: string, integer, number, boolean, time, file, list, map or query",
				"%s has no type", d.Name)
		}
		d.Type = anyData // fits everywhere: no further mistakes follow from this one
		return
	}
	r.only(d, "min", TypeInteger, TypeNumber)
	r.only(d, "max", TypeInteger, TypeNumber)
	r.only(d, "enum", TypeString, TypeInteger, TypeNumber, TypeTime)
	r.only(d, "name", TypeFile)
	r.only(d, "readers", TypeFile)
	if n := r.written(d, "name"); n != nil && d.Type == TypeFile && FileNameRule(d.FileName) != "" {
		r.on(n, "", "%s cannot be what a file is called: want %s", excerpt(d.FileName), FileNameRule(d.FileName))
	}
	if n := r.written(d, "default"); n != nil && !n.isNull() && d.Type == TypeFile {
		r.on(n, "give it at the start: --file "+string(d.Name)+"=PATH", "a file has no default")
		return
	}
	r.only(d, "database", TypeQuery)
	r.only(d, "expression", TypeQuery)
	if d.Type == TypeQuery && (d.Database == "" || d.Expression == "") {
		r.on(r.head(d), "write database: NAME, expression: SQL", "the query %s needs a database and an expression",
			d.Name)
	}
	if n := r.written(d, "required"); n != nil && d.Type == TypeQuery && d.Required {
		r.on(n, "leave it out: a task that has it under out asks",
			"%s is what a database answers: it is not given at the start", d.Name)
	}
	if d.Min != nil && d.Max != nil && *d.Min > *d.Max {
		r.on(r.written(d, "min"), "", "min %v is greater than max %v", *d.Min, *d.Max)
	}
	r.enum(d)
	r.defaultValue(d)
}

// only reports a key that data of other types have.
func (r *reader) only(d *DataDecl, key string, types ...DataType) {
	n := r.written(d, key)
	if n == nil || slices.Contains(types, d.Type) {
		return
	}
	r.on(n, fmt.Sprintf("it belongs to data of type %s", joined(types, " or ")), "%s does not fit %s", key, d.Type.a())
}

func (r *reader) enum(d *DataDecl) {
	n := r.written(d, "enum")
	if n == nil || n.isNull() {
		return
	}
	switch {
	case n.kind != listNode:
		r.on(n, "write enum: [a, b]", "want a list of values, have %s", n.what())
	case len(n.items) == 0:
		r.on(n, "leave it out, or write enum: [a, b]", "no value would be allowed")
	case len(n.items) > MaxEnum:
		r.on(n, "check it in the application that sets it", "the enum has %d values: at most %d are allowed",
			len(n.items), MaxEnum)
		return
	}
	checked := &DataDecl{Name: d.Name, Type: d.Type, Min: d.Min, Max: d.Max}
	var values []Value
	for _, item := range n.items {
		v, err := CheckValue(checked, r.exactly(item))
		switch {
		case err != nil:
			r.on(item, "", "%v", err)
		case v == nil:
			r.on(item, "", "null is always allowed: leave it out")
		default:
			values = append(values, v)
		}
	}
	d.Enum = values
}

func (r *reader) defaultValue(d *DataDecl) {
	n := r.written(d, "default")
	if n == nil || n.isNull() {
		return
	}
	v, err := CheckValue(d, r.exactly(n))
	if err != nil {
		r.on(n, "", "%v", err)
	}
	if d.Required {
		r.on(n, "leave out one of the two", "%s is required, so its default is never used", d.Name)
	}
	d.Default = v
}

// exactly is a value of data with a whole number beyond 64 bits as it is written, so that what is wrong with it is said
// of that, and not of the number next to it that can be counted with.
func (r *reader) exactly(n *node) Value {
	v := r.value(n)
	if f, ok := v.(float64); ok && f == math.Trunc(f) && math.Abs(f) >= 1<<63 {
		return json.Number(strings.ReplaceAll(n.text, "_", ""))
	}
	return v
}
