package once

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// spelled returns an error for a key of b for which into has a field only if it is spelled with other capitals.
// encoding/json takes such a key for the field, so that one field could be there twice under two keys.
func spelled(b []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	return spelledIn(dec, reflect.TypeOf(into))
}

// spelledIn reads one value of type t; nil: its keys are not fields. What is no JSON is for whoever reads it.
func spelledIn(dec *json.Decoder, t reflect.Type) error {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t != nil && reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		t = nil
	}
	tk, err := dec.Token()
	if err != nil {
		return nil
	}
	switch tk {
	case json.Delim('['):
		for dec.More() {
			if err := spelledIn(dec, element(t, reflect.Slice, reflect.Array)); err != nil {
				return err
			}
		}
	case json.Delim('{'):
		var known map[string]reflect.Type
		if t != nil && t.Kind() == reflect.Struct {
			known = map[string]reflect.Type{}
			addFields(known, t)
		}
		for dec.More() {
			tk, err := dec.Token()
			if err != nil {
				return nil
			}
			key, _ := tk.(string)
			of := element(t, reflect.Map)
			if known != nil {
				if of = known[key]; of == nil {
					return fmt.Errorf("json: unknown field %q", cut(key))
				}
			}
			if err := spelledIn(dec, of); err != nil {
				return err
			}
		}
	default:
		return nil
	}
	_, _ = dec.Token() // its end
	return nil
}

// wrongKind is the error of a value of another kind than its place takes. It names neither types nor fields of ours,
// which encoding/json does.
type wrongKind struct {
	*json.UnmarshalTypeError
}

func (e wrongKind) Error() string {
	have, _, _ := strings.Cut(e.Value, " ") // "number 12"
	switch have {
	case "object", "array":
		have = "an " + have
	case "bool":
		have = "true or false"
	default:
		have = "a " + have
	}
	text := fmt.Sprintf("want %s, have %s", kindOf(e.Type), have)
	if e.Field == "" {
		return text
	}
	return cut(e.Field) + ": " + text
}

func (e wrongKind) Unwrap() error { return e.UnmarshalTypeError }

// inWords is an error of encoding/json as people may read it.
func inWords(err error) error {
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		return wrongKind{kind}
	}
	return err
}

// kindOf is what JSON has for a type.
func kindOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8,
		reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number that fits"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.Pointer:
		return kindOf(t.Elem())
	}
	return "an object"
}

// element is what a value of type t, of one of these kinds, is made of; nil: it is no such value.
func element(t reflect.Type, kinds ...reflect.Kind) reflect.Type {
	for _, k := range kinds {
		if t != nil && t.Kind() == k {
			return t.Elem()
		}
	}
	return nil
}

// addFields adds the fields of a struct as they are spelled in JSON, with those of structs embedded in it.
func addFields(known map[string]reflect.Type, t reflect.Type) {
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch of := f.Type; {
		case name == "-":
		case f.Anonymous && name == "" && of.Kind() == reflect.Struct:
			addFields(known, of)
		case name == "":
			known[f.Name] = of
		default:
			known[name] = of
		}
	}
}
