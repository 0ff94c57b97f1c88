package election

import (
	"crypto/ed25519"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"

	"github.com/mutirao-mesh/mutirao/internal/said"
	"github.com/mutirao-mesh/mutirao/membership/moment"
	"github.com/mutirao-mesh/mutirao/membership/trust"
	"github.com/mutirao-mesh/mutirao/membership/trust/trusttest"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// The scenario files tell stories about elections, with a lease of 10 s.
//
//	nodes n=3 voters=3           a world at 0 s
//	auto of=n1                   n1 stands of its own accord
//	elect|resign|restart of=n1
//	nominate of=n1 by=n2         n2 has n1 stand
//	propose of=n1 voters=n1,n2   n1 asks the voters to be succeeded
//	override of=n1 voters=n1     the founder does it alone, at n1
//	stop of=n1 for=12 [suspend]
//	cut sides=n1,n2/n3           only these sides talk among themselves
//	heal
//	run for=5                    delivers everything while time passes
//	status                       who leads, by whose account
//	admit of=n1 from=n2          does n1 follow what n2 was last elected to?
//
// What comes back are the events, and what was refused.
func TestElectionScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		var s electionStory
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string { return s.step(t, d) })
	})
}

type electionStory struct {
	*world
	told int // lines of the trace that were shown
}

func (s *electionStory) step(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "nodes":
		var n, voters int
		d.ScanArgs(t, "n", &n)
		d.ScanArgs(t, "voters", &voters)
		s.world, s.told = newWorld(t, n, voters, flaws{}), 0
	case "heal":
		s.cut = nil
	case "cut":
		s.split(t, d)
	case "run":
		var sec int
		d.ScanArgs(t, "for", &sec)
		s.settle(time.Duration(sec) * time.Second)
	case "status":
		return s.status()
	default:
		return s.act(t, d)
	}
	return s.news()
}

// act does what concerns one node.
func (s *electionStory) act(t *testing.T, d *datadriven.TestData) string {
	i := s.node(t, d, "of")
	m := s.nodes[i]
	switch d.Cmd {
	case "auto":
		m.auto = true
		s.restart(i)
	case "elect":
		s.elect(i)
	case "nominate":
		by := s.node(t, d, "by")
		r, err := s.nodes[by].election.Nominate(s.id(i), s.now(by))
		s.do(by, r, err)
	case "resign":
		r, err := m.election.Resign(s.now(i))
		s.do(i, r, err)
	case "restart":
		s.restart(i)
	case "propose":
		r, err := m.election.Propose(s.list(t, d), testLease, s.now(i))
		s.do(i, r, err)
	case "override":
		s.foundOverride(i, s.list(t, d))
	case "stop":
		var sec int
		d.ScanArgs(t, "for", &sec)
		s.stop(i, time.Duration(sec)*time.Second, d.HasArg("suspend"))
	case "admit":
		if err := m.election.Admit(s.lastOffice(s.node(t, d, "from"))); err != nil {
			return s.names(err.Error()) + "\n"
		}
		return "follows\n"
	default:
		return "unknown command " + d.Cmd
	}
	return s.news()
}

func (s *electionStory) node(t *testing.T, d *datadriven.TestData, arg string) int {
	var name string
	d.ScanArgs(t, arg, &name)
	return s.named(name)
}

func (s *electionStory) named(name string) int {
	return slices.IndexFunc(s.nodes, func(m *machine) bool { return m.name == name })
}

func (s *electionStory) list(t *testing.T, d *datadriven.TestData) []Voter {
	var names string
	d.ScanArgs(t, "voters", &names)
	var out []Voter
	for name := range strings.SplitSeq(names, ",") {
		out = append(out, s.voter(s.named(name)))
	}
	return out
}

// split cuts the network into sides.
func (s *electionStory) split(t *testing.T, d *datadriven.TestData) {
	var sides string
	d.ScanArgs(t, "sides", &sides)
	side := map[int]int{}
	for k, names := range strings.Split(sides, "/") {
		for name := range strings.SplitSeq(names, ",") {
			side[s.named(name)] = k
		}
	}
	s.cut = func(from, to int) bool { return side[from] != side[to] }
}

