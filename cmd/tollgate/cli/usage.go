package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// explainUsage replaces the error messages of Cobra and of package flag by messages that show how
// to use the command. A command that does not say which arguments it takes takes those at the
// beginning of its usage line.
func explainUsage(root *cobra.Command) {
	root.SetFlagErrorFunc(explainFlagError)
	VisitCommands(root, func(c *cobra.Command) {
		if c.Name() == "help" {
			c.Run, c.RunE = nil, showHelp
		} else if !c.HasSubCommands() {
			if c.Args == nil {
				c.Args = cobra.ExactArgs(countArgs(c.Use))
			}
			c.Args = explainArgs(c.Args)
		}
	})
}

// explainArgs returns a check of arguments whose error shows how to use the command. It reports
// missing flags first; Cobra would report them only after the arguments.
func explainArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		missing := missingFlags(c)
		switch {
		case len(missing) == 1:
			return fmt.Errorf("%s is missing: use '%s'", missing[0], c.UseLine())
		case len(missing) > 1:
			last := len(missing) - 1
			return fmt.Errorf("%s and %s are missing: use '%s'", strings.Join(missing[:last], ", "),
				missing[last], c.UseLine())
		case check(c, args) != nil:
			return fmt.Errorf("wrong number of arguments (%d): use '%s'", len(args), c.UseLine())
		}
		return nil
	}
}

// countArgs returns how many arguments follow the name of a command in its usage line. They begin
// with a capital letter.
func countArgs(usage string) (n int) {
	for _, word := range strings.Fields(usage)[1:] {
		if strings.IndexFunc(word, unicode.IsUpper) != 0 {
			break
		}
		n++
	}
	return n
}

// missingFlags returns the names of the required flags that are missing.
func missingFlags(c *cobra.Command) (names []string) {
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if _, needed := f.Annotations[cobra.BashCompOneRequiredFlag]; needed && !f.Changed {
			names = append(names, "--"+f.Name)
		}
	})
	return names
}

// explainFlagError names the flag whose value is not a number.
func explainFlagError(_ *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) || !errors.Is(err, strconv.ErrSyntax) && !errors.Is(err, strconv.ErrRange) {
		return err
	}
	if flag := invalid.GetFlag(); flag.Value.Type() != "bool" {
		return fmt.Errorf("--%s: %q is not a whole number, or too large", flag.Name, invalid.GetValue())
	}
	return err
}

// showHelp shows the help of the command in the arguments. An unknown command is an error.
func showHelp(c *cobra.Command, args []string) error {
	found, rest, err := c.Root().Find(args)
	if err != nil {
		return fmt.Errorf("help: %w", err)
	}
	if len(rest) > 0 {
		return fmt.Errorf("unknown command %q for %q", rest[0], found.CommandPath())
	}
	found.InitDefaultHelpFlag() // so that the help lists it
	if err := found.Help(); err != nil {
		return fmt.Errorf("help: %w", err)
	}
	return nil
}

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
