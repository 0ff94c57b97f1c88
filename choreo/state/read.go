package state

import (
	"github.com/mutirao-mesh/mutirao/choreo/fact"
	"github.com/mutirao-mesh/mutirao/choreo/log"
	"github.com/mutirao-mesh/mutirao/partition"
	"github.com/mutirao-mesh/mutirao/workflow"
)

// Attempts are all attempts, by what names them. Like all maps and lists that a state gives, they are not
// to be changed.
func (s *State) Attempts() map[fact.AttemptID]*Attempt { return s.attempts }

// BySlot are the slots by the name of their task.
func (s *State) BySlot() map[workflow.TaskName]*Slot { return s.bySlot }

// Cancelled is the earliest fact by which the instance was cancelled; nil: none.
func (s *State) Cancelled() *log.Entry { return s.cancel }

// Conflicts are the data of which two writes count that did not know of each other.
func (s *State) Conflicts() map[workflow.DataName]bool { return s.conflicts }

// Contested reports whether some slot has several attempts, or waits for somebody to take the next.
func (s *State) Contested() bool { return s.contested }

// Data are the writes that are current.
func (s *State) Data() map[workflow.DataName]Written { return s.data }

// Declarations are the declared data, by name.
func (s *State) Declarations() map[workflow.DataName]*workflow.DataDecl { return s.decls }

// Definition is the definition that the instance runs under.
func (s *State) Definition() *workflow.Definition { return s.def }

// Failures are the slots that failed.
func (s *State) Failures() map[*Slot]bool { return s.failures }

// Flow is the work of an instance that is driven by its data; nil: it is driven by a graph.
func (s *State) Flow() *FlowWork { return s.flow }

// Former are the partners that took part until a chain proved to be forked, and through what; the earliest.
func (s *State) Former() map[workflow.PartnerID]*log.Entry { return s.former }

// Genesis is what the instance started with.
func (s *State) Genesis() *fact.Genesis { return s.genesis }

// Givers are the partners that gave work, besides the initiator.
func (s *State) Givers() map[FileGiven][]workflow.PartnerID { return s.givers }

// Holders are the holders of the partitions, as the genesis placed them.
func (s *State) Holders() map[workflow.PartitionName]workflow.PartnerID { return s.holder }

// Idle reports whether nothing is ready, running or armed, so that what is undecided about data stays so.
func (s *State) Idle() bool { return s.idle }

// Joined says through which facts each partner became a participant; the earliest first.
func (s *State) Joined() map[workflow.PartnerID][]*log.Entry { return s.joined }

// Log are the facts that it all follows from.
func (s *State) Log() *log.Log { return s.log }

// Made counts how often all slots were made again.
func (s *State) Made() int { return s.made }

// Offices are the first counted verdict in each office, of each strand.
func (s *State) Offices() []*log.Entry { return s.offices }

// Patient are the slots with a time-to-wait.
func (s *State) Patient() []*Slot { return s.patient }

// Pending counts the slots that wait for a partner that takes a contingency.
func (s *State) Pending() int { return s.pending }

// People is what is known of people's work.
func (s *State) People() *People { return &s.peoples }

// Plan is how the definition is cut into partitions.
func (s *State) Plan() *partition.Plan { return s.plan }

// Questions are what rules ask of the data.
func (s *State) Questions() map[TransitionOf]*Question { return s.questions }

// Refused counts the facts that do not count, by reason.
func (s *State) Refused() map[string]int { return s.refused }

// Rewritten counts how often a value of the data changed.
func (s *State) Rewritten() int { return s.rewritten }

// Slots are the slots, in the order of the rules.
func (s *State) Slots() []*Slot { return s.slots }

// Trust checks credentials; nil: nobody's prove anything.
func (s *State) Trust() Trust { return s.trust }

// Values are the values of the current data.
func (s *State) Values() map[workflow.DataName]workflow.Value { return s.values }

// WrittenOff are the partners for whom nobody waits before what lost is undone.
func (s *State) WrittenOff() map[workflow.PartnerID]*log.Entry { return s.writtenOff }
