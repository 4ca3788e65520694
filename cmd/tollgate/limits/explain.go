package limits

import (
	"errors"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/adapters/ratelimitapi"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/ratelimit/explain"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
	"github.com/tollgate-dev/tollgate/wiring/settings"
)

func newRatelimitExplain(p cli.Process) *cobra.Command {
	c := &cobra.Command{
		Use:   "explain DIR --domain D --descriptors k=v,k=v",
		Short: "Say which rules of a directory decide about a request, and why",
		Long: "Read the rules of a directory as the service would, and say for each descriptor of a\n" +
			"request which rule decides about it, which others were tried, and the key of its\n" +
			"counter. --descriptors may be given several times, because a request can have several\n" +
			"descriptors, of which one can replace the rule of another. Nothing is counted. The\n" +
			"exit code is 0 also if no rule matches.",
		Example: "  tollgate ratelimit explain docs/examples/ratelimit/config --domain shop --descriptors user=ada",
	}
	domain := c.Flags().String("domain", "", "domain of the request (required)")
	descriptors := c.Flags().StringArray("descriptors", nil, "entries of a descriptor: k=v,k=v (required; repeatable)")
	cli.RequireFlags(c, "domain", "descriptors")
	o := cli.AddOutput(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		request, err := newRateLimitRequest(*domain, *descriptors)
		if err != nil {
			return err
		}
		s, err := settings.ReadRules(p.Environ)
		if err != nil {
			return err
		}
		set, _, err := compileRules(c.Context(), s, args[0])
		if err != nil {
			return err
		}
		results := explain.Explain(set, request, explain.Options{Prefix: s.Decide.Prefix, Now: time.Now()})
		if !o.Structured() {
			return printExplanation(p.Stdout, request, results)
		}
		return o.PrintResult(p.Stdout, cli.Table{Value: ratelimitapi.NewExplanation(results)})
	}
	return c
}

// newRateLimitRequest returns a request with descriptors in the form k=v,k=v.
func newRateLimitRequest(domain string, descriptors []string) (*ratelimit.Request, error) {
	if domain == "" {
		return nil, errors.New("--domain: it must not be empty")
	}
	r := &ratelimit.Request{Domain: ratelimit.Domain(domain)}
	for _, text := range descriptors {
		entries, err := ratelimit.ParseEntries(text)
		if err != nil {
			return nil, errors.New("--descriptors: " + fault.PublicMessage(err))
		}
		r.Descriptors = append(r.Descriptors, ratelimit.Descriptor{Entries: entries})
	}
	return r, nil
}

// printExplanation prints for each descriptor what decides about it, and below it what was tried.
func printExplanation(w io.Writer, r *ratelimit.Request, results []explain.Result) error {
	type row struct {
		Level   int    `column:"LEVEL"`
		Key     string `column:"KEY"`
		Kind    string `column:"KIND"`
		Pattern string `column:"PATTERN"`
		Line    string `column:"LINE"`
		Why     string `column:"WHY"`
	}
	for i, result := range results {
		title := strings.Join(explainedLines(r.Descriptors[i].Entries, result), "\n")
		if i > 0 {
			title = "\n" + title
		}
		if err := cli.PrintLine(w, title); err != nil {
			return err
		}
		rows := each.Map(result.Tried, func(t ruleset.Tried) row {
			return row{t.Level + 1, t.Entry.Key, string(t.Kind), t.Pattern, placeOf(t.At.File, t.At.Line), t.Why}
		})
		if len(rows) == 0 {
			continue
		}
		if err := cli.PrintTable(w, cli.ListTable(rows)); err != nil {
			return err
		}
		if result.More {
			if err := cli.PrintLine(w, "There are more."); err != nil {
				return err
			}
		}
	}
	return nil
}

// explainedLines returns the lines about one descriptor.
func explainedLines(entries []ratelimit.Entry, r explain.Result) []string {
	lines := []string{cli.ReplaceControls(ratelimit.FormatEntries(entries))}
	switch {
	case r.Rule == nil:
		return append(lines, "no rule: "+cli.ReplaceControls(r.Why))
	case r.Rule.Unlimited:
		lines = append(lines, "rule: "+cli.ReplaceControls(strings.Join(r.Rule.Written, ", "))+": unlimited")
	default:
		lines = append(lines, "rule: "+cli.ReplaceControls(strings.Join(r.Rule.Written, ", "))+": "+
			strconv.FormatUint(uint64(r.Rule.Limit.RequestsPerUnit), 10)+" per "+r.Rule.Limit.Unit.String())
	}
	if place := placeOf(r.Rule.File, r.Rule.Line); place != "" {
		lines = append(lines, "in: "+place)
	}
	if r.Rule.Shadow {
		lines = append(lines, "shadow mode: hits over the limit are let pass")
	}
	if r.ReplacedBy != "" {
		lines = append(lines, "replaced by: "+cli.ReplaceControls(string(r.ReplacedBy)))
	}
	if r.CounterKey != "" {
		lines = append(lines, "counter: "+r.CounterKey)
	}
	return lines
}

// placeOf returns file:line, or less of it if that is not known.
func placeOf(file string, line int) string {
	if line == 0 {
		return file
	}
	return file + ":" + strconv.Itoa(line)
}
