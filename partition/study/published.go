package study

import (
	"slices"

	"github.com/mutirao-mesh/mutirao/partition/aptitude"
)

// signTables are the published signs of one scenario. Rows are the mechanisms of
// the Sel-push family.
type signTables struct{ time, quality map[aptitude.Mechanism]string }

// published are the source's tables (docs/study.md, What came out), which no
// simulation reads. Columns are the mechanisms without Sel-push, in their order; a blank is
// a cell that is not known here: a mechanism against itself, what the table says
// in another place, and for three and selective the family among itself.
var published = map[string]signTables{
	"five": {
		time: map[aptitude.Mechanism]string{
			aptitude.SelPush: "+---+-=", aptitude.SelPush10: "+-=-+ +", aptitude.SelPushFlowtime: "+---+",
		},
		quality: map[aptitude.Mechanism]string{
			aptitude.SelPush: "-++++++", aptitude.SelPush10: "-+++= +", aptitude.SelPushFlowtime: "-+++-",
		},
	},
	"three": {
		time: map[aptitude.Mechanism]string{
			aptitude.SelPush: "+-=-+", aptitude.SelPush10: "+-=-+", aptitude.SelPushFlowtime: "+-=-+",
		},
		quality: map[aptitude.Mechanism]string{
			aptitude.SelPush: "-+++=", aptitude.SelPush10: "-+++-", aptitude.SelPushFlowtime: "-+=+-",
		},
	},
	"selective": {
		time: map[aptitude.Mechanism]string{
			aptitude.SelPush: "+---=", aptitude.SelPush10: "+-=-+", aptitude.SelPushFlowtime: "+---=",
		},
		quality: map[aptitude.Mechanism]string{
			aptitude.SelPush: "-++++", aptitude.SelPush10: "-+++=", aptitude.SelPushFlowtime: "-+++-",
		},
	},
}

// The rows and the columns of the published tables.
var (
	family = []aptitude.Mechanism{aptitude.SelPush, aptitude.SelPush10, aptitude.SelPushFlowtime}
	older  = []aptitude.Mechanism{
		aptitude.Push, aptitude.Pull, aptitude.Typical, aptitude.Receptive, aptitude.Selective,
	}
	columns = append(slices.Clone(older), aptitude.SelPush10, aptitude.SelPushFlowtime)
)

// PublishedCells is how many signs the source has in all: of each scenario the family against the older mechanisms
// and among itself, in time and in quality. Of three and selective those among the family are not known here.
const PublishedCells = 108

// Comparison is how the signs of a study compare to the published ones.
type Comparison struct {
	Cells []Cell `json:"cells"` // the published cells, row by row, time first
	// Unknown are cells that the source has and whose signs are not known here, so that they
	// are not compared: Published is empty.
	Unknown []Cell  `json:"unknown,omitempty"`
	Older   Tally   `json:"older"`  // those of the family against the five older mechanisms
	Family  Tally   `json:"family"` // those of the family among itself
	Claims  []Claim `json:"claims,omitempty"`
}

// Cell is one published cell: how the row compares to the column.
type Cell struct {
	Measure   string             `json:"measure"` // time or quality
	Row       aptitude.Mechanism `json:"row"`
	Column    aptitude.Mechanism `json:"column"`
	Obtained  Sign               `json:"obtained"`
	Published Sign               `json:"published,omitempty"`
}

// Same reports whether the cell came out as published.
func (c *Cell) Same() bool { return c.Obtained == c.Published }

// Tally counts published cells, and those of them that came out.
type Tally struct {
	Cells int `json:"cells"`
	Same  int `json:"same"`
}

func (t *Tally) count(c *Cell) {
	t.Cells++
	if c.Same() {
		t.Same++
	}
}

// Plus is what two tallies count together.
func (t Tally) Plus(o Tally) Tally { return Tally{t.Cells + o.Cells, t.Same + o.Same} }

// At is the published cell of a measure, if its sign is known here.
func (c *Comparison) At(measure string, row, column aptitude.Mechanism) (Cell, bool) {
	return at(c.Cells, measure, row, column)
}

// Lacks reports whether the source has a cell whose sign is not known here.
func (c *Comparison) Lacks(measure string, row, column aptitude.Mechanism) bool {
	_, lacks := at(c.Unknown, measure, row, column)
	return lacks
}

func at(cells []Cell, measure string, row, column aptitude.Mechanism) (Cell, bool) {
	i := slices.IndexFunc(cells, func(x Cell) bool {
		return x.Measure == measure && x.Row == row && x.Column == column
	})
	if i < 0 {
		return Cell{}, false
	}
	return cells[i], true
}

// compareToSource holds a report against the source's tables for its scenario.
// Cells of mechanisms that were not studied are left out.
func compareToSource(r *Report) *Comparison {
	c := &Comparison{Cells: []Cell{}}
	tables := published[r.Scenario]
	c.compare("time", &r.Time, tables.time)
	c.compare("quality", &r.Quality, tables.quality)
	if r.Scenario == "five" && !slices.ContainsFunc(aptitude.Mechanisms(), r.without) {
		c.Claims = claims(r)
	}
	return c
}

// without reports whether a mechanism was not studied.
func (r *Report) without(m aptitude.Mechanism) bool { return !slices.Contains(r.Mechanisms, m) }

func (c *Comparison) compare(measure string, m *Measure, table map[aptitude.Mechanism]string) {
	for _, row := range family {
		for i, column := range columns {
			obtained, studied := m.Test[row][column]
			if !studied || !tabulated(row, column) {
				continue
			}
			cell := Cell{Measure: measure, Row: row, Column: column, Obtained: obtained}
			if signs := table[row]; i < len(signs) {
				cell.Published = Sign(signs[i : i+1])
			}
			switch {
			case cell.Published == "":
				c.Unknown = append(c.Unknown, cell)
				continue
			case slices.Contains(older, column):
				c.Older.count(&cell)
			default:
				c.Family.count(&cell)
			}
			c.Cells = append(c.Cells, cell)
		}
	}
}

// tabulated reports whether the source's tables compare a row with a column: what the family
// is among itself they say once.
func tabulated(row, column aptitude.Mechanism) bool {
	return slices.Contains(older, column) || slices.Index(family, row) < slices.Index(family, column)
}
