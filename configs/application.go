package configs

import (
	"slices"
	"time"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// Application is what an application name runs on this node: a command or an
// HTTP call, never both.
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

	// Timeout ends a run that takes longer, as a failure; 0: 10 minutes. A
	// task's own timeout counts besides.
	Timeout time.Duration `yaml:"timeout,omitempty"`
	// MaxOutput is the greatest answer in bytes; 0: 1 MiB.
	MaxOutput int64 `yaml:"max-output,omitempty"`

	// Allow names the workflows that may use it; empty: all.
	Allow []workflow.Name `yaml:"allow,omitempty"`
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

// Allows tells whether tasks of that workflow may use the application.
func (a Application) Allows(w workflow.Name) bool {
	return len(a.Allow) == 0 || slices.Contains(a.Allow, w)
}
