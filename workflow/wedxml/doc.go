// Package wedxml imports flows of WED-tool (docs/systems.md, WED-tool), an XML format of
// attributes, conditions, transitions and flows:
//
//	<WED-flow-initial-schema>
//	  <WED-attributes><Attribute Name="step" Type="string"/></WED-attributes>
//	  <WED-conditions>
//	    <Condition Name="asked"><Predicate Id="p">step = "asked"</Predicate><Expression>p</Expression></Condition>
//	  </WED-conditions>
//	  <WED-transitions><Transition Name="ask"><UpdatedAttribute AttrName="step"/></Transition></WED-transitions>
//	  <WED-compensations><Compensation Name="forget" ForWedTransition="ask"><UpdatedAttribute AttrName="step"/></Compensation></WED-compensations>
//	  <WED-flows><Flow Name="rental" FinalStateCondName="done"><Trigger CondName="asked" TransName="ask" Period="3d"/></Flow></WED-flows>
//	  <AWICs><Constraint CondName="asked"/></AWICs>
//	</WED-flow-initial-schema>
//
// Names of elements and attributes are read in small letters and capitals alike. White
// space inside of a name counts for nothing where a name is looked for, as printed files
// break names over lines. A broken name becomes what stands on one line elsewhere, else its
// lines are joined: with no space beside one of _ - . /, else with one. "= null" means that there is no
// value. A trigger's Period is the time limit of its transition.
//
// Promises: no I/O (no DTD is fetched, entities that it declares are refused), no clock,
// no goroutine; input above [MaxSize] is refused; whatever [Parse] accepts has a
// translation that the native parser takes, for each of its flows; every mistake is
// reported as file:line:column: message (hint).
//
// It imports internal/plain, workflow and workflow/internal/native; cmd/mutirao imports
// it.
package wedxml
