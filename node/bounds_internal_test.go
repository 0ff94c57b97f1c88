package node

import (
	"testing"

	"github.com/mutirao-mesh/mutirao/configs"
	"github.com/mutirao-mesh/mutirao/membership"
)

// What may be configured is what partners take.
func TestConnectionTimesThatAreAccepted(t *testing.T) {
	if configs.MinConnectionTime != membership.MinConnectionTime ||
		configs.MaxConnectionTime != membership.MaxConnectionTime {
		t.Errorf("configured are %s to %s, partners take %s to %s", configs.MinConnectionTime,
			configs.MaxConnectionTime,
			membership.MinConnectionTime, membership.MaxConnectionTime)
	}
}
