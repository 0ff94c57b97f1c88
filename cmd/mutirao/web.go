package main

import (
	"context"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/node/api/httpapi"
)

// webLink is what web prints for programs.
type webLink struct {
	URL     string    `json:"url"`
	Expires time.Time `json:"expires"`
	User    string    `json:"user"` // for whom the browser acts; empty: nobody
	Acts    bool      `json:"acts"` // it may change something, not only look
}

// lanLink is what web --lan prints for programs.
type lanLink struct {
	URL string `json:"url"` // the first of urls
	*httpapi.LAN
}

// webOptions are those of web.
type webOptions struct {
	user userFlag
	look bool
	lan  bool
	off  bool
	qr   string
}

func newWebCommand() *cobra.Command {
	var o webOptions
	cmd := &cobra.Command{
		Use:   "web [--lan] [--user U] [--look] [--qr FILE] [--off]",
		Short: "A link that opens the node's web page in a browser",
		Long: `Prints a link that opens the page of the running node in one browser, once, within
five minutes, and on a terminal with room for it also its QR code. The browser stays
signed in for twelve hours, or until the node stops; then ask for another link. On the
page one sees the mesh and its instances, starts workflows, and does a user's work.
--user says for whom, or else ` + userVariable + `; without either it is the one user who is
signed in here, or else this partner, who is a user of its own name. Where several users
are signed in and none is named, and with --look, the page can only be looked at.

Without --lan the link is to this machine's own address, which no other machine reaches,
or to that of api in the configuration. A QR code of the former is for a node on a phone,
where somebody types at another machine (SSH): the phone reads it from that screen.

--lan opens the page to phones on the network, over TLS with a certificate that the
node makes itself, and prints a link for one of them, its QR code, and the fingerprint
of the certificate, in hexadecimal and in words. The phone's browser warns that it does
not know the certificate: compare the fingerprint that the browser shows before you go
on. Only the page is served there, nothing else of the node, until nobody is signed in
there any more, with --lan --off, or until the node stops.`,
		Example: `  mutirao web
  mutirao web --user bia
  mutirao web --qr page.png
  mutirao web --look -o json
  mutirao web --lan
  mutirao web --lan --user bia --qr page.png
  mutirao web --lan --off`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error { return openPage(cmd, o) },
	}
	o.user.add(cmd)
	f := cmd.Flags()
	f.BoolVar(&o.look, "look", false, "the browser may only look, and change nothing")
	f.BoolVar(&o.lan, "lan", false, "open the page to phones on the network")
	f.BoolVar(&o.off, "off", false, "with --lan: close it to the network, also for who is signed in there")
	f.StringVar(&o.qr, "qr", "", "write the link's QR code into this new `file`, a PNG picture")
	return cmd
}

func openPage(cmd *cobra.Command, o webOptions) error {
	switch {
	case o.off && !o.lan:
		return usagef("--off: it closes what --lan opened: mutirao web --lan --off")
	case o.off && (o.look || o.qr != "" || cmd.Flag("user").Changed):
		return usagef("--off makes no link: it goes with no other option than --lan")
	}
	node, err := connect(cmd)
	if err != nil {
		return err
	}
	u, wanted := uiOf(cmd), httpapi.SignInLink{User: o.user.who(), Look: o.look}
	switch {
	case o.off:
		return u.closeLAN(cmd.Context(), node)
	case o.lan:
		made, err := node.OpenLAN(cmd.Context(), wanted)
		if err != nil {
			return err
		}
		return u.writeLAN(made, o.qr)
	}
	link, made, err := node.SignIn(cmd.Context(), wanted)
	if err != nil {
		return err
	}
	return u.writeLink(webLink{URL: link, Expires: made.Expires, User: made.User, Acts: made.Acts}, o.qr)
}

// writeLink prints a link to the page at the address of the API.
func (u *ui) writeLink(l webLink, qr string) error {
	u.noteLink(l)
	if at, err := url.Parse(l.URL); err == nil {
		if a, err := netip.ParseAddr(at.Hostname()); err == nil && a.IsLoopback() {
			u.note("only a browser on this machine can open it; for a phone: mutirao web --lan")
		}
	}
	return u.writeSecret(l, l.URL, "web", qr)
}

// noteLink says what a link is good for.
func (u *ui) noteLink(l webLink) {
	u.note("it opens the page once, until %s", clock(l.Expires))
	switch {
	case l.Acts:
		u.note("whoever opens it acts for %s", l.User)
	case l.User == "":
		u.note("several users are signed in here: to act, name one with --user")
	}
}

func (u *ui) closeLAN(ctx context.Context, node *httpapi.Client) error {
	c, err := node.CloseLAN(ctx)
	if err != nil {
		return err
	}
	said := "the page was not open to the network"
	if c.WasOpen {
		said = fmt.Sprintf("the page is closed to the network; signed in there: %s", plural(c.Browsers, "browser"))
	}
	if c.Configured {
		said += "; the whole API is on the network by api in the node's configuration, and stays there"
	}
	return u.done(c, "%s", said)
}

// writeLAN prints a link for a phone. What has to be read before it is opened comes first, so that on a
// terminal of 24 lines the link, its code and the words are what is seen in the end.
func (u *ui) writeLAN(made *httpapi.LAN, qr string) error {
	if len(made.URLs) == 0 {
		return api.Errorf(api.Failed, "the node names no address at which it opened the page").
			WithHint("try again: mutirao web --lan")
	}
	link := webLink{URL: made.URLs[0], Expires: made.Expires, User: made.User, Acts: made.Acts}
	if made.Configured {
		u.note("The API is on the network already, with the certificate of the node's\n" +
			"configuration (api and tls): the link leads there, and nothing else was\n" +
			"opened. If the phone's browser knows who issued it, it does not warn; else\n" +
			"compare its SHA-256 fingerprint:")
	} else {
		u.note("The page is open to the network, and nothing else of this node. The phone's\n" +
			"browser will warn: it does not know the certificate, which this node made\n" +
			"itself. Before you go on there, have the browser show the certificate. Its\n" +
			"SHA-256 fingerprint must be:")
	}
	u.note("%s", fingerprintLines(made.Fingerprint))
	u.noteAddresses(made)
	u.noteLink(link)
	if err := u.writeSecret(lanLink{link.URL, made}, link.URL, "web --lan", qr); err != nil {
		return err
	}
	if !made.Configured {
		u.note("In words, as at the foot of the page:\n  %s", made.Words)
	}
	return nil
}

// noteAddresses says by which other addresses the link can be opened, and which of them are public.
func (u *ui) noteAddresses(made *httpapi.LAN) {
	for i, link := range made.URLs {
		if i > 0 {
			u.note("the same link at another address: %s", link)
		}
		at, err := url.Parse(link)
		if err != nil {
			continue
		}
		if a, err := netip.ParseAddr(at.Hostname()); err == nil && a.IsGlobalUnicast() && !a.IsPrivate() &&
			!made.Configured {
			u.note("%s is a public address: perhaps others than this network reach it, too. They need a link as well.", a)
		}
	}
}

// fingerprintLines are the digits of a fingerprint, to be compared by eye: two lines of sixteen bytes.
func fingerprintLines(sum string) string {
	var b strings.Builder
	for i := 0; i+2 <= len(sum); i += 2 {
		switch {
		case i == 0:
			b.WriteString("  ")
		case i%32 == 0:
			b.WriteString("\n  ")
		default:
			b.WriteString(":")
		}
		b.WriteString(strings.ToUpper(sum[i : i+2]))
	}
	return b.String()
}
