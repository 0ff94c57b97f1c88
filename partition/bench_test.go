package partition_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// long is a workflow of n tasks in partitions of two, each waiting for the one
// before it and for one far behind.
func long(n int) *workflow.Definition {
	def := &workflow.Definition{Partitions: make([]workflow.PartitionDecl, (n+1)/2)}
	for i := range n {
		t := &workflow.Task{Name: workflow.TaskName(fmt.Sprintf("t%05d", i)), Timeout: time.Minute}
		if i > 0 {
			t.Rule = after(def.Tasks[i-1].Name, def.Tasks[i/2].Name)
		}
		part := &def.Partitions[i/2]
		part.Name = workflow.PartitionName(fmt.Sprintf("p%05d", i/2))
		part.Tasks = append(part.Tasks, t.Name)
		def.Tasks = append(def.Tasks, t)
	}
	return def
}

func BenchmarkNew(b *testing.B) {
	for _, n := range []int{11, 100, 1000} {
		b.Run(fmt.Sprintf("tasks=%d", n), func(b *testing.B) {
			def := long(n)
			b.ReportAllocs()
			for b.Loop() {
				partition.New(def)
			}
		})
	}
}

func BenchmarkSuggest(b *testing.B) {
	for _, n := range []int{11, 100} {
		b.Run(fmt.Sprintf("tasks=%d", n), func(b *testing.B) {
			def := long(n)
			for b.Loop() {
				partition.Suggest(def, 3)
			}
		})
	}
}
