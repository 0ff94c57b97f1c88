package invitation

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mutirao-mesh/mutirao/membership/internal/token"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/membership/trust/trusttest"
)

// door is an issuer's book with one invitation, and that invitation.
type door struct {
	trusttest.Team
	book *InviteBook
	inv  Invitation
}

// newDoor opens an invitation for uses partners at davi's, valid for a day.
func newDoor(t *testing.T, uses int) door {
	t.Helper()
	tm := trusttest.New(t)
	d := door{Team: tm, book: NewInviteBook(tm.Davi)}
	e := Entry{
		Secret: Secret{1, 2, 3}, Roles: trusttest.Roles("crew"), Uses: uses,
		Expires: trust.WallOf(trusttest.Noon.Add(24 * time.Hour)), Lifetime: trusttest.Year / 2,
	}
	if err := d.book.Open(e); err != nil {
		t.Fatal(err)
	}
	inv, err := d.book.Invitation(e, []string{"/ip4/10.1.2.3/udp/4001/quic-v1", "/ip4/10.1.2.3/tcp/4001"})
	if err != nil {
		t.Fatal(err)
	}
	d.inv = inv
	return d
}

// challenge carries name's hello to the issuer and brings the offer.
func (d door) challenge(t *testing.T, name string, fresh byte) (Hello, Offer) {
	t.Helper()
	h := NewHello(d.inv, trusttest.IDOf(name), Nonce{fresh})
	o, err := NewOffer(d.Davi, h, Nonce{fresh, 1})
	if err != nil {
		t.Fatal(err)
	}
	return h, o
}

// prove is a whole honest attempt up to the proof.
func (d door) prove(t *testing.T, name string, fresh byte) (Offer, Proof) {
	t.Helper()
	h, o := d.challenge(t, name, fresh)
	p, err := Prove(d.inv, h, o, trusttest.KeyOf(name), name, trusttest.Noon)
	if err != nil {
		t.Fatal(err)
	}
	return o, p
}

// redeem redeems at the time and, as its caller does, keeps the entry.
func (d door) redeem(o Offer, p Proof, at time.Time) (trust.Chain, error) {
	ch, e, err := d.book.Redeem(o, p, at, trusttest.Serial("fresh"+p.Name+at.String()), d.Known)
	if err != nil {
		return nil, err
	}
	return ch, d.book.Open(e)
}

func TestJoining(t *testing.T) {
	d := newDoor(t, 1)
	inv, err := ParseInvitation(d.inv.Token())
	if err != nil {
		t.Fatal(err)
	}
	d.inv = inv
	o, p := d.prove(t, "bia", 1)
	ch, err := d.redeem(o, p, trusttest.Noon)
	if err != nil {
		t.Fatal(err)
	}
	w, err := DecodeWelcome(EncodeWelcome(Welcome{Chain: ch}))
	if err != nil {
		t.Fatal(err)
	}
	if err := Accept(o, trusttest.KeyOf("bia"), w, trusttest.Noon); err != nil {
		t.Fatal(err)
	}
	if leaf := ch.Leaf(); leaf.Partner != trusttest.IDOf("bia") || leaf.Name != "bia" || !leaf.HasRole("crew") ||
		leaf.Delegate {
		t.Errorf("certificate is %+v", leaf)
	}
	if err := Accept(o, trusttest.KeyOf("caio"), w, trusttest.Noon); err == nil {
		t.Error("another accepts bia's welcome")
	}
}

func TestInvitationIsUsedUp(t *testing.T) {
	d := newDoor(t, 2)
	first, err := d.redeem(d.twice(t, "bia", 1))
	if err != nil {
		t.Fatal(err)
	}
	again, err := d.redeem(d.twice(t, "bia", 2)) // the welcome was lost in a crash
	if err != nil || !again.Equal(first) {
		t.Errorf("bia's second attempt: %v, %v", again, err)
	}
	if left := d.book.Entries()[0].Left(); left != 1 {
		t.Errorf("%d uses are left, want 1", left)
	}
	if _, err := d.redeem(d.twice(t, "caio", 3)); err != nil {
		t.Error(err)
	}
	_, err = d.redeem(d.twice(t, "eve", 4))
	trusttest.Refused(t, err, ErrUsedUp, "2 of 2 uses")
	if again, err = d.redeem(d.twice(t, "bia", 5)); err != nil || !again.Equal(first) {
		t.Errorf("bia's third attempt: %v", err)
	}
}

// twice is prove with the time at which to redeem, to pass both on.
func (d door) twice(t *testing.T, name string, fresh byte) (Offer, Proof, time.Time) {
	o, p := d.prove(t, name, fresh)
	return o, p, trusttest.Noon
}