// lastOffice is the highest office that node i was elected to.
func (s *electionStory) lastOffice(i int) Office {
	var last Office
	for o, holder := range s.holders {
		if holder == i && o.Compare(last) > 0 {
			last = o
		}
	}
	return last
}

// news are the lines of the trace since last time, without the messages.
func (s *electionStory) news() string {
	var b strings.Builder
	for _, line := range s.trace[s.told:] {
		if !strings.Contains(line, " -> ") && !strings.Contains(line, string(CoordinatorKnown)) {
			fmt.Fprintln(&b, strings.TrimSpace(s.names(line)))
		}
	}
	s.told = len(s.trace)
	if b.Len() == 0 {
		return "ok\n"
	}
	return b.String()
}

// names puts the nodes' names in the place of their IDs.
func (s *electionStory) names(text string) string {
	for i, m := range s.nodes {
		text = strings.ReplaceAll(text, string(s.id(i)), m.name)
		text = strings.ReplaceAll(text, s.id(i).Short(), m.name)
	}
	return strings.ReplaceAll(text, string(trusttest.IDOf("founder")), "founder")
}

// status says what each node knows.
func (s *electionStory) status() string {
	var b strings.Builder
	for i, m := range s.nodes {
		head, _ := m.election.Electorate()
		fmt.Fprintf(&b, "%s: electorate %d of %d, ", m.name, head.Number, len(head.Voters))
		mandate, here := m.election.Coordinator(s.now(i))
		switch _, leads := m.election.Leads(s.now(i)); {
		case leads:
			fmt.Fprintf(&b, "leads in term %d with %d votes\n", mandate.Office.Term, len(mandate.Votes))
		case here:
			fmt.Fprintf(&b, "follows %s in term %d\n", s.names(string(mandate.Holder)), mandate.Office.Term)
		default:
			fmt.Fprintln(&b, "nobody leads")
		}
	}
	return b.String()
}

// three are the voters of the tests below, and the proof of their list.
func three(t *testing.T) (*world, Electorate, Lineage) {
	t.Helper()
	w := newWorld(t, 3, 3, flaws{})
	head, ln := w.nodes[0].election.Electorate()
	return w, head, ln
}

// countersigned lets the named nodes of w consent to l.
func (w *world) countersigned(l Electorate, signers ...int) Electorate {
	for _, i := range signers {
		l.Consents = append(l.Consents, l.consent(w.nodes[i].key, w.voter(i), 4))
	}
	slices.SortFunc(l.Consents, func(a, b Consent) int { return comparePartner(a.Voter, b.Voter.Partner) })
	return l
}

