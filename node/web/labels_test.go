package web

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mutirao-mesh/mutirao/node/api"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// tasksOf are the tasks of the fixtures whose names mean nothing else.
var tasksOf = []string{
	"dispatch", "procedure-1", "look-again", "hoses", "pump", "evacuate", "warn", "hand-over", "agree", "choose",
}

// dataOf are data of the fixtures.
var dataOf = []string{"address", "floors", "booking", "licence"}

func labelOfTest(name string) string { return "«" + name + "»" }

func labelsOfTest(names []string) map[string]string {
	out := map[string]string{}
	for _, n := range names {
		out[n] = labelOfTest(n)
	}
	return out
}

// labelled gives everything below v that has a name and may have a label one, and says so of what it names.
func labelled[T any](v T) T {
	label(reflect.ValueOf(&v).Elem())
	return v
}

func label(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			label(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			label(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			label(v.Field(i))
		}
		set := func(field, from string, names []string) {
			f, of := v.FieldByName(field), v.FieldByName(from)
			if f.IsValid() && of.IsValid() && slices.Contains(names, of.String()) {
				f.SetString(labelOfTest(of.String()))
			}
		}
		set("Label", "Task", tasksOf)
		set("Label", "Name", slices.Concat(tasksOf, dataOf))
		for field, names := range map[string][]string{"TaskLabels": tasksOf, "DataLabels": dataOf} {
			if f := v.FieldByName(field); f.IsValid() {
				f.Set(reflect.ValueOf(labelsOfTest(names)))
			}
		}
	}
}

// Wherever people read what a task or a data item is, they read its label, and its name nowhere.
func TestPeopleReadLabels(t *testing.T) {
	f := brigade()
	f.OnInstances = func(all bool) ([]api.InstanceSummary, error) {
		list, err := brigade().OnInstances(all)
		return labelled(list), err
	}
	f.OnShow = func(string) (*api.Instance, error) { return labelled(fireCall()), nil }
	f.OnLog = func(id string) ([]api.LogEntry, error) {
		list, err := brigade().OnLog(id)
		return labelled(list), err
	}
	f.OnWorklist = func(q api.WorklistQuery) ([]api.Item, error) {
		items := labelled(work())
		items[0].WaitsFor = []api.Lack{{Resource: "crane", Capacity: 1, InUse: 1, By: []string{"pump"}}}
		items[1].Awaits = []string{"look-again"} // which is not on the list
		return listed(q, items), nil
	}
	f.OnItemSheet = func(q api.ItemQuery) (*api.ItemSheet, error) {
		s, err := sheetOf(q.Item)
		return labelled(s), err
	}
	f.OnOutbox = func() ([]api.Undelivered, error) {
		list, err := brigade().OnOutbox()
		return labelled(list), err
	}
	f.OnWorklistLost = func(user string) ([]api.LostItem, error) {
		list, err := brigade().OnWorklistLost(user)
		return labelled(list), err
	}
	f.OnMessages = func(q api.MessagesQuery) ([]api.Message, error) {
		list, err := brigade().OnMessages(q)
		list = append(list, api.Message{ID: "m4", Instance: id, Workflow: "fire-call", Task: "hoses",
			Text: "the deadline of hoses is over"})
		return labelled(list), err
	}
	r := stranded()
	r.OnShow = func(string) (*api.Instance, error) {
		in := labelled(rental())
		in.Undoable = []workflow.TaskName{"agree"}
		return in, nil
	}
	r.OnInstances = f.OnInstances
	r.OnWorklist, r.OnOutbox = f.OnWorklist, f.OnOutbox
	for _, tt := range []struct {
		name, path string
		of         *Page
		want       []string
	}{
		{"home", "/", newPage(f), []string{"«pump», «hoses»", "«hoses» · Harbour Street 12 · Fire", "in use by «pump»", "«look-again»"}},
		{"item", "/items/b2", newPage(f), []string{"«procedure-1»", "After «dispatch»", "«address»"}},
		{"outbox", "/outbox", newPage(f), []string{"«evacuate»", "«hoses»"}},
		{"messages", "/messages", newPage(f), []string{
			"«evacuate» is due in", "«pump» has failed: no fuel", "the deadline of «hoses» is over",
		}},
		{"instances", "/instances", newPage(f), []string{"«pump», «hoses»"}},
		{"instance", "/instances/" + id, newPage(f), []string{
			"bia has «look-again»", "If «look-again» is not done by", "«floors»", "«look-again» (bia)", "Stands in for | «procedure-1»",
		}},
		{"log", "/instances/" + id + "/log", newPage(f), []string{"«procedure-1»"}},
		{"interrupted", "/instances/" + id, newPage(r), []string{"«hand-over»", "«agree»", "«booking»"}},
		{"repair", "/instances/" + id + "/recover", newPage(r), []string{"«hand-over»", "S2 · «choose»", "«licence»"}},
		{"states", "/instances/" + id + "/states", newPage(r), []string{"«agree», «choose»", "«booking»:"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := get(t, tt.of, tt.path, "en")
				says := prose(w.Body.String())
				for _, doc := range []string{"How the booking stands", "The licence was shown"} {
					says = strings.ReplaceAll(says, doc, "")
				}
				for _, name := range slices.Concat(tasksOf, dataOf) {
					bare := regexp.MustCompile(`(^|[^«\pL\d/-])` + regexp.QuoteMeta(name) + `($|[^»\pL\d-])`)
					if at := bare.FindStringIndex(says); at != nil {
						t.Errorf("says %s by its name: …%s…", name, says[max(at[0]-60, 0):min(at[1]+30, len(says))])
					}
				}
				for _, want := range tt.want {
					if !strings.Contains(says, want) {
						t.Errorf("does not say %q", want)
					}
				}
				if t.Failed() {
					t.Log(says)
				}
			})
		})
	}
}