func TestInvitationIsRefused(t *testing.T) {
	d := newDoor(t, 3)
	o, p := d.prove(t, "bia", 1)
	_, replayed := d.challenge(t, "bia", 2)
	_, evesOffer := d.challenge(t, "eve", 1)
	renamed := p
	renamed.Name = "commander"
	stranger := d.inv
	stranger.Secret = Secret{9}
	h := NewHello(d.inv, trusttest.IDOf("eve"), Nonce{1})
	guess, err := Prove(stranger, h, evesOffer, trusttest.KeyOf("eve"), "eve", trusttest.Noon)
	if err != nil {
		t.Fatal(err)
	}
	stolen, err := Prove(d.inv, Hello{d.inv.Secret.ID(), trusttest.IDOf("bia"), Nonce{1}}, o, trusttest.KeyOf("eve"),
		"bia", trusttest.Noon)
	if err != nil {
		t.Fatal(err)
	}
	unknown := o
	unknown.Hello.Invitation = InvitationID{7}
	for _, c := range []struct {
		name string
		o    Offer
		p    Proof
		at   time.Time
		kind error
		what string
	}{
		{"replayed proof", replayed, p, trusttest.Noon, trust.ErrForged, "does not hold the invitation's secret"},
		{"proof for another partner", evesOffer, p, trusttest.Noon, trust.ErrForged,
			"does not hold the invitation's secret"},
		{"other name", o, renamed, trusttest.Noon, trust.ErrForged, "does not hold the invitation's secret"},
		{"guessed secret", evesOffer, guess, trusttest.Noon, trust.ErrForged, "does not hold the invitation's secret"},
		{"another's key", o, stolen, trusttest.Noon, trust.ErrForged, trusttest.IDOf("bia").Short()},
		{"expired", o, p, trusttest.Noon.Add(24*time.Hour + time.Second), trust.ErrExpired,
			"at 2026-11-21T12:00:00Z: ask for another"},
		{"unknown", unknown, p, trusttest.Noon, ErrUnknownInvitation, "withdrawn, expired, or is another's"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := d.redeem(c.o, c.p, c.at)
			trusttest.Refused(t, err, c.kind, c.what)
			if d.book.Entries()[0].Left() != 3 {
				t.Error("a use was counted")
			}
		})
	}
}

func TestJoinerVerifiesBeforeItProves(t *testing.T) {
	d := newDoor(t, 1)
	h, good := d.challenge(t, "bia", 1)
	sign := func(o Offer, name string) Offer {
		o.Signature = trust.Sign(trusttest.KeyOf(name), offerDomain, o.body())
		return o
	}
	evesMesh, stale, mere := good, good, good
	evesMesh.Mesh.Founder = trusttest.IDOf("eve")
	stale.Hello.Nonce = Nonce{9}
	mere.Chain = d.Member(t, d.Ana, "davi")
	for _, c := range []struct {
		name string
		o    Offer
		at   time.Time
		kind error
		what string
	}{
		{"other founder", sign(evesMesh, "davi"), trusttest.Noon, trust.ErrWrongMesh,
			"showed the founder of another mesh"},
		{"impostor", sign(good, "eve"), trusttest.Noon, trust.ErrForged, "join-offer"},
		{"not a delegate", sign(mere, "davi"), trusttest.Noon, trust.ErrNotAllowed, "does not let it invite"},
		{"expired delegate", good, trusttest.Noon.Add(2 * trusttest.Year), trust.ErrExpired, "davi"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := Prove(d.inv, h, c.o, trusttest.KeyOf("bia"), "bia", c.at)
			trusttest.Refused(t, err, c.kind, c.what)
			if p.MAC != [32]byte{} {
				t.Error("the secret was used all the same")
			}
		})
	}
	if _, err := Prove(d.inv, h, sign(stale, "davi"), trusttest.KeyOf("bia"), "bia", trusttest.Noon); err == nil ||
		!strings.Contains(err.Error(), "another request") {
		t.Errorf("stale offer: %v", err)
	}
}

func TestEvictedPartnerDoesNotRejoin(t *testing.T) {
	d := newDoor(t, 2)
	ch, err := d.redeem(d.twice(t, "bia", 1))
	if err != nil {
		t.Fatal(err)
	}
	d.Evict(t, d.Ana, "bia", trust.Serial{}, ch)
	_, err = d.redeem(d.twice(t, "bia", 2))
	trusttest.Refused(t, err, trust.ErrRevoked, "bia")
}