func TestLineageProvesTheList(t *testing.T) {
	w, head, ln := three(t)
	next := head.successor(w.mesh, []Voter{w.voter(0)}, testLease)
	good := append(slices.Clip(ln), w.countersigned(next, 0, 2))
	if err := good.Verify(w.mesh); err != nil {
		t.Fatal(err)
	}
	if first := good[1].First(); first != 5 {
		t.Errorf("electorate 2 starts at term %d, want 5, above 4", first)
	}
	skipping, restated, older := next, next, w.countersigned(next, 0, 1)
	skipping.Number, restated.Start = 3, 1
	older.Consents[0].Highest = 0
	stranger := w.countersigned(next, 0)
	stranger.Consents = append(stranger.Consents,
		next.consent(trusttest.KeyOf("eve"), Voter{trusttest.IDOf("eve"), trust.Incarnation{1}}, 0))
	slices.SortFunc(stranger.Consents, func(a, b Consent) int { return comparePartner(a.Voter, b.Voter.Partner) })
	restored := w.countersigned(next, 0)
	restored.Consents = append(restored.Consents, next.consent(w.nodes[1].key, Voter{w.id(1), trust.Incarnation{2}}, 0))
	slices.SortFunc(restored.Consents, func(a, b Consent) int { return comparePartner(a.Voter, b.Voter.Partner) })
	twice := w.countersigned(next, 1, 1)
	for _, c := range []struct {
		name string
		ln   Lineage
		what string
	}{
		{"empty", nil, "lineage of 0"},
		{"a minority", append(slices.Clip(ln), w.countersigned(next, 0)),
			"1 consents: want 2, a majority of the 3 voters"},
		{"one twice", append(slices.Clip(ln), twice), "given twice"},
		{"a stranger", append(slices.Clip(ln), stranger), "who has no vote in electorate 1"},
		{"a restored voter", append(slices.Clip(ln), restored), "who has no vote in electorate 1"},
		{"a changed consent", append(slices.Clip(ln), older), "signature does not match"},
		{"a gap", append(slices.Clip(ln), w.countersigned(skipping, 0, 1)), "does not continue 1"},
		{"a stated start", append(slices.Clip(ln), w.countersigned(restated, 0, 1)), "does not continue 1"},
		{"no founder", good[1:], "want the founder's signature alone"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := c.ln.Verify(w.mesh); err == nil || !strings.Contains(err.Error(), c.what) {
				t.Errorf("error %v, want %q", err, c.what)
			}
		})
	}
	trusttest.Refused(t, good.Verify(trust.Mesh{Name: "other", Founder: w.mesh.Founder}), trust.ErrWrongMesh,
		"electorate 1")
}

func TestElectorateIsRefused(t *testing.T) {
	m := trust.Mesh{Name: "serra", Founder: trusttest.IDOf("founder")}
	one := []Voter{{trusttest.IDOf("bia"), trust.Incarnation{1}}}
	for _, c := range []struct {
		what   string
		voters []Voter
		lease  time.Duration
		key    ed25519.PrivateKey
	}{
		{"electorate of 0 voters", nil, testLease, trusttest.KeyOf("founder")},
		{"electorate of 102 voters", make([]Voter, 0, 102), testLease, trusttest.KeyOf("founder")},
		{"listed twice", []Voter{
			{trusttest.IDOf("bia"), trust.Incarnation{1}}, {trusttest.IDOf("bia"), trust.Incarnation{2}},
		}, testLease, trusttest.KeyOf("founder")},
		{"lease of 1ms", one, time.Millisecond, trusttest.KeyOf("founder")},
		{"partner ID", []Voter{{"nobody", trust.Incarnation{1}}}, testLease, trusttest.KeyOf("founder")},
		{"signature does not match", one, testLease, trusttest.KeyOf("eve")},
	} {
		for i := range cap(c.voters) - len(c.voters) {
			c.voters = append(c.voters, Voter{trusttest.IDOf(fmt.Sprint(i)), trust.Incarnation{}})
		}
		if _, err := FoundElectorate(m, c.key, c.voters, c.lease, nil, 0); err == nil ||
			!strings.Contains(err.Error(), c.what) {
			t.Errorf("error %v, want %q", err, c.what)
		}
	}
}

func TestOverrideIsAboveWhatACutOffMajorityMayDo(t *testing.T) {
	w, head, ln := three(t)
	over, err := FoundElectorate(w.mesh, trusttest.KeyOf("founder"), []Voter{w.voter(0)}, testLease, ln, 17)
	if err != nil {
		t.Fatal(err)
	}
	if over[0].Number != 1000 || over[0].First() != 1000 {
		t.Errorf("override is electorate %d from term %d, want 1000 and 1000", over[0].Number, over[0].First())
	}
	next := w.countersigned(head.successor(w.mesh, []Voter{w.voter(1)}, testLease), 1, 2)
	if next.compare(over[0]) >= 0 {
		t.Error("the successor beats the override")
	}
}

