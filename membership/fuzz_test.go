package membership

import (
	"testing"

	"github.com/mutirao-mesh/mutirao/membership/trust/trusttest"
)

func FuzzRecord(f *testing.F) {
	tm := trusttest.New(f)
	judge := func(_ *testing.T, r Record) {
		_, _ = NewList(tm.Mesh, trusttest.IDOf("me"), tm.Known).Apply(r, 0, at(1))
	}
	trusttest.Decoder(f, DecodeRecord, EncodeRecord, judge, recordOf(f, tm, "bia", 1, 1))
}

func FuzzBeat(f *testing.F) {
	tm := trusttest.New(f)
	judge := func(t *testing.T, b Beat) {
		l := NewList(tm.Mesh, trusttest.IDOf("me"), tm.Known)
		l.Restore(Stored{Record: recordOf(t, tm, "bia", 1, 1)}, at(0))
		_, _ = l.Beat(b, 0, at(1))
	}
	trusttest.Decoder(f, DecodeBeat, EncodeBeat, judge, beatOf("bia", 1, 2, 1))
}

func FuzzStored(f *testing.F) {
	tm := trusttest.New(f)
	judge := func(_ *testing.T, s Stored) {
		l := NewList(tm.Mesh, trusttest.IDOf("me"), tm.Known)
		l.Restore(s, at(0))
		_, _, _ = l.Tick(at(1))
	}
	trusttest.Decoder(f, DecodeStored, EncodeStored, judge,
		Stored{Record: recordOf(f, tm, "bia", 1, 1), Beat: beatOf("bia", 1, 2, 1), Expired: true})
}

func FuzzDigest(f *testing.F) {
	tm := trusttest.New(f)
	l := NewList(tm.Mesh, trusttest.IDOf("me"), tm.Known)
	l.Restore(Stored{Record: recordOf(f, tm, "bia", 1, 1)}, at(0))
	trusttest.Decoder(f, DecodeDigest, EncodeDigest, func(_ *testing.T, d []Held) { l.Newer(d) }, l.Digest())
}
