package native

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"golang.org/x/text/encoding/charmap"
)

// Unmarked is a file without the mark by which some editors begin one in UTF-8: it is no part of its text.
func Unmarked(src []byte) []byte { return bytes.TrimPrefix(src, []byte("\ufeff")) }

// CharsetReader decodes the character sets that files of XML are written in besides
// UTF-8, as [xml.Decoder] asks.
func CharsetReader(label string, input io.Reader) (io.Reader, error) {
	switch strings.ToLower(label) {
	case "us-ascii", "iso-8859-1", "latin1":
		return charmap.ISO8859_1.NewDecoder().Reader(input), nil
	case "iso-8859-15":
		return charmap.ISO8859_15.NewDecoder().Reader(input), nil
	case "windows-1252":
		return charmap.Windows1252.NewDecoder().Reader(input), nil
	}
	return nil, fmt.Errorf("character set %q is not known: save the file as UTF-8", label)
}
