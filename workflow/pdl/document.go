package pdl

import "time"

// Document is what a file holds, in the order written.
type Document struct {
	Workflows    []Workflow
	Models       []Model
	Applications []Application
}

// Workflow is one type of workflow.
type Workflow struct {
	Name       string
	Data       []Data
	Activities []Activity

	at position
}

// Data is an item of the context of each instance.
type Data struct {
	Name       string
	Kind       Kind
	File       string   // of a file: what it is called
	Database   string   // of a query: where to ask
	Expression string   // of a query: what to ask
	Text       *string  // of a string: its first value, if it has one
	Number     *float64 // of a number: its first value, if it has one

	at position
}

// Kind of a data item.
type Kind string

// The kinds of data.
const (
	File   Kind = "file"
	Query  Kind = "query"
	String Kind = "string"
	Number Kind = "number"
)

// Activity is a task or a sub-workflow.
type Activity struct {
	Name        string
	Model       string // of a task
	SubWorkflow string // of a sub-workflow: the name of its type
	Depends     *Rule  // nil: ready at once
	In, Out     []string
	Role        string
	Description string

	at, of, role position
	in, out      []position

	before string // the task that asks what it reads, as it is called in the native format
}

// Rule is a dependency rule: a term, or several rules joined by an operator.
type Rule struct {
	Operator string // "and" or "or"; empty: a term
	Parts    []*Rule

	Activity string // of a term: whose transition,
	State    string // and to what: ready, running, succeeded or failed

	at position
}

// Model is what tasks of one kind have in common.
type Model struct {
	Name        string
	Type        string // automatic, semi-automatic or manual
	Application string
	Priority    *int
	Deadline    time.Duration // 0: none
	NoDeadline  bool          // one of 0 is written, which means nothing
	Offline     bool          // may be done while disconnected
	Retries     int

	at, application position
}

// Application is a program that tasks use.
type Application struct {
	Name      string
	FileName  string
	KB        int64 // 0: not stated
	OS, CPU   string
	Installer string
	Hosts     []string

	at position
}

// position is a place in the file, from 1; the column in characters.
type position struct{ line, column int }
