package refusals

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Everything that is refused of a member is counted by member and reason, so that
// people see which members overburden or deceive their node. What strangers try
// is in the node's counters only: an attacker that makes keys would else push
// members out.

const (
	maxRefused = 256 // members counted; of more, the one refused longest ago is forgotten
	maxReasons = 32  // reasons counted of one member; further ones count as otherReason
)

const otherReason = "other"

// Counts counts what was refused of members since the node started.
type Counts struct {
	listed func(workflow.PartnerID) bool // who is a member, as far as is known here

	mu sync.Mutex // guards of
	of map[workflow.PartnerID]map[string]refusal
}

// refusal is how often something was refused, and when last (wall clock).
type refusal struct {
	times uint64
	last  time.Time
}

func New(listed func(workflow.PartnerID) bool) *Counts {
	return &Counts{listed: listed, of: map[workflow.PartnerID]map[string]refusal{}}
}

// Count counts a refusal of a member's, by its reason; nothing of whoever is none.
func (r *Counts) Count(member workflow.PartnerID, reason string, now time.Time) {
	if !r.listed(member) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	of := r.of[member]
	if of == nil {
		if len(r.of) >= maxRefused {
			delete(r.of, r.oldest())
		}
		of = map[string]refusal{}
		r.of[member] = of
	}
	if _, counted := of[reason]; !counted && len(of) >= maxReasons {
		reason = otherReason
	}
	of[reason] = refusal{of[reason].times + 1, now}
}

// oldest is the member that was refused longest ago. The caller holds r.mu.
func (r *Counts) oldest() (oldest workflow.PartnerID) {
	var at time.Time
	for p, of := range r.of {
		if last := lastOf(of); oldest == "" || last.Before(at) || last.Equal(at) && p < oldest {
			oldest, at = p, last
		}
	}
	return oldest
}

func lastOf(of map[string]refusal) (last time.Time) {
	for _, x := range of {
		if x.last.After(last) {
			last = x.last
		}
	}
	return last
}

// List is what was refused of a member, the most frequent first.
func (r *Counts) List(member workflow.PartnerID) []api.Refusal {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := []api.Refusal{}
	for reason, x := range r.of[member] {
		out = append(out, api.Refusal{Reason: reason, What: refused(reason).what, Times: x.times, Last: x.last})
	}
	slices.SortFunc(out, func(a, b api.Refusal) int {
		return cmp.Or(cmp.Compare(b.Times, a.Times), cmp.Compare(a.Reason, b.Reason))
	})
	return out
}

// reasonWhy says a reason in words, and what to do about it.
type reasonWhy struct{ what, mend string }

const (
	mendOutdated = "nothing, unless it goes on: then their stores or clocks differ from what they should be; mutirao doctor there says more"
	mendFull     = "raise the limit in config.yaml if this device has the means; else ask the people who run it to finish or cancel some. If it floods this node: mutirao evict %s"
	mendTooOften = "nothing: it can ask again in a while. If it goes on: a program there asks without a pause"
	mendFiles    = "nothing, if they come one after the other (mutirao show); else ask the people who run it to finish or cancel instances. If it floods this node: mutirao evict %s"
	mendPutOff   = "nothing: they are made as time allows"
	mendNamed    = "nothing: whoever lists one had not heard that the name is taken; there it takes another name"
	mendGone     = "nothing: it learns that from the partners"
	mendLiar     = "a node in order never sends that: its program or its disk is damaged, or it deceives. Ask the people who run it; if that does not help: mutirao evict %s"
)

