package configs

import (
	"crypto/tls"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// In is where a file lies that the configuration of a node's folder names; empty for none.
func In(dir, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// fileMistakes are what is wrong with the files that the configuration names.
func (c Config) fileMistakes(dir string) (m mistakes) {
	c.checkSocket(&m, dir)
	c.checkCertificate(&m, dir)
	return m
}

// checkSocket looks whether the API's socket can be made where it is to be.
func (c Config) checkSocket(m *mistakes, dir string) {
	path, ok := strings.CutPrefix(c.API, "unix:")
	if !ok || path == "" {
		return
	}
	path = In(dir, path)
	folder, err := os.Stat(filepath.Dir(path))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		m.add("api", c.API, "there is no folder %s: want a socket in one that is there, e.g. unix:api.sock",
			filepath.Dir(path))
		return
	case err != nil:
		m.add("api", c.API, "its folder cannot be used: %v", err)
		return
	case !folder.IsDir():
		m.add("api", c.API, "%s is no folder: want a socket in one that is there, e.g. unix:api.sock",
			filepath.Dir(path))
		return
	}
	if there, err := os.Lstat(path); err == nil && there.Mode().Type() != fs.ModeSocket {
		m.add("api", c.API, "%s is there already, and is no socket: want another name, e.g. unix:api.sock", path)
	}
}

// checkCertificate reads the API's certificate and its key.
func (c Config) checkCertificate(m *mistakes, dir string) {
	if c.TLS.Certificate == "" || c.TLS.Key == "" {
		return
	}
	const cannot = "the API's certificate cannot be used: %v; tls names two PEM files, a certificate and its key, relative to the node's folder"
	cert, err := os.ReadFile(In(dir, c.TLS.Certificate))
	if err != nil {
		m.add("tls.certificate", c.TLS.Certificate, cannot, err)
	}
	key, keyErr := os.ReadFile(In(dir, c.TLS.Key))
	if keyErr != nil {
		m.add("tls.key", c.TLS.Key, cannot, keyErr)
	}
	if err != nil || keyErr != nil {
		return
	}
	if _, err := tls.X509KeyPair(cert, key); err != nil {
		m.add("tls", c.TLS.Certificate, cannot, err)
	}
}
