package apitest

import (
	"context"

	"github.com/mutirao-mesh/mutirao/node/api"
)

// WorkFake is the part of Fake about who does what.
type WorkFake struct {
	OnRejectTask func(api.RejectRequest) (*api.Passed, error)
	OnAddData    func(name string, content []byte, terms api.DataTerms) (*api.DataSet, error)
	OnRemoveData func(name string) error
}

// RejectTask implements api.Service.
func (f *WorkFake) RejectTask(_ context.Context, r api.RejectRequest) (*api.Passed, error) {
	return f.OnRejectTask(r)
}

// AddData implements api.Service.
func (f *WorkFake) AddData(_ context.Context, name string, content []byte, terms api.DataTerms) (*api.DataSet, error) {
	return f.OnAddData(name, content, terms)
}

// RemoveData implements api.Service.
func (f *WorkFake) RemoveData(_ context.Context, name string) error { return f.OnRemoveData(name) }
