package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
)

// The QR code that "web --lan" prints fits a terminal of 80 columns and 24 lines, by whatever address the node has; by
// one of IPv4 the link, its code and the words that are compared do together.
func TestALinkWithItsCodeFitsATerminal(t *testing.T) {
	for at, together := range map[string]bool{
		"10.0.0.7:443": true, "192.168.100.200:65535": true, "[fd12:3456:789a:bcde:1234:5678:9abc:def0]:65535": false,
	} {
		link := "https://" + at + "/sign-in/" + strings.Repeat("M7", 13)
		var shown bytes.Buffer
		u := &ui{out: &shown, err: &shown, format: "text", terminal: true, progress: true}
		if err := u.writeLAN(&httpapi.LAN{
			URLs: []string{link}, User: "ana", Acts: true, Fingerprint: strings.Repeat("5f", 32),
			Words: "atom anchor anvil apple arrow autumn badge bamboo",
		}, ""); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSuffix(shown.String(), "\n"), "\n")
		from, to := slices.Index(lines, link), slices.Index(lines, "In words, as at the foot of the page:")
		if from < 0 || to < from+10 {
			t.Fatalf("%s: there is no link, or no code of it:\n%s", at, &shown)
		}
		high := to - from - 1
		if together {
			high = len(lines) - from
		}
		if high > 23 { // and one to type at
			t.Errorf("%s: it takes %d lines:\n%s", at, high, &shown)
		}
		for _, line := range lines {
			if wide := utf8.RuneCountInString(line); wide > 80 && (together || line != link) {
				t.Errorf("%s: %d columns are needed: %s", at, wide, line)
			}
		}
	}
}

// What "web" prints fits such a terminal, too, with its code: the notes, the link, and the code.
func TestALinkToThisMachineHasItsCode(t *testing.T) {
	link := webLink{URL: "http://127.0.0.1:65535/sign-in/" + strings.Repeat("M7", 13), User: "ana", Acts: true}
	for _, x := range []struct {
		ui   ui
		code bool
	}{
		{ui{format: "text", terminal: true, progress: true}, true},
		{ui{format: "text", terminal: true, quiet: true}, false},
		{ui{format: "text", progress: true}, false}, // the link goes into a file or a pipe
		{ui{format: "json", terminal: true, progress: true}, false},
	} {
		var shown bytes.Buffer
		x.ui.out, x.ui.err = &shown, &shown
		if err := x.ui.writeLink(link, ""); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSuffix(shown.String(), "\n"), "\n")
		if got := strings.Contains(shown.String(), "▀"); got != x.code {
			t.Errorf("%s, terminal %v, progress %v: a code %v, want %v", x.ui.format, x.ui.terminal, x.ui.progress, got, x.code)
		}
		if from := slices.Index(lines, link.URL); x.code && (from < 0 || len(lines)-from > 23) {
			t.Errorf("the link and its code do not fit 24 lines:\n%s", &shown)
		}
		for _, line := range lines {
			if wide := utf8.RuneCountInString(line); x.code && wide > 80 {
				t.Errorf("%d columns are needed: %s", wide, line)
			}
		}
	}
}
