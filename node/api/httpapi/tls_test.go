package httpapi_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/api/apitest"
	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
)

// certify makes a certificate of its own for some names.
func certify(t *testing.T, names ...string) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: names, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	return writePEM(t, dir, "CERTIFICATE", der), writePEM(t, dir, "PRIVATE KEY", secret)
}

func writePEM(t *testing.T, dir, kind string, der []byte) string {
	t.Helper()
	path := filepath.Join(dir, strings.Fields(kind)[0]+".pem")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Off loopback the node serves TLS only, answers to its certificate's names,
// and its own client trusts that certificate and no other.
func TestTLS(t *testing.T) {
	fake := &apitest.Fake{OnStatus: func() (*api.Status, error) { return &api.Status{Name: "ana"}, nil }}
	var o httpapi.Options
	o.Certificate, o.Key = certify(t, "station.example")
	dir, s := serve(t, "0.0.0.0:0", fake, o)
	if a := s.Access(); !strings.HasPrefix(a.URL, "https://127.0.0.1:") {
		t.Errorf("access %+v", a)
	}
	if st, err := dial(t, dir).Status(t.Context()); err != nil || st.Name != "ana" {
		t.Errorf("own client: %v, %v", st, err)
	}

	// Any client may come by the certificate's name, and by no other.
	trusting := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	for host, want := range map[string]int{"station.example": 200, "other.example": 403} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.Access().URL+"/v1/status", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		req.Header.Set("Authorization", "Bearer "+s.Access().Token)
		req.Header.Set("Origin", "https://"+host)
		resp, err := trusting.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("as %s: %s %s", host, resp.Status, body)
		}
	}

	// Somebody else's server at the node's address does not get the token.
	path := filepath.Join(dir, api.AccessFile)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	forged := strings.Replace(string(b), s.Access().Certificate, strings.Repeat("0", 64), 1)
	if err := os.WriteFile(path, []byte(forged), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := dial(t, dir).Status(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "not the node's certificate") {
		t.Errorf("a foreign certificate: %v", err)
	}
}

func TestUnusableCertificate(t *testing.T) {
	certificate, _ := certify(t, "a")
	_, err := httpapi.Serve(t.TempDir(), "127.0.0.1:0", &apitest.Fake{},
		httpapi.Options{Certificate: certificate, Key: certificate})
	if err == nil || !strings.Contains(err.Error(), "certificate cannot be used") {
		t.Errorf("got %v", err)
	}
}
