package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"
)

// output is how a command prints what it found.
type output struct {
	format  string
	formats []string // that there are
}

// addOutput adds the --output flag to a command that prints a table or JSON.
func addOutput(c *cobra.Command) *output {
	return addFormats(c, "output format: table or json", "table", "json")
}

// addForms adds the --output flag with the forms that a command prints, the
// default first. Another form is refused before the command does its work.
func addFormats(c *cobra.Command, usage string, forms ...string) *output {
	o := &output{formats: forms}
	c.Flags().StringVarP(&o.format, "output", "o", forms[0], usage)
	completeValues(c, "output", forms...)
	c.PreRunE = func(*cobra.Command, []string) error { return o.checkFormat() }
	return o
}

// table is what a command prints, for people and for programs.
type table struct {
	header []string
	rows   [][]string
	value  any // what --output json prints
}

// check refuses a form that there is not.
func (o *output) checkFormat() error {
	if !slices.Contains(o.formats, o.format) {
		return fmt.Errorf("--output: unknown format %q; supported: %s", o.format, strings.Join(o.formats, ", "))
	}
	return nil
}

// print writes a table in the form that the operator asked for.
func (o *output) printResult(w io.Writer, t table) error {
	if o.format != "json" {
		return printTable(w, t)
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(t.value); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

// count writes a number with the word for one or for any other number of things.
func formatCount(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// shown writes a time for people and for programs, as the API does; empty for
// the zero time.
func formatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z07:00")
}

// shownAddress writes an address; empty when it is not known.
func formatAddress(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

// printable keeps what strangers wrote from steering a terminal or leaving its
// cell.
func replaceControls(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
}
