package cli

import "github.com/spf13/cobra"

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
