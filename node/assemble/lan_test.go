package assemble_test

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"

	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
)

// A real node opens its page at this machine's addresses, shows the words for its certificate there, and
// closes it with itself.
func TestThePageIsOpenToTheNetworkWhileTheNodeRuns(t *testing.T) {
	all := team(t, "station")
	node, err := httpapi.Dial(all["station"].dir)
	if err != nil {
		t.Fatal(err)
	}
	made, err := node.OpenLAN(context.Background(), httpapi.SignInLink{})
	if err != nil && strings.Contains(err.Error(), "no address on a network") {
		t.Skip("this machine has no address on a network, so the page was not opened to one")
	}
	if err != nil {
		t.Fatal(err)
	}
	jar, _ := cookiejar.New(nil) // there is no error
	phone := &http.Client{Jar: jar, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{
		InsecureSkipVerify: true, VerifyConnection: func(s tls.ConnectionState) error {
			if sum := sha256.Sum256(s.PeerCertificates[0].Raw); hex.EncodeToString(sum[:]) != made.Fingerprint {
				t.Errorf("the certificate is %x, want %s", sum, made.Fingerprint)
			}
			return nil
		},
	}}}
	link, err := url.Parse(made.URLs[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{link.Path, "/mesh"} {
		link.Path = path
		resp, err := phone.Get(link.String())
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK ||
			path == "/mesh" && !strings.Contains(string(b), made.Words) {
			t.Errorf("%s: %s %s, %v", path, resp.Status, b, err)
		}
	}
	all["station"].close()
	if _, err := phone.Get(link.String()); err == nil {
		t.Error("the page is open without its node")
	}
	all["station"].start()
	if _, err := phone.Get(link.String()); err == nil {
		t.Error("the page is open again with the node")
	}
}
