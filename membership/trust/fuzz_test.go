package trust_test

import (
	"testing"

	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/membership/trust/trusttest"
)

func FuzzChain(f *testing.F) {
	tm := trusttest.New(f)
	judge := func(_ *testing.T, ch trust.Chain) { _ = ch.Verify(tm.Mesh, trusttest.Noon, tm.Known) }
	trusttest.Decoder(f, trust.DecodeChain, trust.EncodeChain, judge, tm.Member(f, tm.Davi, "bia"), tm.Davi.Chain)
}

func FuzzEviction(f *testing.F) {
	tm := trusttest.New(f)
	judge := func(_ *testing.T, e trust.Eviction) { _, _ = trust.NewRevocations(tm.Mesh).Add(e) }
	trusttest.Decoder(f, trust.DecodeEviction, trust.EncodeEviction, judge,
		tm.Evict(f, tm.Davi, "bia", trust.Serial{}),
		tm.Evict(f, tm.Ana, "davi", trusttest.Serial("davi-1"), tm.Member(f, tm.Davi, "bia")))
}
