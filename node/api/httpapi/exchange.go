package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"reflect"
	"strconv"
	"sync"

	"github.com/mutirao-mesh/mutirao/internal/once"
	"github.com/mutirao-mesh/mutirao/internal/plain"
	"github.com/mutirao-mesh/mutirao/node/api"
)

// MaxBody is the greatest body of a request, in bytes.
const MaxBody = 1 << 20

// statusError is an *Error whose HTTP status says more than its code does.
type statusError struct {
	status int
	err    *api.Error
}

func (e *statusError) Error() string { return e.err.Error() }
func (e *statusError) Unwrap() error { return e.err }

func withStatus(status int, err *api.Error) error { return &statusError{status, err} }

func readBody(r *http.Request) ([]byte, error) {
	b, err := io.ReadAll(r.Body)
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return nil, withStatus(http.StatusRequestEntityTooLarge,
			api.Errorf(api.Invalid, "the request is larger than %d bytes", large.Limit))
	}
	if err != nil {
		return nil, api.Errorf(api.Invalid, "the request broke off: %v", err)
	}
	return b, nil
}

// noBody refuses a body where none is taken: whoever sends one means something by it that would not happen. An empty
// object says nothing, and many clients send one.
func noBody(r *http.Request) error {
	if r.ContentLength == 0 {
		return nil
	}
	body, err := readBody(r)
	if err != nil {
		return err
	}
	text := bytes.TrimSpace(body)
	var object map[string]any
	if len(text) == 0 || text[0] == '{' && json.Unmarshal(text, &object) == nil && len(object) == 0 {
		return nil
	}
	return api.Errorf(api.Invalid, "%s %s takes no body, and this request has one of %d bytes", r.Method, r.URL.Path,
		len(body)).WithHint("leave it out; {} is taken too. %s describes it", openAPIRoute.path)
}

// withBody reads a JSON body strictly and hands it to fn. It insists on the
// media type, because a web page cannot send it across origins unasked.
func withBody[T any](r *http.Request, fn func(T) (any, error)) (any, error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, withStatus(http.StatusUnsupportedMediaType,
			api.Errorf(api.Invalid, "Content-Type %q: want application/json", r.Header.Get("Content-Type")))
	}
	body, err := readBody(r)
	if err != nil {
		return nil, err
	}
	var in T
	if err := decodeStrict(body, &in); err != nil {
		return nil, api.Errorf(api.Invalid, "the request is not what is wanted here: %v", err).
			WithHint("%s describes it", openAPIRoute.path)
	}
	return fn(in)
}

// writeReply sends what a handler returned.
func writeReply(w http.ResponseWriter, rt *route, reply any) error {
	if rt.reply == nil {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	if p, ok := reply.(picture); ok {
		w.Header().Set("Content-Type", p.kind)
		_, _ = w.Write(p.data) // a reader that went away wants no error
		return nil
	}
	return writeJSON(w, http.StatusOK, complete(reply))
}

// writeJSON writes what cannot be seen as escapes, so that no text of others steers the terminal of whoever
// reads the API with a program that prints what it gets. A definition's canonical form arrives byte for byte,
// <, > and & included.
func writeJSON(w http.ResponseWriter, status int, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("write the reply: %w", err)
	}
	doc := b.Bytes()
	if d, ok := v.(*api.Workflow); !ok || d.Definition == nil {
		doc = plain.JSON(doc)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(doc)))
	w.WriteHeader(status)
	_, _ = w.Write(doc) // a reader that went away wants no error
	return nil
}

// decodeStrict reads exactly one JSON value that has no unknown fields, and none twice.
func decodeStrict(b []byte, into any) error {
	if string(bytes.TrimSpace(b)) == "null" { // else it would be what nobody asked for: all that may be left out
		return errors.New("null is no request: an empty one is {}")
	}
	return once.DecodeStrict(b, into)
}

// complete returns v with empty lists and maps for missing ones, here and in
// the structs inside, so that no reader needs to reckon with null where a list
// belongs. v is not changed.
func complete(v any) any {
	in := reflect.ValueOf(v)
	out := reflect.New(in.Type()).Elem()
	out.Set(in)
	fillIn(out)
	return out.Interface()
}

func fillIn(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() && lacks(v.Type()) {
			fresh := reflect.New(v.Type().Elem())
			fresh.Elem().Set(v.Elem())
			fillIn(fresh.Elem())
			v.Set(fresh)
		}
	case reflect.Struct:
		for _, i := range lacking(v.Type()) {
			fillIn(v.Field(i))
		}
	case reflect.Slice:
		if v.IsNil() {
			v.Set(reflect.MakeSlice(v.Type(), 0, 0))
		} else if lacks(v.Type().Elem()) && v.Type().Elem().Kind() == reflect.Struct {
			fresh := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
			reflect.Copy(fresh, v)
			for i := range fresh.Len() {
				fillIn(fresh.Index(i))
			}
			v.Set(fresh)
		}
	case reflect.Map:
		if v.IsNil() {
			v.Set(reflect.MakeMap(v.Type()))
		}
	}
}

// lackingFields are, by the type of a struct, what lacking found.
var lackingFields sync.Map

// lacking are the fields of a struct, by their numbers, in which a list or a map may be missing.
func lacking(t reflect.Type) []int {
	if known, ok := lackingFields.Load(t); ok {
		return known.([]int)
	}
	var all []int
	for i := range t.NumField() {
		if f := t.Field(i); f.IsExported() && lacks(f.Type) {
			all = append(all, i)
		}
	}
	lackingFields.Store(t, all)
	return all
}

// lacks reports whether a value of a type may be a list or a map that is missing, or have one inside.
func lacks(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Slice, reflect.Map:
		return true
	case reflect.Struct:
		return len(lacking(t)) > 0
	case reflect.Pointer:
		return t.Elem().Kind() == reflect.Struct && len(lacking(t.Elem())) > 0
	}
	return false
}