func TestMandateProvesTheElection(t *testing.T) {
	w, head, _ := three(t)
	o := Office{Term: 3, Number: 1, List: head.Hash()}
	vote := func(i int, name string) Vote {
		return Vote{Office: o, Candidate: trusttest.IDOf(name), Voter: w.voter(i)}.sign(w.nodes[i].key)
	}
	claim := func(votes ...Vote) Mandate {
		byVoter := Mandate{Office: o, Holder: trusttest.IDOf("n1"), Votes: votes}
		slices.SortFunc(byVoter.Votes, func(a, b Vote) int { return comparePartner(a.Voter, b.Voter.Partner) })
		return byVoter
	}
	if err := claim(vote(0, "n1"), vote(1, "n1")).Verify(head); err != nil {
		t.Fatal(err)
	}
	forged, early := vote(1, "n1"), claim(vote(0, "n1"), vote(1, "n1"))
	forged.Voter = w.voter(2)
	early.Office.Term = 0
	for _, c := range []struct {
		name string
		m    Mandate
		what string
	}{
		{"minority", claim(vote(0, "n1")), "with 1 votes: want 2"},
		{"a vote twice", claim(vote(0, "n1"), vote(0, "n1")), "counted twice"},
		{"another's vote", claim(vote(0, "n1"), vote(1, "n2")), "with a vote for"},
		{"forged", claim(vote(0, "n1"), forged), "signature does not match"},
		{"other term", early, "with a vote for"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := c.m.Verify(head); err == nil || !strings.Contains(err.Error(), c.what) {
				t.Errorf("error %v, want %q", err, c.what)
			}
		})
	}
}

func TestOnlyAdministratorsPropose(t *testing.T) {
	w, head, ln := three(t)
	e, err := New(Config{Mesh: w.mesh, Key: w.nodes[0].key, Incarnation: trust.Incarnation{1}}, Ballot{}, ln,
		moment.Now{})
	if err != nil {
		t.Fatal(err)
	}
	next := head.successor(w.mesh, []Voter{w.voter(1)}, testLease)
	_, err = e.Step(w.id(1), Message{Propose: &Proposal{next}}, moment.Now{})
	trusttest.Refused(t, err, trust.ErrNotAllowed, "does not administer the mesh")
	r, err := e.Step(w.mesh.Founder, Message{Propose: &Proposal{next}}, moment.Now{})
	if err != nil || len(r.Send) != 1 || r.Send[0].Message.Consented == nil || r.Ballot == nil ||
		r.Ballot.Signed == nil {
		t.Errorf("the founder's proposal: %+v, %v", r, err)
	}
}

// A voter is a partner in one life of its store.
func TestRestoredVoterHasNoVote(t *testing.T) {
	w, head, ln := three(t)
	e, err := New(Config{Mesh: w.mesh, Key: w.nodes[0].key, Incarnation: trust.Incarnation{2}}, Ballot{}, ln,
		moment.Now{})
	if err != nil {
		t.Fatal(err)
	}
	later := moment.Now{Awake: 2 * testLease, Boot: 2 * testLease}
	r, err := e.Step(w.id(1), Message{Ask: &Ask{Office: Office{1, 1, head.Hash()}}}, later)
	if err != nil || len(r.Send) != 1 || r.Send[0].Message.Refusal == nil || r.Ballot != nil {
		t.Errorf("it answers %+v, %v", r, err)
	}
}

