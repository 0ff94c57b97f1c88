package apitest

import (
	"context"

	"github.com/mutirao-mesh/mutirao/node/api"
)

// MeshFake is the part of Fake about members and coordinator.
type MeshFake struct {
	OnEvict             func(api.EvictRequest) (*api.Evicted, error)
	OnLeave             func(api.LeaveRequest) (*api.Leaving, error)
	OnCoordinatorStatus func() (*api.Coordinator, error)
	OnElect             func(api.ElectRequest) (*api.Coordinator, error)
	OnResign            func() error
	OnElectorate        func() (*api.Electorate, error)
	OnSetElectorate     func(api.ElectorateRequest) (*api.Electorate, error)
	OnProfile           func() (*api.Profile, error)
	OnSetProfile        func(api.ProfileChange) (*api.Profile, error)
	OnResources         func(query string) ([]api.Resource, error)
	OnDoctor            func() (*api.Diagnosis, error)
}

var _ api.MeshService = (*MeshFake)(nil)

// Evict implements api.Service.
func (f *MeshFake) Evict(_ context.Context, r api.EvictRequest) (*api.Evicted, error) {
	return f.OnEvict(r)
}

// Leave implements api.Service.
func (f *MeshFake) Leave(_ context.Context, r api.LeaveRequest) (*api.Leaving, error) {
	return f.OnLeave(r)
}

// CoordinatorStatus implements api.Service.
func (f *MeshFake) CoordinatorStatus(context.Context) (*api.Coordinator, error) {
	return f.OnCoordinatorStatus()
}

// Elect implements api.Service.
func (f *MeshFake) Elect(_ context.Context, r api.ElectRequest) (*api.Coordinator, error) {
	return f.OnElect(r)
}

// Resign implements api.Service.
func (f *MeshFake) Resign(context.Context) error { return f.OnResign() }

// Electorate implements api.Service.
func (f *MeshFake) Electorate(context.Context) (*api.Electorate, error) { return f.OnElectorate() }

// SetElectorate implements api.Service.
func (f *MeshFake) SetElectorate(_ context.Context, r api.ElectorateRequest) (*api.Electorate, error) {
	return f.OnSetElectorate(r)
}

// Profile implements api.Service.
func (f *MeshFake) Profile(context.Context) (*api.Profile, error) { return f.OnProfile() }

// SetProfile implements api.Service.
func (f *MeshFake) SetProfile(_ context.Context, r api.ProfileChange) (*api.Profile, error) {
	return f.OnSetProfile(r)
}

// Resources implements api.Service.
func (f *MeshFake) Resources(_ context.Context, query string) ([]api.Resource, error) {
	return f.OnResources(query)
}

// Doctor implements api.Service.
func (f *MeshFake) Doctor(context.Context) (*api.Diagnosis, error) { return f.OnDoctor() }
