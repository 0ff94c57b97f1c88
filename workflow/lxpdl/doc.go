// Package lxpdl imports workflow definitions in LXPDL, the XML format of the
// aptitude study's source (docs/systems.md, LXPDL):
//
//	<lxpdl>
//	  <tasks>
//	    <task name="A" precond="" poscond="B" time="10"><role name="clerk"/></task>
//	    …
//	    <start name="A"/> <end name="B"/>
//	  </tasks>
//	  <transitions>
//	    <transition source="A" destination="B"/>
//	    …
//	  </transitions>
//	</lxpdl>
//
// Order comes from the transitions alone: precond and poscond are informative,
// as the printed example contradicts itself. <start> and <end> name a task; they
// may also stand directly under <lxpdl>. Without <start> it is not said where the process begins, which is a
// mistake; where it ends, the transitions say as well. A task without time has time 0: unknown.
//
// A transition goes back if all ways to its source lead through its destination. Both and what lies between are a
// loop: natively it has a bound, [Rounds], and a data item by which its last task says whether there is another round.
// Loops are one within the other, or have no task in common.
//
// Promises: no I/O (the DTD is never fetched, entities that it declares are
// refused), no clock, no goroutine; input above [MaxSize] is refused; whatever
// [Parse] accepts is, but for what goes back, a graph without cycles whose names are all known, and
// every mistake is reported as file:line:column: message (hint).
//
// The workflow import and the simulation study use it.
//
// It imports internal/plain, workflow and workflow/internal/native; cmd/mutirao and
// partition/study import it.
package lxpdl
