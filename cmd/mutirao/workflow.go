package main

import "github.com/spf13/cobra"

func newWorkflowCommand() *cobra.Command {
	return newGroup("workflow", "Check, add, import, list, show, compare, merge, draw and remove definitions",
		newWorkflowCheckCommand(), newWorkflowAddCommand(), newWorkflowListCommand(),
		newWorkflowShowCommand(), newWorkflowDiagramCommand(), newWorkflowRemoveCommand(), newWorkflowImportCommand(),
		newWorkflowDiffCommand(), newWorkflowMergeCommand(),
	)
}
