package once

import (
	"bytes"
	"encoding/json"
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
