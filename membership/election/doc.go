// Package election has a mesh agree on a coordinator, by majorities of lists of voters
// that are themselves handed over by majorities.
//
// Purpose:
//   - electorates: numbered lists of voters (electorate.go), each signed by the founder
//     or by a majority of the one before it (succession.go);
//   - a pure state machine of voters, candidates and coordinators (election.go,
//     ready.go, voter.go, candidate.go, claim.go, nominate.go, message.go);
//   - what a coordinator shows to prove that it was elected (office.go,
//     credentials.go).
//
// Promises: whatever is lost, repeated, reordered or restarted, in one term of one
// electorate there is one coordinator at most; and, but for an override, one at a time,
// as long as the holder's clock does not run slower than a voter's by a fifth. One voter
// that lies makes two at most, until they hear of each other: then the lower office ends,
// and of two of one term that of the lower ID. What a
// call returns says what has to be durable before anything is sent. No I/O, no clock, no
// goroutine, no global randomness; time and random bytes are parameters. Whatever comes
// from outside is size-limited, decoded strictly and verified before it changes state.
//
// It does not know the partner list: who may vote is what the signed lists say.
//
// It imports internal/plain, internal/said, membership/internal/codec, membership/moment,
// membership/trust and workflow; choreo/fact, node, node/elections and node/overview import it.
package election
