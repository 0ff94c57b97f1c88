package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/mutirao-mesh/mutirao/internal/private"
	"github.com/mutirao-mesh/mutirao/node/api"
)

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
	if err := private.Write(filepath.Join(dir, api.AccessFile), append(b, '\n')); err != nil {
		return fmt.Errorf("tell where the API is: %w", err)
	}
	return nil
}

// remove removes the file unless another node has written it since.
func (a Access) remove(dir string) error {
	if now, err := readAccess(dir); err != nil || now.Token != a.Token {
		return nil
	}
	return os.Remove(filepath.Join(dir, api.AccessFile))
}

func readAccess(dir string) (Access, error) {
	b, err := os.ReadFile(filepath.Join(dir, api.AccessFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Access{}, noNode(dir)
	case errors.Is(err, fs.ErrPermission):
		return Access{}, api.Errorf(api.NotAllowed, "the node in %s belongs to another user: %v", dir, err)
	case err != nil:
		return Access{}, api.Errorf(api.Failed, "find the node in %s: %v", dir, err)
	}
	var a Access
	if err := json.Unmarshal(b, &a); err != nil || a.Address == "" {
		return Access{}, api.Errorf(api.Failed, "%s is damaged", filepath.Join(dir, api.AccessFile)).
			WithHint("restart the node: it writes the file again")
	}
	return a, nil
}

// noNode says that nobody answers for dir, and what to do about it.
func noNode(dir string) *api.Error {
	if _, err := os.Stat(filepath.Join(dir, api.MemberFile)); errors.Is(err, fs.ErrNotExist) {
		return api.Errorf(api.NoNode, "there is no node in %s", dir).
			WithHint("make one with \"mutirao init\" or \"mutirao join\", or name another folder with --dir")
	}
	return api.Errorf(api.NoNode, "no node is running in %s", dir).
		WithHint("start it: mutirao up --dir %s", private.Quote(dir))
}
