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
