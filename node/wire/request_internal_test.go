package wire

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// kind is one kind of request, of any type.
type kind struct {
	most   int
	of     reflect.Type
	encode func(v reflect.Value) ([]byte, error)
	decode func(b []byte) (any, error)
}

func kindOf[T any](r request[T]) kind {
	return kind{
		r.most, reflect.TypeFor[T](),
		func(v reflect.Value) ([]byte, error) { return r.encode(v.Interface().(T)) },
		func(b []byte) (any, error) { return r.decode(b) },
	}
}

// kinds are all that there are: TestAllKindsOfRequests counts.
func kinds() map[string]kind {
	return map[string]kind{
		"claims": kindOf(claims), "itemLists": kindOf(itemLists), "items": kindOf(items), "targets": kindOf(targets),
		"amendings": kindOf(amendings), "keptOnes": kindOf(keptOnes), "follows": kindOf(follows),
		"fileAsks": kindOf(fileAsks), "looks": kindOf(looks), "sights": kindOf(sights),
		"fileReaders": kindOf(fileReaders), "loads": kindOf(loads),
	}
}

// What the writer of a request lets pass its reader takes, and the same comes out: for all kinds,
// whichever part of it is how long. What is too long is refused by the writer, with what is too
// long, how long it is and may be.
func TestWritersOfRequestsHoldToWhatReadersTake(t *testing.T) {
	for name, k := range kinds() {
		for i := range k.of.NumField() {
			f := k.of.Field(i)
			text := f.Type.Kind() == reflect.String || f.Type == reflect.TypeFor[[]byte]()
			if text != (f.Tag.Get("people") != "") {
				t.Errorf("%s: %s can have any length: %t, and people call it %q", name, f.Name, text,
					f.Tag.Get("people"))
			}
			if !text {
				continue
			}
			passed, refused := 0, 0
			for n := k.most - 64; n <= k.most+4; n++ {
				v := reflect.New(k.of).Elem()
				v.Field(i).Set(reflect.ValueOf(strings.Repeat("x", n)).Convert(f.Type))
				b, err := k.encode(v)
				if long := (*TooLong)(nil); errors.As(err, &long) {
					refused++
					if long.Most != k.most || long.Bytes <= k.most || long.Of != n || long.Part != f.Tag.Get("people") {
						t.Fatalf("%s: with %d bytes of %s it says %q", name, n, f.Name, err)
					}
					continue
				}
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				back, err := k.decode(b)
				if err != nil || len(b) > k.most {
					t.Fatalf("%s: %d bytes are written, of which its reader says %v", name, len(b), err)
				}
				if reflect.ValueOf(back).Field(i).Len() != n {
					t.Fatalf("%s: %s comes out as something else", name, f.Name)
				}
				if passed++; refused > 0 {
					t.Fatalf("%s: a longer %s passes", name, f.Name)
				}
			}
			if passed == 0 || refused == 0 {
				t.Errorf("%s: of lengths of %s around its bound %d pass, %d do not", name, f.Name, passed, refused)
			}
			if f.Type.Kind() == reflect.String {
				v := reflect.New(k.of).Elem()
				v.Field(i).SetString("a\xff")
				if _, err := k.encode(v); err == nil || !strings.Contains(err.Error(), f.Tag.Get("people")) {
					t.Errorf("%s: of what is no text it says %v", name, err)
				}
			}
		}
		if _, err := k.decode(make([]byte, k.most+1)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: its reader says of too many bytes %v", name, err)
		}
	}
}

// Each kind of request of the package is among those that are tested.
func TestAllKindsOfRequests(t *testing.T) {
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	declared := 0
	for _, n := range names {
		b, err := os.ReadFile(n)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(n, "_test.go") {
			declared += strings.Count(string(b), "= request[")
			if text := string(b); n != "request.go" && n != "wire.go" && strings.Contains(text, "decMode") {
				t.Errorf("%s decodes by itself", n)
			}
		}
	}
	if declared != len(kinds()) {
		t.Errorf("%d kinds are declared, %d are tested", declared, len(kinds()))
	}
}

// What is said of as many people as may be, with the longest IDs and the most items, is written, and read as it was.
func TestTheMostThatIsSaidOfLoads(t *testing.T) {
	most := Loads{All: true}
	for range 2 * MaxLoads {
		most.Of = append(most.Of, LoadOf{User: strings.Repeat("x", maxUserID), Assigned: MaxLoad, Selected: MaxLoad})
	}
	b, err := EncodeLoads(most)
	if err != nil {
		t.Fatal(err)
	}
	if back, err := DecodeLoads(b); err != nil || !reflect.DeepEqual(back, most) {
		t.Errorf("it comes out as %d people: %v", len(back.Of), err)
	}
	for what, x := range map[string]Loads{
		"one more":      {Of: append(most.Of, most.Of[0])},
		"nobody":        {Of: []LoadOf{{Assigned: 1}}},
		"a longer ID":   {Of: []LoadOf{{User: strings.Repeat("x", maxUserID+1)}}},
		"more assigned": {Of: []LoadOf{{User: "x", Assigned: MaxLoad + 1}}},
		"more selected": {Of: []LoadOf{{User: "x", Selected: MaxLoad + 1}}},
	} {
		raw, err := encMode.Marshal(x)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := DecodeLoads(append([]byte{Version}, raw...)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s is read: %v", what, err)
		}
	}
}
