package main

import "github.com/spf13/cobra"

func newCompletionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish",
		Short: "° Print a script that makes the Tab key complete commands, IDs and names",
		Example: `  source <(mutirao completion bash)
  mutirao completion zsh > "${fpath[1]}/_mutirao"
  mutirao completion fish > ~/.config/fish/completions/mutirao.fish`,
		Args:      arguments("bash, zsh or fish"),
		ValidArgs: []string{"bash", "zsh", "fish"},
		RunE: func(cmd *cobra.Command, args []string) error {
			root, out := cmd.Root(), cmd.OutOrStdout()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(out, true)
			case "zsh":
				return root.GenZshCompletion(out)
			case "fish":
				return root.GenFishCompletion(out, true)
			}
			return usagef("no completion for %q: want bash, zsh or fish", args[0])
		},
	}
}
