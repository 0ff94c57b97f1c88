package configs

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// Application is what an application name runs on this node: a command or an
// HTTP call, or that workers do it; one of these.
type Application struct {
	// Command is a program and its arguments; no shell reads them. It gets the
	// job as JSON on stdin and answers with its outputs as a JSON object on
	// stdout; nothing on stdout means no outputs. An exit status other than 0
	// is a failure, with the last lines of stderr as its reason.
	Command []string `yaml:"command,omitempty"`
	// Folder is the command's working folder; relative to the node's folder,
	// which is also the default.
	Folder string `yaml:"folder,omitempty"`
	// Env is what the command sees of the environment, beside PATH, HOME, LANG,
	// the folder for temporary files, and MUTIRAO_…: NAME passes the node's
	// own value on, NAME=VALUE sets one.
	Env []string `yaml:"env,omitempty"`

	// URL is called with the job as JSON body and answers with its outputs as a
	// JSON object, or an empty body. A status other than 2xx is a failure, with
	// the start of the body as its reason.
	URL string `yaml:"url,omitempty"`
	// Method is POST (default), PUT or PATCH.
	Method string `yaml:"method,omitempty"`
	// Headers are added to the call, e.g. Authorization.
	Headers map[string]string `yaml:"headers,omitempty"`

	// Worker has the application's jobs wait for workers: programs that come for them
	// (mutirao worker run). A task's own timeout is the only time limit.
	Worker bool `yaml:"worker,omitempty"`

	// Timeout ends a run that takes longer, as a failure; 0: 10 minutes. A
	// task's own timeout counts besides.
	Timeout time.Duration `yaml:"timeout,omitempty"`
	// MaxOutput is the greatest answer in bytes; 0: 1 MiB.
	MaxOutput int64 `yaml:"max-output,omitempty"`

	// Allow names the workflows that may use it; empty: all.
	Allow []Permit `yaml:"allow,omitempty"`
}

// The defaults of an application.
const (
	DefaultTimeout   = 10 * time.Minute
	DefaultMaxOutput = 1 << 20 // bytes
)

// Limit returns the time limit of one run.
func (a Application) Limit() time.Duration {
	if a.Timeout == 0 {
		return DefaultTimeout
	}
	return a.Timeout
}

// OutputLimit returns the greatest answer, in bytes.
func (a Application) OutputLimit() int64 {
	if a.MaxOutput == 0 {
		return DefaultMaxOutput
	}
	return a.MaxOutput
}

// Permit names workflows that may use an application, or ask a database. A name alone says too
// little, since any member may list a workflow under any name that is free:
//
//	NAME            listed by this node, the founder or a delegate
//	NAME by AUTHOR  listed by that partner, given by name or ID
//	NAME@HASH that definition, no matter who lists it: 16 digits of its hash, or more
type Permit string

// minHash is how many digits of a hash tell definitions apart also from those that
// somebody makes in order to deceive.
const minHash = 16

var hashRE = regexp.MustCompile(`^[0-9a-f]{16,64}$`)

// parts are what a permit consists of; author and hash may be empty.
func (p Permit) parts() (name, author, hash string) {
	if name, author, found := strings.Cut(string(p), " by "); found {
		return name, strings.TrimSpace(author), ""
	}
	name, hash, _ = strings.Cut(string(p), "@")
	return name, "", hash
}

// validate says what is wrong with a permit; empty: nothing.
func (p Permit) validate() string {
	name, author, hash := p.parts()
	switch {
	case !workflow.ValidName(name):
		return "want a workflow: NAME, NAME by AUTHOR, or NAME@HASH"
	case strings.Contains(string(p), " by ") && (author == "" || strings.ContainsAny(author, " @")):
		return "want the name or ID of a partner after by"
	case strings.Contains(string(p), "@") && !hashRE.MatchString(hash):
		return fmt.Sprintf("want at least %d hexadecimal digits of the definition's hash after @: mutirao workflow list -v shows it", minHash)
	}
	return ""
}

// Origin is where a definition comes from.
type Origin struct {
	Workflow workflow.Name
	Hash     string
	// Authors are the names and IDs of the partners that listed it.
	Authors []string
	// Trusted: this node, the founder or a delegate is among them.
	Trusted bool
}

// Remedy says what lets a definition in that is not allowed what it asks for: where it would be if it was listed by whom
// the node trusts, that.
func (o Origin) Remedy(allowed func(Origin) bool) string {
	listed := o
	switch listed.Trusted = true; {
	case allowed(listed) && len(o.Authors) > 0: // to add it once more changes nothing while it is listed
		return "whoever runs the node that holds the task can name it there under allow in " + File + " (" +
			string(o.Workflow) + " by " + o.Authors[0] + "), or the founder or a delegate takes it off the list and adds it " +
			"(mutirao workflow remove, mutirao workflow add); then mutirao task again has the task done once more"
	case allowed(listed):
		return "whoever runs the node that holds the task can list it there (mutirao workflow add FILE), or name it under " +
			"allow in " + File + "; then mutirao task again has the task done once more"
	}
	return "see its allow list in " + File
}

// emptyAllow is what is wanted of a list of permits that lists nobody: it would allow those that none at all does.
const emptyAllow = "want the workflows that it is for, or no allow at all"

// Allows reports whether tasks of a definition may use the application.
func (a Application) Allows(o Origin) bool { return len(a.Allow) == 0 || allows(a.Allow, o) }

// allows reports whether one of the permits lets a definition in.
func allows(list []Permit, o Origin) bool {
	return slices.ContainsFunc(list, func(p Permit) bool {
		name, author, hash := p.parts()
		switch {
		case name != string(o.Workflow):
			return false
		case author != "":
			return slices.Contains(o.Authors, author)
		case hash != "":
			return strings.HasPrefix(o.Hash, hash)
		}
		return o.Trusted
	})
}