// A coordinator that gave its office up and started again shows its old claim to whoever asks
// for one. It proves that it was elected, not that it still holds the office: nobody is taken
// for the coordinator, and another may be elected at once.
func TestFormerCoordinatorIsNoCoordinator(t *testing.T) {
	w := newWorld(t, 3, 3, flaws{})
	w.settle(testLease * 11 / 10)
	w.elect(1)
	w.settle(time.Second)
	if leads := w.leaders(); len(leads) != 1 {
		t.Fatalf("%d coordinators", len(leads))
	}
	r, err := w.nodes[1].election.Resign(w.now(1))
	w.do(1, r, err)
	w.settle(time.Second)
	w.restart(1)
	for _, i := range []int{0, 2} {
		r, err := w.nodes[1].election.Step(w.id(i), Message{WantClaim: &WantClaim{}}, w.now(1))
		w.do(1, r, err)
	}
	w.settle(time.Second)
	for i, m := range w.nodes {
		if c, led := m.election.Coordinator(w.now(i)); led {
			t.Errorf("%s takes %s for the coordinator", m.name, c.Holder)
		}
	}
	w.settle(testLease)
	w.elect(2)
	w.settle(time.Second)
	if _, leads := w.nodes[2].election.Leads(w.now(2)); !leads {
		t.Errorf("nobody else can be elected:\n%s", w.story())
	}
	r, err = w.nodes[2].election.Step(w.id(0), Message{WantClaim: &WantClaim{}}, w.now(2))
	w.do(2, r, err)
	w.settle(testLease / 10)
	if c, led := w.nodes[0].election.Coordinator(w.now(0)); !led || c.Holder != w.id(2) {
		t.Error("who asks the coordinator for its claim does not learn that it holds the office")
	}
}

// Voters that have just started wait for a lease. Whoever stands meanwhile is elected when
// they vote: no pause of its own comes between, whenever it stood and by whatever chance.
func TestStandsUntilVotersThatStartedVote(t *testing.T) {
	const voters = 3
	for k := range 200 {
		w := newWorld(t, voters, voters, flaws{})
		for i, m := range w.nodes { // other chances than those of the scenarios
			m.lives = uint64(7 * k)
			w.restart(i)
		}
		w.settle(testLease * time.Duration(k) / 200)
		w.elect(0)
		w.settle(testLease + testLease/retryPart - w.real)
		if _, leads := w.nodes[0].election.Leads(w.now(0)); !leads {
			t.Fatalf("chance %d: nobody leads %s after all started:\n%s", k, w.real, w.story())
		}
	}
}

// A node that stands for election can say which voters wait for which lease, and for how long.
func TestWhoStandsSaysWhatItWaitsFor(t *testing.T) {
	w := newWorld(t, 3, 3, flaws{})
	w.settle(testLease * 11 / 10)
	lacks := func(want string) {
		t.Helper()
		left, err := w.nodes[0].election.Standing(w.now(0))
		got := "it does not stand"
		if err != nil {
			got = said.Render(err, func(p workflow.PartnerID) string {
				i := slices.IndexFunc(w.nodes, func(m *machine) bool {
					return trust.IDOf(trusttest.PublicOf(m.key)) == p
				})
				return w.nodes[i].name
			})
		}
		if got != want || (err != nil) != (left > 0) || left > patiently*testLease {
			t.Errorf("for %s more: %q\nwant %q", left, got, want)
		}
	}
	lacks("it does not stand")
	w.elect(1) // n2 holds a lease of n1 and n3, and then nobody hears of it
	w.settle(time.Second)
	w.cut = func(from, to int) bool { return from == 1 || to == 1 }
	w.restart(2)
	w.settle(testLease * 9 / 10)
	w.restart(2)
	w.nodes[0].election.voter = voter{leaseTo: w.id(1), leaseUntil: w.now(0).Awake + 7*time.Second}
	w.nodes[0].election.known.heard = 0
	w.elect(0)
	w.settle(500 * time.Millisecond)
	lacks("no majority (0 of 2 votes): n1 granted n2 a lease, which ends in 7s; n2 did not answer; " +
		"n3 has restarted or changed list and waits for a lease, for 10s more")
	w.settle(9 * time.Second)
	w.settle(testLease)
	lacks("it does not stand")
}

func TestMessagesSurviveTheCodec(t *testing.T) {
	w := newWorld(t, 5, 5, flaws{})
	w.nodes[0].auto = true
	w.restart(0)
	seen := map[int]bool{}
	for range 3 {
		w.advance(testLease)
		for len(w.net) > 0 {
			checkCodec(t, w.net[0].msg, seen)
			w.deliver(0, false)
		}
	}
	r, err := w.nodes[1].election.Propose([]Voter{w.voter(1)}, testLease, w.now(1))
	w.do(1, r, err)
	for len(w.net) > 0 {
		checkCodec(t, w.net[0].msg, seen)
		w.deliver(0, false)
	}
	if len(seen) < 7 {
		t.Errorf("only %d kinds of messages were seen", len(seen))
	}
}

