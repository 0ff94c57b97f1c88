//go:build linux

package liar_test

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
)

// pictured has work whose task reads a file.
const pictured = `
workflow: pictured
data: {photo: {type: file, required: true}}
tasks:
  look: {type: manual, in: [photo]}
partitions: {there: [look]}
`

// photos are files of 100,000 bytes that bea gives ana until ctx ends, one after the other: how long they took to come.
func (v *victims) photos(ctx context.Context, done *outcome) {
	content := make([]byte, 100_000)
	for n := 0; ctx.Err() == nil; n++ {
		copy(content, fmt.Sprint("photo ", n))
		took, err := v.photo(content)
		if err != nil {
			done.failed++
			done.why = err.Error()
			continue
		}
		done.took = append(done.took, took)
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// photo is how long it takes until a file that bea gives is at ana.
func (v *victims) photo(content []byte) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(v.t.Context(), 2*time.Minute)
	defer cancel()
	f, err := v.bea.API.PutFile(ctx, "photo.jpg", bytes.NewReader(content))
	if err != nil {
		return 0, err
	}
	begun := time.Now()
	st, err := v.bea.API.Start(ctx, api.StartRequest{
		Workflow: "pictured", Input: map[string]string{"photo": f.Value}, Assign: map[string]string{"there": "ana"},
	})
	if err != nil {
		return 0, err
	}
	for last := "nothing"; ; {
		list, err := v.ana.API.Data(ctx, st.ID)
		if ctx.Err() == nil {
			last = fmt.Sprintf("%+v %v", list, err)
		}
		if err == nil && len(list) == 1 && list[0].File != nil && list[0].File.Here {
			took := time.Since(begun)
			return took, v.bea.API.Cancel(ctx, st.ID, "it came") // running, it would take of bea's share of ana's room
		}
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("a file of instance %s does not come: %s", st.ID, last)
		case <-time.After(10 * time.Millisecond):
		}
	}
}
