package main

import (
	"context"
	"fmt"

	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/wiring"
	"github.com/tollgate-dev/tollgate/wiring/settings"
)

// withOperator opens the database of the service for one command and calls do. The service may run
// meanwhile.
func withOperator(c *cobra.Command, p process, do func(*wiring.Operator) error) error {
	return runOperator(c, p, wiring.OpenOperator, do)
}

// withCreatedOperator is withOperator for commands that may be the first of an installation. It
// creates a missing database and prints a note, in case DATA_DIR was meant to be another directory.
func withCreatedOperator(c *cobra.Command, p process, do func(*wiring.Operator) error) error {
	return runOperator(c, p, func(ctx context.Context, s settings.Settings, log *logrus.Entry) (*wiring.Operator, func(), error) {
		missing := wiring.Missing(s)
		op, cleanup, err := wiring.MakeOperator(ctx, s, log)
		if err == nil && missing {
			_, _ = fmt.Fprintf(p.stderr, "There was no database in %s (DATA_DIR), so a new one was created.\n", s.SQLite.Dir) // the command continues without the note
		}
		return op, cleanup, err
	}, do)
}

// opener opens the database for an operator command.
type opener func(context.Context, settings.Settings, *logrus.Entry) (*wiring.Operator, func(), error)

func runOperator(c *cobra.Command, p process, open opener, do func(*wiring.Operator) error) error {
	s, err := readSettings(p)
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
func operatorLog(s settings.Settings, p process) *logrus.Entry {
	s.Service.LogLevel = "error"
	return wiring.NewLog(s.Service, p.stderr)
}

func isNotFound(err error) bool { return fault.Is(err, fault.NotFound) }

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
