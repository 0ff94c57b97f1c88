package device

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// FileID names a file by its content.
type FileID string

// File is content that items need.
type File struct {
	Size  int64
	Here  int64 // of it, bytes that are here
	Whole bool  // all of it is here; an empty file may not be
	// Stuck is why nobody gives it now; empty: it comes, or was not asked for yet.
	Stuck string
}

// Item is an item that somebody at this device has.
type Item struct {
	ID     string
	Locked bool // it may be done out of reach
	Own    bool // this device holds it, so that it can be done out of reach anyway
	Files  []FileID
	// Lacks is the application with which it is done, where this device is not known to have that; empty: nothing.
	Lacks workflow.ApplicationName
}

// Device is what is so at a device.
type Device struct {
	Items []Item // in the order of the worklist
	Files map[FileID]File
	Rate  int64 // bytes a second that come, as measured; 0: not yet
	// From is from whom files came at that rate, and Ago how long ago the last piece did; empty: from others than those
	// that may give these.
	From  string
	Ago   time.Duration
	Lacks int64 // bytes of room for what is to come
	// Limit is what limits.files must be to have room for them; 0: it is the disk that has none.
	Limit int64
	// Within is the longest wait that the user accepts, Waited how long it has been.
	Within, Waited time.Duration
	// Accepted are the questions to which the user said yes.
	Accepted []Question
}

// Question is what the user has to decide on the way out.
type Question string

// The questions, in the order in which they are asked.
const (
	NoQuestion Question = ""
	NotLocked  Question = "not-locked" // some items are selected, not locked
	NoProgram  Question = "no-program" // an application is not here with which an item is done
	Missing    Question = "missing"    // nobody gives some of the files now
	TooSlow    Question = "too-slow"   // what is to come takes longer than the user waits
	NoSpace    Question = "no-space"
)

// Acceptable are the questions to which yes is an answer.
var Acceptable = []Question{NotLocked, NoProgram, Missing, TooSlow}

// Plan is how far a device is on its way out.
type Plan struct {
	Asks  Question
	Text  string   // of the question: what, and what to do
	Items []string // that it is about
	// Tell: partners are told that the user is away.
	Tell   bool
	Volume int64         // bytes still to come
	Takes  time.Duration // for that; 0: not measured
	Fetch  []FileID      // what is to be fetched now, in this order
	Go     bool          // nothing is left to do: contact ends
}

// Leave says what is next on the way out (rule 16).
func Leave(d Device) (p Plan) {
	if open := d.which(func(i Item) bool { return !i.canBeDone() }); len(open) > 0 && !d.accepted(NotLocked) {
		p.Asks, p.Items = NotLocked, open
		p.Text = "these items are selected, not locked, and cannot be done until you are back: " +
			"lock them (mutirao worklist lock), give them back (release), or accept that"
		return p
	}
	p.Tell = true
	coming := Missed(d.Items, d.Files, false)
	stuck := slices.DeleteFunc(slices.Clone(coming), func(id FileID) bool { return d.Files[id].Stuck == "" })
	if d.accepted(Missing) {
		coming = slices.DeleteFunc(coming, func(id FileID) bool { return d.Files[id].Stuck != "" })
	}
	for _, id := range coming {
		p.Volume += d.Files[id].Size - d.Files[id].Here
	}
	p.Takes = Takes(p.Volume, d.Rate)
	if items, lacks := d.lacking(); len(items) > 0 && !d.accepted(NoProgram) {
		p.Asks, p.Items = NoProgram, items
		p.Text = fmt.Sprintf("this device is not known to have what these are done with (%s), and nothing brings it: "+
			"install it and say so (mutirao profile set --application), give the items back (mutirao worklist release), "+
			"or accept that", strings.Join(lacks, ", "))
		return p
	}
	switch left := d.Within - d.Waited; {
	case len(coming) == 0:
		p.Go = true
	case d.Lacks > 0 && (d.tooSlow(p, left) == "" || d.accepted(TooSlow)):
		p.Asks, p.Items = NoSpace, d.needing(coming)
		p.Text = fmt.Sprintf("%s more are needed on the disk: free space there, or give back some of these, whose files are still "+
			"to come (mutirao worklist release); what is here already of items that are given back goes after a day",
			workflow.FormatSize(d.Lacks))
		if d.Limit > 0 {
			p.Text = fmt.Sprintf("%s more are needed than limits.files leaves for them: set it to %d or more in config.yaml and "+
				"start the node again, or give back some of these, whose files are still to come (mutirao worklist release); "+
				"what is here already of items that are given back goes after a day", workflow.FormatSize(d.Lacks), d.Limit)
		}
	case len(stuck) > 0 && !d.accepted(Missing):
		p.Asks, p.Items, p.Fetch = Missing, d.needing(stuck), coming
		p.Text = fmt.Sprintf("nobody gives a file of these now (%s): wait, give the items back, or accept to go without it",
			d.Files[stuck[0]].Stuck)
	case d.tooSlow(p, left) != "" && !d.accepted(TooSlow):
		p.Asks, p.Items, p.Fetch = TooSlow, d.needing(coming), coming
		p.Text = d.tooSlow(p, left)
	default:
		p.Fetch = coming
	}
	return p
}

