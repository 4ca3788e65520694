package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/wiring"
)

// withOperator opens the records of the service, which may run meanwhile, for
// one command.
func withOperator(c *cobra.Command, p process, do func(*wiring.Operator) error) error {
	s, err := readSettings(p)
	if err != nil {
		return err
	}
	op, cleanup, err := wiring.OpenOperator(c.Context(), s, wiring.NewLog(s.Service, p.stderr))
	if err != nil {
		return fmt.Errorf("open records: %w", err)
	}
	defer cleanup()
	return do(op)
}

func isNotFound(err error) bool { return fault.Is(err, fault.NotFound) }
