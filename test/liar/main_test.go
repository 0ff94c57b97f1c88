//go:build linux

// Package liar_test has a member with a valid certificate do its worst to honest
// partners, all of them real processes, and measures what that costs the victim.
//
// The attacks are in internal/test/testliar. After each one the victims must
// still work: an instance runs over both, the victim answers its own user, and it
// starts again after kill -9. Nothing is imported from here.
package liar_test

import (
	"testing"

	"github.com/mutirao-mesh/mutirao/internal/test/testnode"
)

func TestMain(m *testing.M) { testnode.Main(m) }