// reasons are the reasons that are known by name.
var reasons = map[string]reasonWhy{
	"frame-malformed": {"messages that cannot be read", mendLiar},
	"facts-malformed": {"facts that cannot be read", mendLiar},
	"facts-forged":    {"facts without their author's signature", mendLiar},
	"facts-invalid":   {"facts that contradict what they build upon", mendLiar},
	"facts-beyond-chains": {"facts under more lives of its store than are taken in",
		"a store that was lost and restored so often while an instance ran, or a member that deceives. Its own status and doctor say so too. Ask the people who run it; if it deceives: mutirao evict %s"},
	"facts-not-counted": {"facts that do not count: mutirao show lists them as incidents, with why",
		"a node in order writes none: its program or its disk is damaged, or it deceives. Ask the people who run it; if that does not help: mutirao evict %s"},
	"facts-beyond-facts":   {"facts beyond its share of an instance", mendLiar},
	"facts-beyond-authors": {"facts of instances in which it takes no part", mendOutdated},
	"facts-of-strangers":   {"facts of an author that is not on the partner list", mendOutdated},
	"facts-not-taken": {"facts that could not be taken in",
		"nothing, unless it goes on: then this node's log says of which instances, and why (message not taken)"},
	"facts-from-no-participant": {"facts of instances in which it takes no part", mendOutdated},
	"heads-from-no-participant": {"questions about instances in which it takes no part", mendOutdated},
	"instance-of-others":        {"instances in which this node takes no part", mendOutdated},
	"instance-not-to-be-begun": {"instances that a user began there who may not any more: the role is gone, or the user, or the user's key",
		"the node's log says whom, and why (instance refused). At the node that began one mutirao show says so too: an administrator gives the role back (mutirao role grant), or the instance is cancelled there, and somebody who has the role starts it"},
	"claim-unproved": {"claims to have facts of this node that it does not have, without showing them",
		mendLiar},
	"instances-over-share": {"instances that it began beyond a member's share of limits.instances", mendFull},
	"instances-over-limit": {"instances that it began, since others have begun as many as limits.instances allows",
		mendFull},
	"facts-beyond-bytes": {"facts beyond its share of limits.memory or limits.disk", mendFull},
	"facts-beyond-named": {"facts that others have named, for which there is no room to spare in limits.memory or limits.disk", mendFull},
	"bytes-over-share": {"instances that it began beyond its share of limits.memory or limits.disk",
		mendFull},
	"instance-too-large":            {"instances that are larger than limits.facts or limits.bytes allow, or whose tasks need more than half of a member's share of limits.memory or limits.disk", mendFull},
	"ended-over-limit":              {"instances that it began, since as many ended ones are kept as limits.ended allows, which nobody may delete yet", mendFull},
	"look":                          {"looks at instances in which it takes no part", mendOutdated},
	"record":                        {"entries of the partner list", mendOutdated},
	"beat":                          {"signs of life", mendOutdated},
	"pulse":                         {"signs of life", mendOutdated},
	"digest":                        {"digests that cannot be read", mendLiar},
	"definition":                    {"definitions", mendOutdated},
	"definition-of-anothers-name":   {"workflows under names that belong to others, which are not listed here", mendNamed},
	"definitions-over-share":        {"workflows, since one member may list no more of limits.workflows", mendFull},
	"definitions-beside-over-share": {"instances of workflows that nobody lists, since one member, and all together, may bring no more of those", mendFull},
	"definitions-too-fast": {"workflows that came faster than this node reads them; it asks for them again",
		mendOutdated},
	"greetings-too-fast":   {"greetings, which came too often to be answered", mendOutdated},
	"comparisons-too-fast": {"comparisons of ended instances, which were put off: nodes in order ask for many after restarts", mendPutOff},
	"election":             {"messages about the coordinator", mendOutdated},
	"eviction":             {"evictions by a member that may not evict, or that are not signed", mendLiar},
	"evictions-asked-too-often": {"questions for evictions, which came too often to be answered; it asks again",
		mendOutdated},
	"users-asked-too-often": {"questions for records about users, which came too often to be answered; it asks again",
		mendOutdated},
	"user-record": {"records about users that are not signed by somebody who may say so, or that cannot be read",
		mendLiar},
	"users-over-share": {"records about users, since one delegate, and one user, may have no more of them",
		"a delegate has made more users than a mesh of some hundreds needs, or one of its users more keys: ask the people who run it; if it floods this node: mutirao evict %s"},
	"users-too-fast": {"records about users that came faster than this node verifies them; it asks for them again",
		mendOutdated},
	"sign-in": {"attempts to sign a user in by a token that does not fit, ran out or was used",
		"nothing, unless it goes on: then somebody there guesses, or types an old token"},
	"items-malformed": {"lists of people's tasks that cannot be read", mendLiar},
	"items-too-fast": {"questions for people's tasks, which came too often to be answered",
		mendTooOften},
	"items-news-too-fast": {"news that lists of people's tasks changed, which came too often to be passed on",
		mendTooOften},
	"follow-malformed": {"what users set and read, at another node, that cannot be read", mendLiar},
	"follow-too-fast":  {"what users set and read, at another node, which came too often", mendTooOften},
	"follow-of-others": {"what somebody set and read who is not at its node", mendOutdated},
	"items-of-others":  {"questions for the tasks of somebody who is not at its node", mendOutdated},
	"words-of-others": {"words of people that are not true, or of somebody who is not at its node",
		mendOutdated},
	"words-too-fast":              {"words of people, which came too often to be taken", mendTooOften},
	"renewal":                     {"certificates that are not this node's", mendLiar},
	"news-malformed":              {"news that cannot be read", mendLiar},
	"connection-of-former-member": {"connections, since it is no member any more", mendGone},
	"stranger.evicted":            {"connections, since it is evicted", mendGone},
	"stranger.expired": {"connections, since its certificate ran out",
		"it joins again from a fresh folder, if its clock is right and so is this one"},
	"stranger.not-yet-valid": {"connections, since its certificate is not valid yet",
		"one of the two clocks is wrong: set it"},
	"stranger.wrong-mesh":  {"connections with a certificate of another mesh", mendOutdated},
	"stranger.forged":      {"connections with a certificate that is not signed as it should be", mendLiar},
	"stranger.not-allowed": {"connections with a certificate by a member that may not give any", mendLiar},
	"stranger.malformed":   {"connections with a certificate that cannot be read", mendLiar},
	"file": {"questions for files that it may not read, as far as this node knows",
		"nothing: it asks all that take part, and another may know more (mutirao show there)"},
	"files-beyond-room":   {"files that come for its instances, beyond its share of limits.files", mendFull},
	"files-beyond-places": {"files that wait to come for its instances: more than one member may have waiting; they come when others are here", mendFiles},
	"summary-of-running":  {"summaries of instances that have not ended", mendOutdated},
	"summary":             {"summaries of ended instances that it did not sign", mendLiar},
}

