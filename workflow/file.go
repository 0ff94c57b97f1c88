package workflow

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mutirao-mesh/mutirao/internal/plain"
)

// Limits of files.
const (
	// MaxFileName bounds what a file is called, in bytes.
	MaxFileName = 128
	// MaxFile bounds a file: 16 GiB.
	MaxFile = 16 << 30
)

// File is what a data item of type file holds: not the content, but what it is
// called, how long it is, and a hash that its content can be verified by.
type File struct {
	Name string
	Size int64    // bytes
	Root [32]byte // of the content: see node/files
}

const filePrefix = "file:"

// String writes a file as a value: file:ROOT:SIZE:NAME, the root in hexadecimal.
func (f File) String() string {
	return filePrefix + hex.EncodeToString(f.Root[:]) + ":" + strconv.FormatInt(f.Size, 10) + ":" + f.Name
}

// ParseFile reads what String writes, and nothing else.
func ParseFile(s string) (File, error) {
	rest, is := strings.CutPrefix(s, filePrefix)
	parts := strings.SplitN(rest, ":", 3)
	if !is || len(parts) != 3 {
		return File{}, fmt.Errorf("%s is no file: give one with --file NAME=PATH", excerpt(s))
	}
	var f File
	root, err := hex.DecodeString(parts[0])
	if err != nil || len(root) != len(f.Root) {
		return File{}, fmt.Errorf("%s is no file: its hash wants 64 hexadecimal digits", excerpt(s))
	}
	copy(f.Root[:], root)
	if f.Size, err = strconv.ParseInt(parts[1], 10, 64); err != nil || f.Size < 0 || f.Size > MaxFile {
		return File{}, fmt.Errorf("%s is no file: its size is from 0 to %d bytes", excerpt(s), int64(MaxFile))
	}
	if f.Name = parts[2]; FileNameRule(f.Name) != "" {
		return File{}, fmt.Errorf("%s is no file: its name wants %s", excerpt(s), FileNameRule(f.Name))
	}
	if f.String() != s {
		return File{}, fmt.Errorf("%s is no file: it is not written in the usual way", excerpt(s))
	}
	return f, nil
}

// FileNameRule says what is wanted instead of s, which cannot be what a file is
// called; empty: it can.
func FileNameRule(s string) string {
	switch {
	case s == "" || len(s) > MaxFileName:
		return fmt.Sprintf("1 to %d bytes", MaxFileName)
	case !utf8.ValidString(s) || !plain.IsPlain(s) || strings.ContainsAny(s, "\n\t"):
		return "text on one line, without signs that cannot be seen"
	case strings.ContainsAny(s, `/\`) || s == "." || s == "..":
		return "a name without a folder"
	}
	return ""
}

// FormatSize writes a number of bytes for people.
func FormatSize(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 1_000_000:
		return fmt.Sprintf("%.3g kB", float64(n)/1e3)
	case n < 1_000_000_000:
		return fmt.Sprintf("%.3g MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.4g GB", float64(n)/1e9)
}
