// Package operator has the commands of operators. A command calls the administration API: with
// --server at a service, and otherwise in this process, on the database of the service, which may run
// meanwhile. What the API does not have works on the database only, or has a form for each.
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
	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/wiring"
	"github.com/tollgate-dev/tollgate/wiring/settings"
)

// Commands returns the commands of operators.
func Commands(p cli.Process) []*cobra.Command {
	return []*cobra.Command{
		newMigrate(p), newBackup(p), newSetupLink(p), newUser(p), newDevice(p), newSession(p), newGrant(p), newPolicy(p),
		newReview(p), newView(p), newCollection(p), newWebhook(p), newMirror(p), newAudit(p), newRegistry(p), newAllowList(p),
		newMethods(p), newRisk(p), newPlugins(p), newProvider(p), newServiceAccount(p), newToken(p), newAccess(p), newClient(p), newResource(p), newToolSource(p),
		newApply(p), newExportState(p),
	}
}

// addLastOperatorForce adds the flag that lets a command end the access of the last operator. The
// result returns the context of the change.
func addLastOperatorForce(c *cobra.Command) func() context.Context {
	force := c.Flags().Bool("force", false, "do it even if no active person can operate the service any more")
	localOnly(c, "force")
	return func() context.Context {
		if *force {
			return authstore.ByForce(c.Context())
		}
		return c.Context()
	}
}

// run is one run of a command.
type run struct {
	*wiring.Operator // of the open database; nil with --server, and for what needs only the settings
	api

	settings settings.Settings
	ctx      context.Context // of the command, which the run does not outlive
	args     []string
}

// finder returns the output of a run.
type finder func(run) (cli.Table, error)

// newTableCommand completes a command that prints what find returns of the API as a table or as JSON.
// What can be checked without the API is checked by c.PreRunE.
func newTableCommand(p cli.Process, c *cobra.Command, find finder) *cobra.Command {
	return newPrinter(p, c, wiring.OpenOperator, find, find)
}

// newDatabaseTable is newTableCommand for a command that works on the database, and with --server calls
// far, if there is one.
func newDatabaseTable(p cli.Process, c *cobra.Command, find finder, far ...finder) *cobra.Command {
	return newPrinter(p, c, wiring.OpenOperator, find, far...)
}

// newFirstCommand is newDatabaseTable for commands that may be the first of an installation: it
// creates a missing database.
func newFirstCommand(p cli.Process, c *cobra.Command, find finder, far ...finder) *cobra.Command {
	return newPrinter(p, c, openOrCreate(p), find, far...)
}

// newSettingsCommand is newTableCommand for commands that need only the settings of the service.
func newSettingsCommand(p cli.Process, c *cobra.Command, find finder) *cobra.Command {
	return newPrinter(p, c, openNothing, find)
}

// newPlainCommand completes a command that calls do with the API.
func newPlainCommand(p cli.Process, c *cobra.Command, do func(run) error) *cobra.Command {
	return newDatabaseCommand(p, c, do, do)
}

// newDatabaseCommand completes a command that calls do with the database, or far with the API of a
// service.
func newDatabaseCommand(p cli.Process, c *cobra.Command, do func(run) error, far ...func(run) error) *cobra.Command {
	c.RunE = runWith(p, wiring.OpenOperator, do)
	return addRemote(p, c, far)
}

// newPrinter completes a command that prints what find returns, or far with --server, in the format of
// --output, which it adds to the command.
func newPrinter(p cli.Process, c *cobra.Command, open opener, find finder, far ...finder) *cobra.Command {
	o := cli.AddOutput(c)
	print := func(find finder) func(run) error {
		return func(r run) error {
			t, err := find(r)
			if err != nil {
				return err
			}
			return o.PrintResult(p.Stdout, t)
		}
	}
	c.RunE = runWith(p, open, print(find))
	return addRemote(p, c, each.Map(far, print))
}

// opener opens the database for a command.
type opener func(context.Context, settings.Settings, *logrus.Entry) (*wiring.Operator, func(), error)

// openNothing opens no database.
func openNothing(context.Context, settings.Settings, *logrus.Entry) (*wiring.Operator, func(), error) {
	return nil, func() {}, nil
}

// openOrCreate returns an opener that creates a missing database and prints a note, in case DATA_DIR
// was meant to be another directory.
func openOrCreate(p cli.Process) opener {
	return func(ctx context.Context, s settings.Settings, log *logrus.Entry) (*wiring.Operator, func(), error) {
		missing := fault.Is(s.Records.Present(), fault.NotFound)
		op, cleanup, err := wiring.MakeOperator(ctx, s, log)
		if err == nil && missing {
			// the command continues without the note
			_, _ = fmt.Fprintf(p.Stderr, "There was no database in %s (DATA_DIR), so a new one was created.\n",
				s.Records.SQLite.Dir)
		}
		return op, cleanup, err
	}
}

// runWith returns a function that runs a command: it reads the settings, opens the database and
// calls do. The service may run meanwhile.
func runWith(p cli.Process, open opener, do func(run) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		s, err := settings.Read(p.Environ)
		if err != nil {
			return err
		}
		op, cleanup, err := open(c.Context(), s, operatorLog(s, p))
		if err != nil {
			return fmt.Errorf("open the database: %w", err)
		}
		defer cleanup()
		return do(run{Operator: op, api: localAPI(op), settings: s, ctx: c.Context(), args: args})
	}
}

// operatorLog returns the log of a command. It contains only errors; the results of the command go
// to standard output.
func operatorLog(s settings.Settings, p cli.Process) *logrus.Entry {
	return eventlog.NewLog(p.Stderr, "error", s.Service.LogFormat)
}

// addPerson adds the required flag --email. The address is checked before the database is opened.
func addPerson(c *cobra.Command) *auth.Email {
	flag, address := c.Flags().String("email", "", "e-mail address of the person"), new(auth.Email)
	cli.RequireFlags(c, "email")
	cli.CheckFirst(c, func() (err error) {
		*address, err = auth.ParseEmail(*flag)
		return err
	})
	return address
}

// newPersonCommand completes a command that prints what find returns about one person of the API.
func newPersonCommand(p cli.Process, c *cobra.Command, find personFinder) *cobra.Command {
	return newTableCommand(p, c, onPerson(addPerson(c), find))
}

// newAccountCommand completes a command that prints what find returns about the account of a person, or
// far about the person of a service.
func newAccountCommand(
	p cli.Process, c *cobra.Command, find func(run, auth.Account) (cli.Table, error),
	far ...personFinder,
) *cobra.Command {
	email := addPerson(c)
	forms := each.Map(far, func(find personFinder) finder { return onPerson(email, find) })
	return newDatabaseTable(p, c, func(r run) (cli.Table, error) {
		a, err := r.account(*email)
		if err != nil {
			return cli.Table{}, err
		}
		return find(r, a)
	}, forms...)
}

// account returns the account with an e-mail address.
func (r run) account(email auth.Email) (auth.Account, error) {
	a, err := r.People.ByEmail(r.ctx, email)
	return a, unknownPerson(err, email)
}

// unknownPerson replaces a not-found error by one that names the person.
func unknownPerson(err error, email auth.Email) error {
	return replaceNotFound(err, "there is no user "+string(email))
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
