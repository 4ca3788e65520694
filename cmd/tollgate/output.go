package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

// output is how a command prints what it found.
type output struct{ format string }

// addOutput adds the --output flag to a command.
func addOutput(c *cobra.Command) *output {
	o := &output{}
	c.Flags().StringVarP(&o.format, "output", "o", "table", "how to print: table or json")
	return o
}

// table is what a command prints, for people and for programs.
type table struct {
	header []string
	rows   [][]string
	value  any // what --output json prints
}

// print writes a table in the form that the operator asked for.
func (o *output) print(w io.Writer, t table) error {
	switch o.format {
	case "json":
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		if err := e.Encode(t.value); err != nil {
			return fmt.Errorf("print: %w", err)
		}
		return nil
	case "table":
		return printTable(w, t)
	default:
		return fmt.Errorf("--output %q is neither table nor json", o.format)
	}
}

func printTable(w io.Writer, t table) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{t.header}, t.rows...) {
		if _, err := fmt.Fprintln(tw, strings.Join(row, "\t")); err != nil {
			return fmt.Errorf("print: %w", err)
		}
	}
	if err := tw.Flush(); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}
