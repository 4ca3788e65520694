package main

import (
	"strings"

	"github.com/spf13/cobra"
)

// group completes a command that only holds others: by itself it shows its
// help, with the first example of each; a command that it does not hold is a
// failure, as it is of the program itself.
func group(c *cobra.Command) {
	var examples []string
	for _, sub := range c.Commands() {
		first, _, _ := strings.Cut(sub.Example, "\n")
		examples = append(examples, first)
	}
	c.Example = strings.Join(examples, "\n")
	c.Args = cobra.NoArgs
	c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
}
