// Package codec writes and reads what members sign, store and send of the mesh:
// deterministic CBOR, in one form only.
//
// Promises: what Decode accepts, Encode writes back byte for byte. What is too
// large, or in any other form, is refused with an error that names it.
//
// It imports no other package of ours; membership, membership/election,
// membership/invitation, membership/trust and membership/users import it.
package codec
