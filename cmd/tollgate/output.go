package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode"

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

// check refuses a form that there is not, before a command does its work.
func (o *output) check() error {
	if o.format != "json" && o.format != "table" {
		return fmt.Errorf("--output %q is neither table nor json", o.format)
	}
	return nil
}

// print writes a table in the form that the operator asked for.
func (o *output) print(w io.Writer, t table) error {
	if err := o.check(); err != nil {
		return err
	}
	switch o.format {
	case "json":
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		if err := e.Encode(t.value); err != nil {
			return fmt.Errorf("print: %w", err)
		}
		return nil
	default:
		return printTable(w, t)
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

// printable keeps what strangers wrote from steering a terminal or leaving its
// cell.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
}