// tooSlow says that what is to come takes longer than the user waits; empty: it does not,
// as far as is known.
func (d Device) tooSlow(p Plan, left time.Duration) string {
	volume := workflow.FormatSize(p.Volume)
	switch {
	case p.Takes > 0 && p.Takes > left:
		return fmt.Sprintf("%s are still to come, which takes about %s at %s/s, as files came %s, and of the longest wait %s are left: accept to wait on, wait longer (--within %s), or give items back (mutirao worklist release)",
			volume, workflow.FormatDuration(p.Takes), workflow.FormatSize(d.Rate), d.measured(),
			workflow.FormatDuration(max(left, 0).Truncate(time.Second)), enough(p.Takes))
	case p.Takes == 0 && left <= 0:
		return fmt.Sprintf("%s are still to come, and nothing came in %s; how long they take is not known, as no file has come since this node was started: accept to wait on, wait longer (--within), or give items back (mutirao worklist release)",
			volume, workflow.FormatDuration(d.Waited.Round(time.Second)))
	}
	return ""
}

// measured says by what the rate is known.
func (d Device) measured() string {
	from, ago := d.From, "just now"
	if from == "" {
		from = "from others, as none came yet from who has these"
	} else {
		from = "from " + from
	}
	switch {
	case d.Ago >= time.Minute:
		ago = workflow.FormatDuration(d.Ago.Truncate(time.Minute)) + " ago"
	case d.Ago >= 10*time.Second:
		ago = workflow.FormatDuration(d.Ago.Truncate(time.Second)) + " ago"
	}
	return from + ", last " + ago
}

// enough is a wait, in whole minutes, within which something comes that takes so long, a tenth more.
func enough(takes time.Duration) string {
	return workflow.FormatDuration((takes + takes/10 + time.Minute - 1).Truncate(time.Minute))
}

func (d Device) accepted(q Question) bool { return slices.Contains(d.Accepted, q) }

// which are the items of which is says so.
func (d Device) which(is func(Item) bool) (out []string) {
	for _, i := range d.Items {
		if is(i) {
			out = append(out, i.ID)
		}
	}
	return out
}

// lacking are the locked items that need an application which is not here, and these applications.
func (d Device) lacking() (items, lacks []string) {
	for _, i := range d.Items {
		if !i.Locked || i.Lacks == "" {
			continue
		}
		items = append(items, i.ID)
		if !slices.Contains(lacks, string(i.Lacks)) {
			lacks = append(lacks, string(i.Lacks))
		}
	}
	return items, lacks
}

// canBeDone reports whether an item can be done out of reach.
func (i Item) canBeDone() bool { return i.Locked || i.Own }

// needing are the items that can be done out of reach and need one of these files.
func (d Device) needing(files []FileID) []string {
	return d.which(func(i Item) bool {
		return i.canBeDone() && slices.ContainsFunc(i.Files, func(id FileID) bool { return slices.Contains(files, id) })
	})
}

// Missed are the files that are not all here, each once, in the order in which they are
// fetched: those of items that can be done out of reach first, and with all those of the others; each in the order
// of the list.
func Missed(items []Item, files map[FileID]File, all bool) (out []FileID) {
	for _, along := range []bool{true, false} {
		for _, i := range items {
			if i.canBeDone() != along || !along && !all {
				continue
			}
			for _, id := range i.Files {
				if !files[id].Whole && !slices.Contains(out, id) {
					out = append(out, id)
				}
			}
		}
	}
	return out
}

// Takes is how long so many bytes take at a rate; 0 where it was not measured.
func Takes(bytes, rate int64) time.Duration {
	if bytes <= 0 || rate <= 0 {
		return 0
	}
	const longest = 100 * 365 * 24 * time.Hour
	seconds := float64(bytes) / float64(rate)
	if seconds >= longest.Seconds() {
		return longest
	}
	return max(time.Duration(seconds*float64(time.Second)).Round(time.Second), time.Second)
}
