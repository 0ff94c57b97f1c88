package api

import "github.com/mutirao-mesh/mutirao/workflow"

// File is a file among an instance's data, or one that was given to a node for that.
type File struct {
	Name string `json:"name"`
	Size int64  `json:"size"` // bytes
	// Value is the reference that stands among the data.
	Value string `json:"value"`
	// Here: all of its content is at this node.
	Here bool `json:"here"`
	// OnlyHere: it was given here, and no other partner that may read it is known to have it whole.
	OnlyHere bool `json:"only_here,omitempty"`
	// Waits says how its content comes here, while somebody waits for it.
	Waits string `json:"waits,omitempty"`
	// OnlyFor are those who alone may read it, as its declaration names them (readers), where this node, or of an
	// item whoever has it, is not among them and its content is not here: so it does not come.
	OnlyFor []string `json:"only_for,omitempty"`
	// Gone are those who gave it, by name, where none of them is active any more: they have expired, have left or were
	// removed. Then it comes here only if another partner has it, or one of them is back.
	Gone []string `json:"gone,omitempty"`
}

// DataItem is one of an instance's data as it is now.
type DataItem struct {
	Name  workflow.DataName `json:"name"`
	Label string            `json:"label,omitempty"` // what people call it; empty: its name
	Type  string            `json:"type"`
	Value any               `json:"value"` // null: nobody has set it
	// File says more of a file that was given.
	File *File `json:"file,omitempty"`
}
