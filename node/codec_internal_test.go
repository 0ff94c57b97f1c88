package node

import (
	"reflect"
	"testing"
)

// What this node stores it can read back, whatever the texts in it are.
func TestWhatIsStoredIsReadBack(t *testing.T) {
	for _, v := range []any{
		&summary{}, &storedFact{}, &storedWaits{}, &setAside{}, &closing{}, &forgotten{}, &storedDropped{}, &storedAge{},
		&storedClosed{}, &storedLosses{}, &storedProfile{}, &storedLesson{}, &storedListing{}, &storedData{}, &memberDoc{},
	} {
		was := reflect.ValueOf(v).Elem()
		t.Run(was.Type().Name(), func(t *testing.T) {
			fill(was)
			is := reflect.New(was.Type())
			b := encode(v)
			if err := decode(b, is.Interface()); err != nil {
				t.Fatalf("it cannot be read back: %v", err)
			}
			if again := encode(is.Interface()); string(again) != string(b) {
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
