// Package pdl imports workflow definitions in PDL, the language of the WorkToDo
// system (docs/systems.md, PDL):
//
//	WORKFLOW delivery {
//	  STRING address { VALUE "unknown"; }
//	  TASK pack : handling { OUT_CONTEXT address; ROLE clerk; }
//	  TASK carry : trip { DEPENDS pack -> SUCCEEDED; IN_CONTEXT address; ROLE driver; }
//	}
//	TASK handling { TYPE MANUAL; PRIORITY 5; DEADLINE 8 HOURS; DISCONNECTED_OPERATION FALSE; }
//	TASK trip { TYPE MANUAL; PRIORITY 5; DEADLINE 2 DAYS; DISCONNECTED_OPERATION TRUE; }
//
// A file holds any number of workflows, task models and applications. It is read
// liberally where the language's own printed example departs from its grammar:
// keywords and states in any case and with - or _, FAIL for FAILED, clauses in any
// order, semicolons that are missing, clauses that are empty, strings over several
// lines, a rule of a single term.
//
// Promises: no I/O, no clock, no goroutine; input above [MaxSize] is refused;
// whatever [Parse] accepts has only names that are known, no cycle, and a
// translation that the native parser takes; every mistake is reported as
// file:line:column: message (hint).
//
// It imports internal/plain, workflow and workflow/internal/native; cmd/mutirao
// imports it.
package pdl
