package httpapi

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	_ "embed"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/internal/private"
	"github.com/mutirao-mesh/mutirao/node/api"
)

const (
	lanCertificateLife  = 365 * 24 * time.Hour
	lanCertificateRenew = 30 * 24 * time.Hour // before its end; sessions are shorter
	lanCertificateEarly = 24 * time.Hour      // for phones whose clock is slow
	lanWords            = 8                   // of a fingerprint: 64 of its bits
)

// fingerprint is the SHA-256 of a certificate.
type fingerprint [sha256.Size]byte

// String is how browsers show it, without what they put between the digits.
func (f fingerprint) String() string { return hex.EncodeToString(f[:]) }

//go:embed words.txt
var wordsText string

// wordList has a word for each byte.
var wordList = strings.Fields(wordsText)

// words are the first bytes of a fingerprint, a word for each.
func (f fingerprint) words() string {
	out := make([]string, lanWords)
	for i := range out {
		out[i] = wordList[f[i]]
	}
	return strings.Join(out, " ")
}

// lanCertificate is the certificate that the node made for its page on the network, with its key.
type lanCertificate struct {
	pair tls.Certificate
	sum  fingerprint
}

func newLANCertificate(pair tls.Certificate) *lanCertificate {
	return &lanCertificate{pair, sha256.Sum256(pair.Certificate[0])}
}

// fits reports whether the certificate can be used now and for a while, for all of these addresses.
func (c *lanCertificate) fits(addresses []netip.Addr, now time.Time) bool {
	leaf := c.pair.Leaf
	if now.Before(leaf.NotBefore) || now.Add(lanCertificateRenew).After(leaf.NotAfter) {
		return false
	}
	return !slices.ContainsFunc(addresses, func(a netip.Addr) bool { return leaf.VerifyHostname(a.String()) != nil })
}

// certificate is the one that is kept, or where that will not do a new one, which is kept from now on. l.mu
// is held.
func (l *lan) certificate(addresses []netip.Addr) (*lanCertificate, error) {
	if l.kept == nil && l.o.dir != "" {
		if err := l.load(); err != nil {
			return nil, err
		}
	}
	if l.kept != nil && l.kept.fits(addresses, time.Now()) {
		return l.kept, nil
	}
	c, text, err := makeLANCertificate(addresses, time.Now())
	if err != nil {
		return nil, fmt.Errorf("make a certificate for the page: %w", err)
	}
	if l.o.dir != "" {
		if err := private.Write(l.certificateFile(), text); err != nil {
			return nil, api.Errorf(api.Failed, "the certificate for the page cannot be kept: %v", err).
				WithHint("look at the disk of the node's folder")
		}
	}
	l.kept = c
	return c, nil
}

func (l *lan) certificateFile() string { return filepath.Join(l.o.dir, api.PageFile) }

// load reads the certificate that is kept. One that is damaged is no loss: another is made.
func (l *lan) load() error {
	text, err := private.Read(l.certificateFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var loose *private.LooseError
	if errors.As(err, &loose) {
		return api.Judge(api.Refused, err).WithHint("%s", loose.Mend)
	}
	var pair tls.Certificate
	if err == nil {
		pair, err = tls.X509KeyPair(text, text)
	}
	if err != nil {
		l.o.Logger.Warn("the certificate for the page on the network cannot be read: another is made",
			"file", l.certificateFile(), "error", err)
		return nil
	}
	l.kept = newLANCertificate(pair)
	return nil
}

// makeLANCertificate makes a certificate that only vouches for itself, and the file in which it is kept with
// its key. It names the addresses, and tells nothing else of the node.
func makeLANCertificate(addresses []netip.Addr, now time.Time) (*lanCertificate, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "Mutirao"},
		NotBefore: now.Add(-lanCertificateEarly), NotAfter: now.Add(lanCertificateLife),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	for _, a := range addresses {
		template.IPAddresses = append(template.IPAddresses, a.AsSlice())
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, nil, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	var text bytes.Buffer
	err = errors.Join(
		pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.Encode(&text, &pem.Block{Type: "PRIVATE KEY", Bytes: secret}),
	)
	if err != nil {
		return nil, nil, err
	}
	pair, err := tls.X509KeyPair(text.Bytes(), text.Bytes())
	if err != nil {
		return nil, nil, err
	}
	return newLANCertificate(pair), text.Bytes(), nil
}
