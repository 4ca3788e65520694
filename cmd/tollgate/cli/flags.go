package cli

import "github.com/spf13/cobra"

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

// ToStrings converts values of a string type.
func ToStrings[T ~string](values []T) []string {
	all := make([]string, len(values))
	for i, v := range values {
		all[i] = string(v)
	}
	return all
}
