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

// output is the output format of a command.
type output struct {
	format  string
	formats []string // supported formats
}

// addOutput adds the --output flag to a command that prints a table or JSON.
func addOutput(c *cobra.Command) *output {
	return addFormats(c, "output format: table or json", "table", "json")
}

// addFormats adds the --output flag with the formats of a command, the default first. Any other
// format is an error before the command starts its work.
func addFormats(c *cobra.Command, usage string, formats ...string) *output {
	o := &output{formats: formats}
	c.Flags().StringVarP(&o.format, "output", "o", formats[0], usage)
	completeValues(c, "output", formats...)
	c.PreRunE = func(*cobra.Command, []string) error { return o.checkFormat() }
	return o
}

// checkFormat returns an error if the format is not supported.
func (o *output) checkFormat() error {
	if !slices.Contains(o.formats, o.format) {
		return fmt.Errorf("--output: unknown format %q; use one of %s", o.format, strings.Join(o.formats, ", "))
	}
	return nil
}

// printResult writes a table in the chosen format.
func (o *output) printResult(w io.Writer, t table) error {
	if o.format != "json" {
		return printTable(w, t)
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(t.value); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

// formatCount returns a number with the singular or the plural of a noun.
func formatCount(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// formatTime formats a time as the API does; the zero time is an empty text.
func formatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z07:00")
}

// formatAddress formats an address; an unknown address is an empty text.
func formatAddress(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

// replaceControls replaces control characters, so that text from other people cannot control the
// terminal or break the layout of a table.
func replaceControls(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
}
