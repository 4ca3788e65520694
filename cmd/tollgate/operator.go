package main

import (
	"fmt"

	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/wiring"
	"github.com/tollgate-dev/tollgate/wiring/settings"
)

// withOperator opens the records of the service, which may run meanwhile, for
// one command.
func withOperator(c *cobra.Command, p process, do func(*wiring.Operator) error) error {
	s, err := readSettings(p)
	if err != nil {
		return err
	}
	op, cleanup, err := wiring.OpenOperator(c.Context(), s, operatorLog(s, p))
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
