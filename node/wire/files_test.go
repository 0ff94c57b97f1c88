package wire

import (
	"testing"
)

func FuzzDecodeFileAsk(f *testing.F) {
	b, err := EncodeFileAsk(FileAsk{Item: "plan", File: "file:00:1:a", User: "u", Sums: true, Offset: 1 << 40})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := DecodeFileAsk(b)
		if err != nil {
			return
		}
		again, err := EncodeFileAsk(a)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := DecodeFileAsk(again); err != nil || back != a {
			t.Fatalf("%x became %x: %+v, %+v, %v", b, again, a, back, err)
		}
	})
}

func FuzzDecodeFileReader(f *testing.F) {
	b, err := EncodeFileReader(FileReader{Item: "plan", File: "file:00:1:a", Reader: "depot", User: "u"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := DecodeFileReader(b)
		if err != nil {
			return
		}
		again, err := EncodeFileReader(a)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := DecodeFileReader(again); err != nil || back != a {
			t.Fatalf("%x became %x: %+v, %+v, %v", b, again, a, back, err)
		}
	})
}
