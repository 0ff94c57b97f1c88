package api

// MemberFile is the file in a folder that makes it a node's: its mesh and certificate.
const MemberFile = "member"

// AccessFile is the file in the node's folder that tells its user's programs
// how to reach the running node. Only that user can read it.
const AccessFile = "api.json"

// TokensFile is the file in the node's folder with the tokens that were added.
// It has their hashes only.
const TokensFile = "tokens.json"

// PageFile is the file in the node's folder with the certificate, and its key, with
// which the node opens its page to the network. The node makes it when that is first
// asked for.
const PageFile = "page.pem"
