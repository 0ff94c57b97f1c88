package main

import (
	"bytes"
	"errors"
	"io"

	"github.com/spf13/cobra"
)

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
				return bashCompletion(root, out)
			case "zsh":
				return root.GenZshCompletion(out)
			case "fish":
				return root.GenFishCompletion(out, true)
			}
			return usagef("no completion for %q: want bash, zsh or fish", args[0])
		},
	}
}

// foreignWords is the line of cobra's script that needs the package bash-completion, where
// that is not loaded: each press of the Tab key is an error then.
const foreignWords = `    _get_comp_words_by_ref "$@" cur prev words cword` + "\n"

// ownWords does the same without that package: bash cuts words at = and : also, as in
// --assign engine=engine-7, and what has no space between is one word here.
const ownWords = `    local line=${COMP_LINE:0:COMP_POINT} part space i
    words=()
    for ((i = 0; i <= COMP_CWORD; i++)); do
        space=${line%%[![:space:]]*}
        line=${line#"$space"}
        part=${COMP_WORDS[i]}
        if ((i == COMP_CWORD)); then
            part=$line
        fi
        line=${line#"$part"}
        if [[ -z $space && ${#words[@]} -gt 0 && ( $part == [=:]* || ${words[${#words[@]}-1]} == *[=:] ) ]]; then
            words[${#words[@]}-1]+=$part
        else
            words+=("$part")
        fi
    done
    cword=$((${#words[@]} - 1))
    cur=${words[cword]}
    prev=
    if ((cword > 0)); then
        prev=${words[cword-1]}
    fi
`

// bashCompletion is cobra's script, made to work without the package bash-completion.
func bashCompletion(root *cobra.Command, out io.Writer) error {
	var b bytes.Buffer
	if err := root.GenBashCompletionV2(&b, true); err != nil {
		return err
	}
	before, after, found := bytes.Cut(b.Bytes(), []byte(foreignWords))
	if !found {
		return errors.New("the script for bash is not as it was known: this program was built with another cobra")
	}
	_, err := io.Copy(out, io.MultiReader(bytes.NewReader(before), bytes.NewBufferString(ownWords),
		bytes.NewReader(after)))
	return err
}
