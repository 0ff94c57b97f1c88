package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// Span is a duration, which JSON has as a text such as "2h", "90s" or "2d"; none is an empty text. A number is read as
// nanoseconds, which is how versions before 2026-11-29 wrote it.
type Span time.Duration

func (s Span) String() string { return workflow.FormatDuration(time.Duration(s)) }

// MarshalJSON implements json.Marshaler.
func (s Span) MarshalJSON() ([]byte, error) {
	if s == 0 {
		return []byte(`""`), nil
	}
	return json.Marshal(s.String())
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *Span) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] != '"' {
		var n int64
		if bytes.Equal(b, []byte("null")) {
			return nil
		}
		if json.Unmarshal(b, &n) != nil {
			return errors.New(`a duration is a text such as "2h", "90s" or "2d", or a whole number of nanoseconds`)
		}
		*s = Span(n)
		return nil
	}
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return err
	}
	if text == "" {
		*s = 0
		return nil
	}
	d, err := workflow.ParseDuration(text)
	if err != nil {
		return err
	}
	*s = Span(d)
	return nil
}
