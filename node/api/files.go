package api

// AccessFile is the file in the node's folder that tells its user's programs
// how to reach the running node. Only that user can read it.
const AccessFile = "api.json"

// TokensFile is the file in the node's folder with the tokens that were added.
// It has their hashes only.
const TokensFile = "tokens.json"
