// Package codectest checks, for the tests of those that store something, that it can be
// read back.
//
// It is no part of a node. It imports node/codec; only tests import it.
package codectest

import (
	"reflect"
	"testing"

	"github.com/mutirao-mesh/mutirao/node/codec"
)

// ReadBack checks that values of the types of these, pointers to structs, can be read back
// whatever the texts in them are.
func ReadBack(t *testing.T, values ...any) {
	t.Helper()
	for _, v := range values {
		was := reflect.ValueOf(v).Elem()
		t.Run(was.Type().Name(), func(t *testing.T) {
			fill(was)
			is := reflect.New(was.Type())
			b := codec.Encode(v)
			if err := codec.Decode(b, is.Interface()); err != nil {
				t.Fatalf("it cannot be read back: %v", err)
			}
			if again := codec.Encode(is.Interface()); string(again) != string(b) {
				t.Errorf("it is read back as %+v", is.Elem())
			}
		})
	}
}

// fill sets all that can be set below a value; texts are no UTF-8.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("\xff\xfe")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(7)
	case reflect.Float64:
		v.SetFloat(0.5)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fallthrough
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key)
		fill(value)
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i))
			}
		}
	}
}
