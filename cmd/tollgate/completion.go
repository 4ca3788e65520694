package main

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// offer tells a shell what values a flag has.
func offer(c *cobra.Command, flag string, values ...string) {
	_ = c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)) // fails only for a flag that is not there
}

// texts returns values of a text type as strings.
func texts[T ~string](values []T) []string {
	all := make([]string, len(values))
	for i, v := range values {
		all[i] = string(v)
	}
	return all
}

// addCompletion adds the commands that Cobra has for shells and for help, with
// examples, and keeps shells from offering files where none is wanted.
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
	each(root, func(c *cobra.Command) {
		if example, ok := examples[c.Name()]; ok {
			c.Example = example
		}
		if c.ValidArgsFunction == nil && !takesFiles(c) {
			c.ValidArgsFunction = cobra.NoFileCompletions
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if _, ok := c.GetFlagCompletionFunc(f.Name); !ok {
				offer(c, f.Name)
			}
		})
	})
}

// takesFiles reads from the line of usage whether a command's arguments are
// files.
func takesFiles(c *cobra.Command) bool {
	return strings.Contains(c.Use, "FILE") || strings.Contains(c.Use, "DIR") || strings.Contains(c.Use, ".json")
}

// each visits a command and those below it.
func each(c *cobra.Command, visit func(*cobra.Command)) {
	visit(c)
	for _, sub := range c.Commands() {
		each(sub, visit)
	}
}
