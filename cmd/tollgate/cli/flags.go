package cli

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// NewGroup returns a command that only has subcommands.
func NewGroup(use, short string, commands ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short}
	c.AddCommand(commands...)
	return c
}

// CheckFirst adds a check of flags and arguments to a command. It runs before the command's own
// check and those that were added before.
func CheckFirst(c *cobra.Command, check func() error) {
	rest := c.PreRunE
	c.PreRunE = func(c *cobra.Command, args []string) error {
		if err := check(); err != nil || rest == nil {
			return err
		}
		return rest(c, args)
	}
}

// RequireFlags marks flags as required.
func RequireFlags(c *cobra.Command, names ...string) {
	for _, name := range names {
		_ = c.MarkFlagRequired(name) // fails only for an unknown flag
	}
}

// CompleteValues registers the values of a flag for shell completion.
func CompleteValues(c *cobra.Command, flag string, values ...string) {
	// fails only for an unknown flag
	_ = c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

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
