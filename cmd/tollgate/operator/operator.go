// Package operator has the commands of operators. They work on the database of the service, which
// may run meanwhile.
package operator

import (
	"context"
	"errors"
	"fmt"

	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/adapters/eventlog"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/wiring"
	"github.com/tollgate-dev/tollgate/wiring/settings"
)

// Commands returns the commands of operators.
func Commands(p cli.Process) []*cobra.Command {
	return []*cobra.Command{
		newMigrate(p), newBackup(p), newUser(p), newDevice(p), newSession(p), newGrant(p), newPolicy(p),
		newReview(p), newView(p),
		newWebhook(p), newMirror(p), newAudit(p), newRegistry(p), newAllowList(p), newMethods(p), newRisk(p),
		newPlugins(p),
	}
}

// withOperator opens the database of the service for one command and calls do. The service may run
// meanwhile.
func withOperator(c *cobra.Command, p cli.Process, do func(*wiring.Operator) error) error {
	return runOperator(c, p, wiring.OpenOperator, do)
}

// withCreatedOperator is withOperator for commands that may be the first of an installation. It
// creates a missing database and prints a note, in case DATA_DIR was meant to be another directory.
func withCreatedOperator(c *cobra.Command, p cli.Process, do func(*wiring.Operator) error) error {
	return runOperator(c, p,
		func(ctx context.Context, s settings.Settings, log *logrus.Entry) (*wiring.Operator, func(), error) {
			missing := fault.Is(s.Records.Present(), fault.NotFound)
			op, cleanup, err := wiring.MakeOperator(ctx, s, log)
			if err == nil && missing {
				// the command continues without the note
				_, _ = fmt.Fprintf(p.Stderr, "There was no database in %s (DATA_DIR), so a new one was created.\n",
					s.Records.SQLite.Dir)
			}
			return op, cleanup, err
		}, do)
}

// run is one run of a command, with the database open.
type run struct {
	*wiring.Operator

	ctx  context.Context // of the command, which the run does not outlive
	args []string
}

// newTableCommand completes a command that prints what find returns as a table or as JSON.
func newTableCommand(p cli.Process, c *cobra.Command, find func(run) (cli.Table, error)) *cobra.Command {
	o := cli.AddOutput(c)
	return newPlainCommand(p, c, func(r run) error {
		t, err := find(r)
		if err != nil {
			return err
		}
		return o.PrintResult(p.Stdout, t)
	})
}

// newPlainCommand completes a command that calls do with the database.
func newPlainCommand(p cli.Process, c *cobra.Command, do func(run) error) *cobra.Command {
	c.RunE = func(c *cobra.Command, args []string) error {
		return withOperator(c, p, func(op *wiring.Operator) error { return do(run{op, c.Context(), args}) })
	}
	return c
}

// emailOf returns the e-mail address of a person, or the id if the account does not exist.
func (r run) emailOf(id string) string {
	if a, err := r.Accounts.Get(r.ctx, auth.UserID(id)); err == nil {
		return string(a.Email)
	}
	return id
}

// opener opens the database for an operator command.
type opener func(context.Context, settings.Settings, *logrus.Entry) (*wiring.Operator, func(), error)

func runOperator(c *cobra.Command, p cli.Process, open opener, do func(*wiring.Operator) error) error {
	s, err := settings.Read(p.Environ)
	if err != nil {
		return err
	}
	op, cleanup, err := open(c.Context(), s, operatorLog(s, p))
	if err != nil {
		return fmt.Errorf("open the database: %w", err)
	}
	defer cleanup()
	return do(op)
}

// operatorLog returns the log of a command. It contains only errors; the results of the command go
// to standard output.
func operatorLog(s settings.Settings, p cli.Process) *logrus.Entry {
	return eventlog.NewLog(p.Stderr, "error", s.Service.LogFormat)
}

// suggestForce mentions --force in the error of a command that failed because the file exists.
func suggestForce(file string, err error) error {
	if fault.Is(err, fault.Conflict) {
		return fmt.Errorf("%s already exists: use --force to overwrite it", file)
	}
	return err
}

// addForce adds the flag that overwrites a file.
func addForce(c *cobra.Command) *bool {
	return c.Flags().Bool("force", false, "overwrite FILE if it exists")
}

// replaceNotFound replaces a not-found error by one with the given message.
func replaceNotFound(err error, message string) error {
	if fault.Is(err, fault.NotFound) {
		return errors.New(message)
	}
	return err
}

// printSentence prints a line.
func printSentence(p cli.Process, text string) error {
	if _, err := fmt.Fprintln(p.Stdout, text); err != nil {
		return fmt.Errorf("write to standard output: %w", err)
	}
	return nil
}
