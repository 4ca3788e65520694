package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// explainUse has wrong use of all commands told in words of this program instead of Cobra's and Go's.
func explainUsage(root *cobra.Command) {
	root.SetFlagErrorFunc(explainFlagError)
	visitCommands(root, func(c *cobra.Command) {
		if c.Args != nil && !c.HasSubCommands() {
			c.Args = explainArgs(c.Args)
		}
		if c.Name() == "help" {
			c.Run, c.RunE = nil, showHelp
		}
	})
}

// explained returns the check with a failure that shows how the command is used. Flags that are missing are told first, as Cobra
// would do only afterwards.
func explainArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		missing := missingFlags(c)
		switch {
		case len(missing) == 1:
			return fmt.Errorf("%s is missing: use '%s'", missing[0], c.UseLine())
		case len(missing) > 1:
			last := len(missing) - 1
			return fmt.Errorf("%s and %s are missing: use '%s'", strings.Join(missing[:last], ", "), missing[last], c.UseLine())
		case check(c, args) != nil:
			return fmt.Errorf("wrong number of arguments (%d): use '%s'", len(args), c.UseLine())
		}
		return nil
	}
}

// missingFlags names the flags that a command cannot do without and was not given.
func missingFlags(c *cobra.Command) (names []string) {
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if _, needed := f.Annotations[cobra.BashCompOneRequiredFlag]; needed && !f.Changed {
			names = append(names, "--"+f.Name)
		}
	})
	return names
}

// wrongValue tells of a number that is none by its flag.
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

// helpOf shows the help of the command that the arguments name; one that there is not is a failure, as it is without help.
func showHelp(c *cobra.Command, args []string) error {
	found, rest, err := c.Root().Find(args)
	if err != nil {
		return fmt.Errorf("help: %w", err)
	}
	if len(rest) > 0 {
		return fmt.Errorf("unknown command %q for %q", rest[0], found.CommandPath())
	}
	found.InitDefaultHelpFlag() // so that it is shown
	if err := found.Help(); err != nil {
		return fmt.Errorf("help: %w", err)
	}
	return nil
}
