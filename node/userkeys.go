package node

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/mutirao-mesh/mutirao/internal/private"
	"github.com/mutirao-mesh/mutirao/node/users"
)

// usersFolder holds, in a node's folder, the keys of the users who are signed in there: a
// private file for each, named by the user's ID, as the node's own key is kept.
const usersFolder = "users"

// userKeys are the keys of users in a folder.
type userKeys struct{ dir string }

// UserKeysIn are the keys of users in the folder of a node.
func UserKeysIn(dir string) users.Keys { return userKeys{filepath.Join(dir, usersFolder)} }

// UserKeyFiles are the private files with keys of users in a node's folder, named from there.
func UserKeyFiles(dir string) (out []string) {
	names, _ := userKeys{filepath.Join(dir, usersFolder)}.names() // what cannot be listed cannot be read
	for _, name := range names {
		out = append(out, filepath.Join(usersFolder, name))
	}
	return out
}

// names are those of the files. What a crash has left of one is not among them.
func (k userKeys) names() (out []string, err error) {
	list, err := os.ReadDir(k.dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	for _, f := range list {
		if !strings.Contains(f.Name(), ".") {
			out = append(out, f.Name())
		}
	}
	return out, err
}

func (k userKeys) All() (keys map[string]ed25519.PrivateKey, unfit []error) {
	names, err := k.names()
	if err != nil {
		unfit = append(unfit, err)
	}
	keys = map[string]ed25519.PrivateKey{}
	for _, name := range names {
		key, err := readKey(filepath.Join(k.dir, name))
		if err != nil {
			unfit = append(unfit, err)
			continue
		}
		keys[name] = key
	}
	return keys, unfit
}

func (k userKeys) Make(user string) (ed25519.PrivateKey, error) {
	if err := private.Folder(k.dir); err != nil {
		return nil, err
	}
	file := filepath.Join(k.dir, user)
	key, err := readKey(file)
	if !errors.Is(err, os.ErrNotExist) {
		return key, err
	}
	if _, key, err = ed25519.GenerateKey(rand.Reader); err != nil {
		return nil, err
	}
	return key, writeKey(file, key)
}

func (k userKeys) Remove(user string) error {
	err := os.Remove(filepath.Join(k.dir, user))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// readKey and writeKey read and write a private file with the seed of a key.
func readKey(file string) (ed25519.PrivateKey, error) {
	b, err := private.Read(file)
	if err != nil {
		return nil, err
	}
	seed, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(b)))
	if err != nil || len(seed) != ed25519.SeedSize {
		return nil, fmt.Errorf("%s holds no key", file)
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

func writeKey(file string, key ed25519.PrivateKey) error {
	return private.Write(file, []byte(base64.StdEncoding.EncodeToString(key.Seed())+"\n"))
}

// noKeys are those of a node in which nobody can sign in.
type noKeys struct{}

var errNoKeys = errors.New("this node keeps no keys of users")

func (noKeys) All() (map[string]ed25519.PrivateKey, []error) { return nil, nil }
func (noKeys) Make(string) (ed25519.PrivateKey, error)       { return nil, errNoKeys }
func (noKeys) Remove(string) error                           { return nil }
