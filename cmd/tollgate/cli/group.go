package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// CompleteCommands adds to the root command what all commands share: help, completion, and errors
// that show how to use a command. It is called after all commands are added.
func CompleteCommands(root *cobra.Command) {
	addCompletion(root)
	for _, c := range root.Commands() {
		showHelpOfGroups(c)
	}
	explainUsage(root)
}

// showHelpOfGroups completes a command, and its subcommands, that only have subcommands.
func showHelpOfGroups(c *cobra.Command) {
	for _, sub := range c.Commands() {
		showHelpOfGroups(sub)
	}
	if !c.Runnable() {
		showHelpByDefault(c)
	}
}

// showHelpByDefault completes a command that only has subcommands. Without a subcommand it shows
// its help, with the first example of each subcommand; an unknown subcommand is an error.
func showHelpByDefault(c *cobra.Command) {
	var examples []string
	for _, sub := range c.Commands() {
		first, _, _ := strings.Cut(sub.Example, "\n")
		examples = append(examples, first)
	}
	c.Example = strings.Join(examples, "\n")
	c.Args = cobra.NoArgs
	c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
}
