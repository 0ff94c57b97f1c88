package databases

import (
	"context"

	"github.com/mutirao-mesh/mutirao/workflow"
)

// AskSQLite puts a statement to a file that no definition can have.
func AskSQLite(ctx context.Context, path, statement string) error {
	return sqliteFile{path}.put(ctx, statement, nil, workflow.MaxValue, nobody)
}
