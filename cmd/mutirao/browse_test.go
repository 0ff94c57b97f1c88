package main

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
)

// browse signs in by a link and returns what pages of the node hold. Over TLS it trusts the certificate of the
// fingerprint only.
func browse(link, fingerprint, language string, paths []string) (string, error) {
	node, err := url.Parse(link)
	if err != nil {
		return "", err
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		return "", err
	}
	client := &http.Client{Jar: jar, Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: pinned(fingerprint),
	}}
	var out strings.Builder
	for i, path := range append([]string{node.Path}, paths...) {
		node.Path = path
		req, err := http.NewRequest(http.MethodGet, node.String(), nil)
		if err != nil {
			return "", err
		}
		req.Header.Set("Accept-Language", language)
		resp, err := client.Do(req)
		if err != nil {
			return "", err
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			return "", err
		}
		if resp.StatusCode != http.StatusOK {
			return "", fmt.Errorf("%s: %s\n%s", path, resp.Status, body)
		}
		if i > 0 {
			out.Write(body)
		}
	}
	return out.String(), nil
}

// pinned trusts the certificate of a SHA-256 fingerprint, and no other.
func pinned(fingerprint string) *tls.Config {
	return &tls.Config{InsecureSkipVerify: true, VerifyConnection: func(s tls.ConnectionState) error {
		if sum := sha256.Sum256(s.PeerCertificates[0].Raw); hex.EncodeToString(sum[:]) != fingerprint {
			return fmt.Errorf("the certificate is %x, want %s", sum, fingerprint)
		}
		return nil
	}}
}
