package cli

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
	"go.yaml.in/yaml/v4"
)

// Output is the output format of a command.
type Output struct {
	Format  string
	formats []string // supported formats
}

// The formats of tables.
const (
	formatWide = "wide"
	formatJSON = "json"
	formatYAML = "yaml"
)

// AddOutput adds the --output flag to a command that prints a table.
func AddOutput(c *cobra.Command) *Output {
	return AddFormats(c, "output format: table, wide, json or yaml", "table", formatWide, formatJSON, formatYAML)
}

// Structured reports whether the output is for programs.
func (o *Output) Structured() bool { return o.Format == formatJSON || o.Format == formatYAML }

// AddFormats adds the --output flag with the formats of a command, the default first. Any other
// format is an error before the command starts its work.
func AddFormats(c *cobra.Command, usage string, formats ...string) *Output {
	o := &Output{formats: formats}
	c.Flags().StringVarP(&o.Format, "output", "o", formats[0], usage)
	CompleteValues(c, "output", formats...)
	CheckFirst(c, o.checkFormat)
	return o
}

// checkFormat returns an error if the format is not supported.
func (o *Output) checkFormat() error {
	if !slices.Contains(o.formats, o.Format) {
		return fmt.Errorf("--output: unknown format %q; use one of %s", o.Format, strings.Join(o.formats, ", "))
	}
	return nil
}

// PrintResult writes a table in the chosen format.
func (o *Output) PrintResult(w io.Writer, t Table) error {
	switch o.Format {
	case formatJSON:
	case formatYAML:
		text, err := EncodeYAML(t.Value)
		if err == nil {
			_, err = w.Write(text)
		}
		if err != nil {
			return fmt.Errorf("write output: %w", err)
		}
		return nil
	case formatWide:
		return t.widened().printWithin(w, 0)
	default:
		return PrintTable(w, t)
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(t.Value); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

// PrintLine writes a line.
func PrintLine(w io.Writer, text string) error {
	if _, err := fmt.Fprintln(w, text); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

// FormatCount returns a number with the singular or the plural of a noun.
func FormatCount(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// FormatTime formats a time as the API does; the zero time is an empty text.
func FormatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z07:00")
}

// FormatAddress formats an address; an unknown address is an empty text.
func FormatAddress(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

// ReplaceControls replaces control characters, so that text from other people cannot control the
// terminal or break the layout of a table.
func ReplaceControls(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
}

// EncodeYAML returns a value as YAML, with the names and the order of its JSON.
func EncodeYAML(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode the output: %w", err)
	}
	var document yaml.Node
	if err := yaml.Load(text, &document); err != nil {
		return nil, fmt.Errorf("encode the output: %w", err)
	}
	useBlocks(&document)
	if text, err = yaml.Dump(&document); err != nil {
		return nil, fmt.Errorf("encode the output: %w", err)
	}
	return text, nil
}

// useBlocks replaces the style of JSON by that of YAML. Empty lists and objects keep theirs.
func useBlocks(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode || len(n.Content) > 0 {
		n.Style = 0
	}
	for _, inner := range n.Content {
		useBlocks(inner)
	}
}
