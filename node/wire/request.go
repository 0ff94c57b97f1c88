package wire

import (
	"fmt"
	"iter"
	"reflect"
	"unicode/utf8"
)

// request is a kind of request. Its bound is declared once, for those who write it and
// those who read it: what one of them lets pass the other does.
type request[T any] struct {
	what  string // for people
	most  int    // bytes of one, with its version
	check func(*T) error
}

// The kinds of requests. What a correct node writes is far below the bounds, but for what
// a user types.
var (
	claims    = request[Spoken]{what: "what a person says of a task", most: 160 << 10}
	itemLists = request[Items]{what: "a request for a person's items", most: 2 * maxName}
	items     = request[Item]{what: "a request for an item", most: 4 * maxName}
	amendings = request[Amending]{what: "an amendment", most: 164 << 10}
	targets   = request[Target]{what: "a request for what an order is about", most: 4 * maxName}
	follows   = request[Follow]{what: "what a user set at another node", most: 160 << 10}
	loads     = request[Loads]{what: "how much people have to do", most: 64 << 10, check: (*Loads).check}
	keptOnes  = request[Kept]{what: "a request for a kept result", most: 4 * maxName}
	fileAsks  = request[FileAsk]{what: "a request for a file", most: 8 * maxName}
	// A question who may read a file has the parts of a request for it, and one more name.
	fileReaders = request[FileReader]{what: "a question who may read a file", most: 10 * maxName}
	looks       = request[Look]{what: "a request to show an instance", most: maxName, check: (*Look).check}
	// A step of recovery goes through a claim as well, when it is ordered.
	sights = request[Sight]{
		what: "a request to show an instance to a person", most: 160 << 10, check: (*Sight).check,
	}
)

// TooLong says that a request is not written, since nobody would read it.
type TooLong struct {
	// What is the kind of request; Part is the longest of what is in it, Of bytes.
	What, Part string
	Of         int
	// Bytes it has, and at most Most may be.
	Bytes, Most int
}

// Error implements error.
func (e *TooLong) Error() string {
	return fmt.Sprintf("%s would have %d bytes, at most %d: shorten %s, which has %d", e.What, e.Bytes, e.Most, e.Part,
		e.Of)
}

// encode writes a request: a version byte and CBOR, as a frame.
func (r request[T]) encode(v T) ([]byte, error) {
	if r.check != nil {
		if err := r.check(&v); err != nil {
			return nil, fmt.Errorf("encode %s: %w", r.what, err)
		}
	}
	for part, text := range texts(v) {
		if text.Kind() == reflect.String && !utf8.ValidString(text.String()) {
			return nil, fmt.Errorf("%s: %s, %q, is not UTF-8 text: name it by its ID", r.what, part, text.String())
		}
	}
	b, err := encMode.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", r.what, err)
	}
	if n := 1 + len(b); n > r.most {
		long := &TooLong{What: r.what, Bytes: n, Most: r.most}
		for part, text := range texts(v) {
			if text.Len() >= long.Of {
				long.Part, long.Of = part, text.Len()
			}
		}
		return nil, long
	}
	return append([]byte{Version}, b...), nil
}

// texts are the parts of a request that can have any length, by what people call them.
func texts(v any) iter.Seq2[string, reflect.Value] {
	of := reflect.ValueOf(v)
	return func(yield func(string, reflect.Value) bool) {
		for i := range of.NumField() {
			if part := of.Type().Field(i).Tag.Get("people"); part != "" && !yield(part, of.Field(i)) {
				return
			}
		}
	}
}

// decode reads a request. Its error wraps ErrVersion or ErrMalformed.
func (r request[T]) decode(b []byte) (v T, err error) {
	var none T
	switch {
	case len(b) == 0:
		return none, fmt.Errorf("%w: it is empty", ErrMalformed)
	case len(b) > r.most:
		return none, fmt.Errorf("%w: %s of %d bytes, at most %d", ErrMalformed, r.what, len(b), r.most)
	case b[0] != Version:
		return none, fmt.Errorf("%w: %d, this node reads %d", ErrVersion, b[0], Version)
	}
	if err := decMode.Unmarshal(b[1:], &v); err != nil {
		return none, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if r.check != nil {
		if err := r.check(&v); err != nil {
			return none, fmt.Errorf("%w: %w", ErrMalformed, err)
		}
	}
	return v, nil
}
