package runner

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/mutirao-mesh/mutirao/internal/once"
	"github.com/mutirao-mesh/mutirao/internal/plain"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// order is a job as an application reads it, on stdin or as a request's body.
type order struct {
	Instance    string                               `json:"instance"`
	Workflow    workflow.Name                        `json:"workflow"`
	Task        workflow.TaskName                    `json:"task"`
	Application workflow.ApplicationName             `json:"application"`
	Attempt     string                               `json:"attempt"`
	Try         int                                  `json:"try"`
	Key         string                               `json:"idempotency_key"`
	Age         string                               `json:"age"` // of the instance, e.g. 1m30s
	Args        map[string]workflow.Value            `json:"args"`
	Input       map[workflow.DataName]workflow.Value `json:"input"`
	Files       string                               `json:"files,omitempty"` // the folder for files that it makes
}

// IdempotencyKey names this try of this attempt among all tries of all
// instances everywhere, and is the same however often a crash makes the node
// run it. It is opaque: 128 bits of a hash, as 32 hex digits.
func (j Job) IdempotencyKey() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "mutirao try\x00%s\x00%d", cmp.Or(j.Idempotency, j.Key), j.Try))
	return hex.EncodeToString(sum[:16])
}

func (j Job) encode() ([]byte, error) {
	o := order{
		Instance: j.Instance, Workflow: j.Origin.Workflow, Task: j.Task, Application: j.Application,
		Attempt: j.Attempt, Try: j.Try, Key: j.IdempotencyKey(), Age: j.AgeOfInstance.String(),
		Args: j.With.Args, Input: j.Input, Files: j.Folder,
	}
	if o.Args == nil {
		o.Args = map[string]workflow.Value{}
	}
	if o.Input == nil {
		o.Input = map[workflow.DataName]workflow.Value{}
	}
	b, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("write the job as JSON: %w", err)
	}
	return append(b, '\n'), nil
}

// DecodeOutputs reads an application's answer: a JSON object, or nothing.
// Whole numbers become int64, others float64, as workflow.Value wants them.
func DecodeOutputs(answer []byte) (map[workflow.DataName]workflow.Value, error) {
	if len(bytes.TrimSpace(answer)) == 0 {
		return nil, nil
	}
	var outputs map[workflow.DataName]workflow.Value
	var twice *once.Twice
	switch err := once.Decode(answer, &outputs); {
	case errors.Is(err, once.ErrMore):
		return nil, fmt.Errorf("its answer goes on after the JSON object of outputs: write nothing else to stdout")
	case errors.As(err, &twice):
		return nil, fmt.Errorf("its answer: %w", err)
	case err != nil || outputs == nil:
		return nil, fmt.Errorf("its answer is not a JSON object of outputs: it starts with %q", excerpt(answer, 60))
	}
	for name, v := range outputs {
		plain, err := plainNumbers(v)
		if err != nil {
			return nil, fmt.Errorf("output %s: %w", name, err)
		}
		outputs[name] = plain
	}
	return outputs, nil
}

func plainNumbers(v any) (workflow.Value, error) {
	var err error
	switch v := v.(type) {
	case json.Number:
		if i, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
			return i, nil
		}
		f, err := v.Float64()
		if err != nil {
			return nil, fmt.Errorf("%s is too large a number", v)
		}
		return f, nil
	case []any:
		for i := range v {
			if v[i], err = plainNumbers(v[i]); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for k := range v {
			if v[k], err = plainNumbers(v[k]); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

// excerpt is the start of b as one line of valid text, at most n bytes.
func excerpt(b []byte, n int) string {
	s := string(bytes.TrimSpace(b[:min(len(b), 4*n)]))
	return plain.CutBytes(strings.Join(strings.Fields(strings.ToValidUTF8(s, "\ufffd")), " "), n)
}
