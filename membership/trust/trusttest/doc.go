// Package trusttest makes meshes, members and evictions for tests: keys follow from
// names, and the founder is always ana. Only tests import it.
//
// It imports membership/trust and workflow; only tests import it.
package trusttest
