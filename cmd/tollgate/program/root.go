// Package program has all commands of the program tollgate, as one function: main calls it with what the system gives
// to the process, and tests call it in theirs.
package program

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/adapters/tollgateclient/account"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/limits"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/operator"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/person"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/service"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// Run runs the command that the arguments name until it ends or ctx does, and returns its exit code. It writes a
// failure as one sentence to standard error. Calls at once do not disturb each other.
func Run(ctx context.Context, p cli.Process) int {
	root := newRoot(p)
	c, err := root.ExecuteContextC(ctx)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = cli.ErrInterrupted
	}
	if err != nil {
		_, _ = fmt.Fprintf(p.Stderr, "tollgate: %s\n", cli.ErrorSentence(err)) // there is no other place to report it
		return exitCode(p, c, err)
	}
	return cli.ExitOK
}

func newRoot(p cli.Process) *cobra.Command {
	root := &cobra.Command{
		Use:   "tollgate",
		Short: "Registry, sign-in and rate limits for an organisation's tool servers",
		Long: "Tollgate keeps the registry of tool servers, decides who may change it and how\n" +
			"far each sign-in is trusted, and limits how often clients may make calls.\n" +
			"Settings come from the environment: see 'tollgate settings'.\n\n" +
			"Commands that change records take --server URL, or the address in TOLLGATE_SERVER:\n" +
			"then they call that service, with the session of 'tollgate login' there or with the\n" +
			"token in TOLLGATE_TOKEN, and need no access to the database.\n\n" +
			"The exit code is 0 on success, 1 if a command failed or was used wrongly, 2 if\n" +
			"'tollgate ratelimit simulate' finds too many refusals or 'tollgate tools record\n" +
			"--diff' a difference, and 3 if a publisher's command needs a sign-in. With a\n" +
			"service to call it is 1 if the service refuses, 2 for wrong use, 3 if a sign-in or a\n" +
			"step-up is needed, and 4 if the service cannot be reached. One sentence on standard\n" +
			"error gives the reason.",
		Example:       "  tollgate serve\n  tollgate user list",
		Version:       p.Build.Version,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetArgs(p.Args)
	root.SetIn(p.Stdin)
	root.SetOut(p.Stdout)
	root.SetErr(p.Stderr)
	root.AddCommand(service.Commands(p)...)
	root.AddCommand(operator.Commands(p)...)
	root.AddCommand(person.Commands(p)...)
	root.AddCommand(limits.NewCommand(p, service.Serve))
	groupCommands(root)
	cli.CompleteCommands(root)
	return root
}

// commandGroups are the groups of the help, in its order, with the commands that are in them. The rest
// are those of operators.
var commandGroups = [...]struct{ title, commands string }{
	{"Use a registry", "login logout whoami context status server publish tools token"},
	{"Operate", ""},
	{"Run a service", "serve health settings plugins setup-link migrate backup"},
	{"Check files", "apply export-state ratelimit registry"},
}

// groupCommands gives each command its group.
func groupCommands(root *cobra.Command) {
	for _, g := range commandGroups {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title + ":"})
	}
	for _, c := range root.Commands() {
		c.GroupID = commandGroups[1].title
		for _, g := range commandGroups {
			if slices.Contains(strings.Fields(g.commands), c.Name()) {
				c.GroupID = g.title
			}
		}
		if c.Name() == "version" {
			c.GroupID = ""
		}
	}
}

func exitCode(p cli.Process, c *cobra.Command, err error) int {
	var coded *cli.CodedError
	if errors.As(err, &coded) {
		return coded.Code
	}
	var needed *account.SignInNeeded
	if errors.As(err, &needed) {
		return cli.ExitSignIn
	}
	if errors.Is(err, limits.ErrNewRefusals) {
		return cli.ExitLimit
	}
	if c.Flags().Lookup("insecure-http") != nil && fault.Is(err, fault.Unavailable) {
		return cli.ExitAway
	}
	if person.WantsService(p, c) { // what the service refused has its code
		return cli.ExitUsage
	}
	return cli.ExitFailed
}
