package cli

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// addCompletion adds Cobra's help and completion commands, with examples. It turns the completion
// of file names off for arguments and flags that are not files.
func addCompletion(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	examples := map[string]string{
		"help":       "  tollgate help user add",
		"bash":       "  source <(tollgate completion bash)",
		"zsh":        "  tollgate completion zsh > _tollgate",
		"fish":       "  tollgate completion fish > tollgate.fish",
		"powershell": "  tollgate completion powershell > tollgate.ps1",
	}
	VisitCommands(root, func(c *cobra.Command) {
		if example, ok := examples[c.Name()]; ok {
			c.Example = example
		}
		if c.ValidArgsFunction == nil && !takesFiles(c) {
			c.ValidArgsFunction = cobra.NoFileCompletions
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if _, ok := c.GetFlagCompletionFunc(f.Name); !ok {
				CompleteValues(c, f.Name)
			}
		})
	})
}

// takesFiles reports whether a command's arguments are files, judging by its usage line.
func takesFiles(c *cobra.Command) bool {
	return strings.Contains(c.Use, "FILE") || strings.Contains(c.Use, "DIR") || strings.Contains(c.Use, ".json")
}

// VisitCommands calls visit for a command and all commands below it.
func VisitCommands(c *cobra.Command, visit func(*cobra.Command)) {
	visit(c)
	for _, sub := range c.Commands() {
		VisitCommands(sub, visit)
	}
}
