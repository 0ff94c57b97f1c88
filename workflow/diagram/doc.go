// Package diagram draws a workflow definition, as a plan or with the states of
// an instance: SVG, Mermaid or DOT.
//
// Each partition is a lane (a cluster, a subgraph); tasks are boxes, round ones
// for people, square ones for machines. Solid arrows are successes, dashed ones
// failures and contingencies. A clock marks an emergency trigger.
//
// Promises: the same input gives the same bytes; whatever a definition's texts
// contain, the output is well formed. The SVG stands alone (no fonts, scripts
// or links), has a title and a description, and follows the reader's light or
// dark setting.
//
// It imports internal/plain and workflow; cmd/mutirao, node/show and node/web import it.
package diagram
