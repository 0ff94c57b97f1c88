package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/mutirao-mesh/mutirao/internal/private"
)

// AccessFile is the file in the node's folder that tells its user's programs
// how to reach the running node. Only that user can read it.
const AccessFile = "api.json"

// Access is what AccessFile holds.
type Access struct {
	Address string `json:"address"`       // HOST:PORT, or unix:PATH
	URL     string `json:"url,omitempty"` // the same as an address for browsers
	Token   string `json:"token"`         // new whenever the node starts
	PID     int    `json:"pid"`
	// Certificate is the SHA-256 of the TLS certificate, in hexadecimal.
	Certificate string `json:"certificate,omitempty"`
}

func (a Access) write(dir string) error {
	b, err := json.MarshalIndent(a, "", "  ")
	if err != nil {
		return err
	}
	if err := private.Write(filepath.Join(dir, AccessFile), append(b, '\n')); err != nil {
		return fmt.Errorf("tell where the API is: %w", err)
	}
	return nil
}

// remove removes the file unless another node has written it since.
func (a Access) remove(dir string) error {
	if now, err := readAccess(dir); err != nil || now.Token != a.Token {
		return nil
	}
	return os.Remove(filepath.Join(dir, AccessFile))
}

func readAccess(dir string) (Access, error) {
	b, err := os.ReadFile(filepath.Join(dir, AccessFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Access{}, noNode(dir)
	case errors.Is(err, fs.ErrPermission):
		return Access{}, Errorf(NotAllowed, "the node in %s belongs to another user: %v", dir, err)
	case err != nil:
		return Access{}, Errorf(Failed, "find the node in %s: %v", dir, err)
	}
	var a Access
	if err := json.Unmarshal(b, &a); err != nil || a.Address == "" {
		return Access{}, Errorf(Failed, "%s is damaged", filepath.Join(dir, AccessFile)).WithHint("restart the node: it writes the file again")
	}
	return a, nil
}

// noNode says that nobody answers for dir, and what to do about it.
func noNode(dir string) *Error {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return Errorf(NoNode, "there is no node in %s", dir).
			WithHint("make one with \"mutirao init\" or \"mutirao join\", or name another folder with --dir")
	}
	return Errorf(NoNode, "no node is running in %s", dir).WithHint("start it: mutirao up --dir %s", dir)
}