func TestBookSurvivesARestart(t *testing.T) {
	d := newDoor(t, 2)
	if _, err := d.redeem(d.twice(t, "bia", 1)); err != nil {
		t.Fatal(err)
	}
	restored := NewInviteBook(d.Davi)
	for _, e := range d.book.Entries() {
		back, err := DecodeEntry(EncodeEntry(e))
		if err != nil {
			t.Fatal(err)
		}
		if err := restored.Open(back); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(d.book.Entries(), restored.Entries()); diff != "" {
		t.Error(diff)
	}
	d.book = restored
	if _, err := d.redeem(d.twice(t, "caio", 2)); err != nil {
		t.Error(err)
	}
	_, err := d.redeem(d.twice(t, "gil", 3))
	trusttest.Refused(t, err, ErrUsedUp, "2 of 2")
}

func TestBookCloses(t *testing.T) {
	d := newDoor(t, 1)
	if gone := d.book.Expire(trusttest.Noon.Add(48 * time.Hour)); len(gone) != 0 {
		t.Errorf("closed %v, although a lost welcome may still be asked for", gone)
	}
	if gone := d.book.Expire(trusttest.Noon.Add(48*time.Hour + time.Second)); len(gone) != 1 ||
		gone[0] != d.inv.Secret.ID() {
		t.Errorf("closed %v, want %v", gone, d.inv.Secret.ID())
	}
	d = newDoor(t, 1)
	if !d.book.Withdraw(d.inv.Secret.ID()) || d.book.Withdraw(d.inv.Secret.ID()) {
		t.Error("an open invitation is withdrawn exactly once")
	}
}

func TestBookRefuses(t *testing.T) {
	tm := trusttest.New(t)
	good := Entry{Secret: Secret{1}, Uses: 1, Expires: trust.WallOf(trusttest.Noon), Lifetime: trusttest.Year}
	for _, c := range []struct {
		what string
		with func(*Entry)
	}{
		{"without a secret", func(e *Entry) { e.Secret = Secret{} }},
		{"0 uses: want 1 to 1024", func(e *Entry) { e.Uses = 0 }},
		{"an hour at least", func(e *Entry) { e.Lifetime = time.Minute }},
		{"role name", func(e *Entry) { e.Roles = trusttest.Roles("no role") }},
		{"only the founder makes delegates", func(e *Entry) { e.Delegate = true }},
	} {
		e := good
		c.with(&e)
		if err := NewInviteBook(tm.Davi).Open(e); err == nil || !strings.Contains(err.Error(), c.what) {
			t.Errorf("error %v, want %q", err, c.what)
		}
	}
}

func TestTokenIsForgivingAboutFormOnly(t *testing.T) {
	d := newDoor(t, 1)
	token := d.inv.Token()
	for _, text := range []string{
		token, strings.ToUpper(token), " " + token[:30] + "-\n\t" + token[30:],
		token[:8] + strings.NewReplacer("0", "O", "1", "l").Replace(token[8:]),
	} {
		got, err := ParseInvitation(text)
		if diff := cmp.Diff(d.inv, got); err != nil || diff != "" {
			t.Errorf("ParseInvitation(%q): %v %s", text, err, diff)
		}
	}
	swapped := []byte(token) // two neighbours that differ, as typing does it
	i := 20
	for swapped[i] == swapped[i+1] {
		i++
	}
	swapped[i], swapped[i+1] = swapped[i+1], swapped[i]
	for _, c := range []struct{ text, what string }{
		{"", `begins with "mutirao1"`},
		{"https://example.org", `begins with "mutirao1"`},
		{token[:len(token)-2], "missing or mistyped"},
		{token[:len(token)-8], ""},
		{token + "7", "missing or mistyped"},
		{string(swapped), "check digits"},
		{"mutirao1", "missing or mistyped"},
		{strings.Repeat("x", 2*MaxToken+1), "at most 4096"},
	} {
		if _, err := ParseInvitation(c.text); !errors.Is(err, ErrBadInvitation) ||
			!strings.Contains(err.Error(), c.what) {
			t.Errorf("ParseInvitation(%.20q…): %v, want %q", c.text, err, c.what)
		}
	}
	if err := d.inv.ExpiredAt(trusttest.Noon.Add(48 * time.Hour)); err != nil {
		t.Error(err)
	}
	trusttest.Refused(t, d.inv.ExpiredAt(trusttest.Noon.Add(48*time.Hour+time.Second)), trust.ErrExpired,
		"ask for another")
}

func TestAnySingleTypoIsFound(t *testing.T) {
	word := newDoor(t, 1).inv.Token()
	rapid.Check(t, func(t *rapid.T) {
		i := rapid.IntRange(len(text.Prefix), len(word)-1).Draw(t, "position")
		b := []byte(word)
		b[i] = token.Digits[rapid.IntRange(0, 31).Draw(t, "digit")]
		if _, err := ParseInvitation(string(b)); string(b) != word && err == nil {
			t.Fatalf("typo at %d goes unnoticed", i)
		}
	})
}

// An invitation names its issuer's addresses and, by an ID behind them, those of
// others who pass on; an address that leads over a relay ends otherwise.
func TestWays(t *testing.T) {
	const straight, relayed, other = "/ip4/10.1.2.3/udp/4001/quic-v1",
		"/ip4/10.1.2.9/udp/4001/quic-v1/p2p/relay/p2p-circuit", "/ip4/10.1.2.4/tcp/4001"
	inv := Invitation{
		Issuer: trusttest.IDOf("davi"), Addresses: []string{
			PassAddress(other, trusttest.IDOf("bia")), relayed, straight,
			PassAddress("/dns/davi/tcp/1", trusttest.IDOf("davi")),
		},
	}
	want := []Way{
		{trusttest.IDOf("davi"), []string{relayed, straight, "/dns/davi/tcp/1"}},
		{trusttest.IDOf("bia"), []string{other}},
	}
	if diff := cmp.Diff(want, inv.Ways()); diff != "" {
		t.Errorf("ways (-want +got):\n%s", diff)
	}
}
