package worklists

import (
	"reflect"
	"testing"
	"testing/synctest"
	"time"
)

// A long list is put in words by several goroutines, in the same words and order as by one.
func TestLongListsAreWordedBySeveral(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // in which the clock stands still
		d, _, _ := afar(t)
		rows := rowsOf(2*wordedAtOnce+wordedAtOnce/2, time.Now())
		all := make([]*Row, len(rows))
		for i := range rows {
			rows[i].At, rows[i].Priority = "base", i
			all[i] = &rows[i]
		}
		who, _ := d.in.People.Who("")
		one := d.items(who, all)
		d.in.Waits = func() bool { return true }
		if several := d.items(who, all); len(one) != len(rows) || !reflect.DeepEqual(several, one) {
			t.Errorf("several worded %d rows of %d, and one %d, not the same", len(several), len(rows), len(one))
		}
	})
}
