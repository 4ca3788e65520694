package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/wiring"
	"github.com/tollgate-dev/tollgate/wiring/settings"
)

// withOperator opens the records of the service, which may run meanwhile, for
// one command.
func withOperator(c *cobra.Command, p process, do func(*wiring.Operator) error) error {
	return runOperator(c, p, wiring.OpenOperator, do)
}

// withNewOperator is withOperator for a command that an installation may begin
// with: records that are missing are made, which is told in case the command was
// meant for others.
func withCreatedOperator(c *cobra.Command, p process, do func(*wiring.Operator) error) error {
	return runOperator(c, p, func(ctx context.Context, s settings.Settings, log *logrus.Entry) (*wiring.Operator, func(), error) {
		missing := wiring.Missing(s)
		op, cleanup, err := wiring.MakeOperator(ctx, s, log)
		if err == nil && missing {
			_, _ = fmt.Fprintf(p.stderr, "There was no database in %s (DATA_DIR): a new one is created.\n", s.SQLite.Dir) // what follows matters more
		}
		return op, cleanup, err
	}, do)
}

// opener opens the records of an operator.
type opener func(context.Context, settings.Settings, *logrus.Entry) (*wiring.Operator, func(), error)

func runOperator(c *cobra.Command, p process, open opener, do func(*wiring.Operator) error) error {
	s, err := readSettings(p)
	if err != nil {
		return err
	}
	op, cleanup, err := open(c.Context(), s, operatorLog(s, p))
	if err != nil {
		return fmt.Errorf("open records: %w", err)
	}
	defer cleanup()
	return do(op)
}

// operatorLog is the log of a command, which tells of errors only: what it did
// is on standard output.
func operatorLog(s settings.Settings, p process) *logrus.Entry {
	s.Service.LogLevel = "error"
	return wiring.NewLog(s.Service, p.stderr)
}

func isNotFound(err error) bool { return fault.Is(err, fault.NotFound) }

// offerForce names the flag that overwrites a file, where that is all that a
// command failed for.
func suggestForce(err error) error {
	if fault.Is(err, fault.Conflict) {
		return fmt.Errorf("%s: --force overwrites it", strings.TrimSuffix(errorSentence(err), ", and is not overwritten"))
	}
	return err
}

// addForce adds the flag that overwrites a file.
func addForce(c *cobra.Command) *bool {
	return c.Flags().Bool("force", false, "overwrite FILE if it exists")
}
