package mesh

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

const testService = "_mutirao-test._udp.local."

// askAndTell are a question and an answer of ours.
func askAndTell(t testing.TB, text ...string) (ask, tell []byte) {
	t.Helper()
	ask, err := questionPacket(testService)
	if err != nil {
		t.Fatal(err)
	}
	tell, err = answerPacket(testService, "bea", text)
	if err != nil {
		t.Fatal(err)
	}
	return ask, tell
}

// packed is a packet that others might send.
func packed(t testing.TB, m dnsmessage.Message) []byte {
	t.Helper()
	b, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestReadPacket(t *testing.T) {
	ask, tell := askAndTell(t, "id=x", "a=y")
	question := func(name string, kind dnsmessage.Type) dnsmessage.Question {
		return dnsmessage.Question{Name: dnsmessage.MustNewName(name), Type: kind, Class: dnsmessage.ClassINET}
	}
	text := func(name string) dnsmessage.Resource {
		return dnsmessage.Resource{
			Header: dnsmessage.ResourceHeader{Name: dnsmessage.MustNewName(name), Class: dnsmessage.ClassINET},
			Body:   &dnsmessage.TXTResource{TXT: []string{"id=z"}},
		}
	}
	asks := func(q ...dnsmessage.Question) []byte { return packed(t, dnsmessage.Message{Questions: q}) }
	tells := func(r ...dnsmessage.Resource) []byte {
		return packed(t, dnsmessage.Message{Header: dnsmessage.Header{Response: true}, Additionals: r})
	}
	ours := question(testService, dnsmessage.TypePTR)
	others := slices.Repeat([]dnsmessage.Question{question("_ipp._tcp.local.", dnsmessage.TypePTR)}, maxQuestions)
	eve := text("eve." + testService)
	for _, c := range []struct {
		name   string
		packet []byte
		asked  bool
		texts  int
	}{
		{"our question", ask, true, 0},
		{"our answer", tell, false, 1},
		{"nothing", nil, false, 0},
		{"half an answer", tell[:len(tell)-3], false, 0},
		{"another service", asks(others...), false, 0},
		{"in capitals", asks(question("_MUTIRAO-test._udp.local.", dnsmessage.TypeALL)), true, 0},
		{"an address of it", asks(question(testService, dnsmessage.TypeA)), false, 0},
		{"the last that is looked at", asks(append(others[1:], ours)...), true, 0},
		{"beyond those", asks(append(others, ours)...), false, 0},
		{"a question with a text", packed(t, dnsmessage.Message{
			Questions: []dnsmessage.Question{ours}, Additionals: []dnsmessage.Resource{eve},
		}), true, 0},
		{"an answer with our question", packed(t, dnsmessage.Message{
			Header: dnsmessage.Header{Response: true}, Questions: []dnsmessage.Question{ours},
		}), false, 0},
		{"a text of another service", tells(text("eve._ipp._tcp.local.")), false, 0},
		{"two instances", tells(eve, text("mal."+testService)), false, 2},
		{"more than are looked at", tells(slices.Repeat([]dnsmessage.Resource{eve}, 99)...), false, maxRecords},
	} {
		if h := readPacket(c.packet, testService); h.asked != c.asked || len(h.texts) != c.texts {
			t.Errorf("%s: asked %t, texts %q; want %t, %d", c.name, h.asked, h.texts, c.asked, c.texts)
		}
	}
	if h := readPacket(tell, testService); !slices.Equal(h.texts[0], []string{"id=x", "a=y"}) {
		t.Errorf("the text arrives as %q", h.texts[0])
	}
}

// An announcement fits into one packet of a network, however many addresses a node has.
func TestAnnouncementIsSmall(t *testing.T) {
	long := addrKey + "/ip6/2001:db8:1234:5678:9abc:def0:1234:5678/udp/65535/quic-v1"
	text := slices.Repeat([]string{long}, maxAnnounced)
	text = append(text, idKey+"12D3KooWQYhTNQdmr3ArTeUHRYzFg94BKyTkoWBDWez9kSCVe2Xo")
	if _, tell := askAndTell(t, text...); len(tell) > 1200 {
		t.Errorf("an announcement of %d bytes", len(tell))
	}
}

// Whatever arrives, it is read without harm, and what is taken of it is bounded.
func FuzzReadPacket(f *testing.F) {
	ask, tell := askAndTell(f, "id=x", "a=y")
	f.Add([]byte{})
	f.Add(ask)
	f.Add(tell)
	f.Fuzz(func(t *testing.T, b []byte) {
		h := readPacket(b, testService)
		if h.asked && h.texts != nil || len(h.texts) > maxRecords {
			t.Fatalf("%x: asked %t, %d texts", b, h.asked, len(h.texts))
		}
		for _, text := range h.texts {
			size := 0
			for _, s := range text {
				size += len(s)
			}
			if size > len(b) {
				t.Fatalf("%d bytes of text in a packet of %d", size, len(b))
			}
			id, addrs, err := readAnnouncement(text, 8)
			if err == nil && (id.Validate() != nil || len(addrs) == 0 || len(addrs) > 8) {
				t.Fatalf("%q announces %q at %v", text, id, addrs)
			}
		}
	})
}

// However many ask, the network carries one answer a second, and the last who asked gets one before it stops
// listening.
func TestAnswersAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		asked, answers := make(chan struct{}, 1), 0
		var last time.Time
		go answerAll(ctx, asked, func() { answers, last = answers+1, time.Now() })
		ask := func() {
			select {
			case asked <- struct{}{}:
			default:
			}
		}
		const seconds = 10
		for range seconds * 1000 {
			ask()
			time.Sleep(time.Millisecond)
		}
		ask()
		end := time.Now()
		time.Sleep(listenTime)
		synctest.Wait()
		if answers > seconds+2 || last.Before(end) {
			t.Errorf("%d answers in %d s; the last came %s after the last question", answers, seconds, last.Sub(end))
		}
		cancel()
		synctest.Wait()
	})
}