func refused(reason string) reasonWhy {
	if r, ok := reasons[reason]; ok {
		return r
	}
	return reasonWhy{strings.ReplaceAll(reason, "-", " "), mendOutdated}
}

// freshRefusal is for how long a refusal is worth a warning.
const freshRefusal = time.Hour

// findings is where it is said what is well, and what is not.
type findings interface {
	OK(check, format string, args ...any)
	Warn(check, what, mend string)
}

// Check tells what was refused of members lately: a finding for each. label is the name of a
// member in a sentence.
func (r *Counts) Check(
	now time.Time, members []workflow.PartnerID, label func(workflow.PartnerID) string, d findings,
) {
	fresh, before := 0, uint64(0)
	var harmless []string
	for _, id := range members {
		name := label(id)
		var what, mend []string
		for _, r := range r.List(id) {
			if now.Sub(r.Last) > freshRefusal {
				before += r.Times
				continue
			}
			why := refused(r.Reason)
			if why.mend == mendPutOff || why.mend == mendNamed {
				harmless = append(harmless, fmt.Sprintf("%s: %d × %s", name, r.Times, why.what))
				continue
			}
			what = append(what, fmt.Sprintf("%d × %s", r.Times, why.what))
			if strings.Contains(why.mend, "%s") {
				why.mend = fmt.Sprintf(why.mend, name)
			}
			if !slices.Contains(mend, why.mend) {
				mend = append(mend, why.mend)
			}
		}
		if len(what) > 0 {
			fresh++
			d.Warn("refused", fmt.Sprintf("of %s: %s", name, strings.Join(what, "; ")), strings.Join(mend, "; "))
		}
	}
	if len(harmless) > 0 {
		d.OK("refused", "of %s", strings.Join(harmless, "; of "))
	}
	switch {
	case fresh > 0 || len(harmless) > 0:
	case before > 0:
		d.OK("refused", "nothing of any member's in the last hour; %d before", before)
	default:
		d.OK("refused", "nothing of any member's")
	}
}