func checkCodec(t *testing.T, m Message, seen map[int]bool) {
	t.Helper()
	seen[slices.Index(m.fields(), true)] = true
	back, err := DecodeMessage(EncodeMessage(m))
	if diff := cmp.Diff(m, back); err != nil || diff != "" {
		t.Errorf("%s: %v %s", describe(m), err, diff)
	}
}

func TestCredentialsProveAnOfficeToAnybody(t *testing.T) {
	w, head, ln := three(t)
	o := Office{Term: 3, Number: 1, List: head.Hash()}
	vote := func(i int) Vote {
		return Vote{Office: o, Candidate: trusttest.IDOf("n1"), Voter: w.voter(i)}.sign(w.nodes[i].key)
	}
	elected := mandate(o, trusttest.IDOf("n1"),
		map[workflow.PartnerID]Vote{trusttest.IDOf("n0"): vote(0), trusttest.IDOf("n1"): vote(1)})
	good, fits := Credentials{elected, ln}.Encode()
	if !fits {
		t.Fatalf("%d bytes are too many", len(good))
	}
	if got, err := VerifyCredentials(w.mesh, trusttest.IDOf("n1"), good); err != nil || got != o {
		t.Fatalf("%s, %v: want %s", got, err, o)
	}
	minority := elected
	minority.Votes = minority.Votes[:1]
	unknown := elected
	unknown.Office.Number = 7
	for _, c := range []struct {
		name   string
		holder string
		shown  Credentials
		what   string
	}{
		{"another's", "n2", Credentials{elected, ln}, "shows the mandate of"},
		{"of a minority", "n1", Credentials{minority, ln}, "with 1 votes: want 2"},
		{"without a lineage", "n1", Credentials{elected, nil}, "lineage of 0 electorates"},
		{"of an electorate that nobody proves", "n1", Credentials{unknown, ln}, "that its lineage does not have"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, _ := c.shown.Encode()
			if _, err := VerifyCredentials(w.mesh, trusttest.IDOf(c.holder), b); err == nil ||
				!strings.Contains(err.Error(), c.what) {
				t.Errorf("error %v, want %q", err, c.what)
			}
		})
	}
	other := trust.Mesh{Name: "other", Founder: trusttest.IDOf("n2")}
	if _, err := VerifyCredentials(other, trusttest.IDOf("n1"), good); err == nil {
		t.Error("another mesh's credentials are accepted")
	}
}

// A reason that came from another node has the partners that it is about, so that
// they are called by their names here: those alone, and in its order.
func TestReasonsOfOthersNamePartners(t *testing.T) {
	bia, caio := trusttest.IDOf("bia"), trusttest.IDOf("caio")
	name := func(id workflow.PartnerID) string {
		return map[workflow.PartnerID]string{bia: "bia", caio: "caio"}[id]
	}
	sent := said.Errorf("no majority: %s %v; %s did not answer", caio, said.Errorf("granted %s a lease", bia), bia)
	declined := Message{Declined: &Declined{Reason: sent.Error(), About: said.Partners(sent)}}
	got, err := DecodeMessage(EncodeMessage(declined))
	if err != nil {
		t.Fatal(err)
	}
	reason := heard(got.Declined.Reason, got.Declined.About)
	if got, want := said.Render(reason, name),
		"no majority: caio granted bia a lease; bia did not answer"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	// An older node does not say whom it is about; a liar says anything.
	for _, about := range [][]workflow.PartnerID{
		nil, {"", "x", bia, bia, bia, caio}, slices.Repeat([]workflow.PartnerID{"x"}, 1000),
	} {
		if got := heard(sent.Error(), about).Error(); got != sent.Error() {
			t.Errorf("with %v it is %q", about, got)
		}
	}
}
