package limits

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/adapters/memory"
	"github.com/tollgate-dev/tollgate/adapters/traffic"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/ratelimit/simulate"
	"github.com/tollgate-dev/tollgate/wiring/settings"
)

// ErrNewRefusals is the error if the new rules refuse too many requests that the old ones admit.
var ErrNewRefusals = errors.New("the new rules refuse too many requests")

func newRatelimitSimulate(p cli.Process) *cobra.Command {
	c := &cobra.Command{
		Use:   "simulate --old DIR --new DIR TRAFFIC.jsonl",
		Short: "Compare what two directories of rules answer to recorded requests",
		Long: "Decide recorded requests by the rules of two directories, at the times of the\n" +
			"recording, and say how many more or fewer each rule and each key would be refused.\n" +
			"A service records requests if RATELIMIT_RECORD is set; '-' reads standard input. A\n" +
			"line is {\"time\": RFC 3339, \"domain\", \"descriptors\": [{\"entries\": [{\"key\",\n" +
			"\"value\"}], \"hitsAddend\"}], \"hitsAddend\"}, in order of time.\n\n" +
			"The exit code is 1 if a line is malformed or out of order, and 2 if more requests\n" +
			"than --max-new-refusals are refused that the old rules admit.",
		Example: "  tollgate ratelimit simulate --old rules --new changed --max-new-refusals 0 traffic.jsonl",
		Args:    cobra.ExactArgs(1),
	}
	before := c.Flags().String("old", "", "directory of the rules in force (required)")
	after := c.Flags().String("new", "", "directory of the changed rules (required)")
	most := c.Flags().Uint64("max-new-refusals", 0,
		"exit with code 2 if more requests are newly refused; default: any number")
	cli.RequireFlags(c, "old", "new")
	o := cli.AddOutput(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		report, err := simulateTraffic(c.Context(), p, simulatedDirs{*before, *after}, args[0])
		if err != nil {
			return err
		}
		if err := printComparison(o, p.Stdout, report); err != nil {
			return err
		}
		if c.Flags().Changed("max-new-refusals") && report.NewlyRefused > *most {
			return fmt.Errorf("%w: %d, and --max-new-refusals is %d", ErrNewRefusals, report.NewlyRefused, *most)
		}
		return nil
	}
	return c
}

// simulatedDirs are the directories of two sets of rules.
type simulatedDirs struct{ before, after string }

// simulateTraffic decides the requests of a recording by both sets of rules. It writes warnings to
// standard error.
func simulateTraffic(ctx context.Context, p cli.Process, dirs simulatedDirs, name string) (simulate.Report, error) {
	s, err := settings.ReadSimulation(p.Environ)
	if err != nil {
		return simulate.Report{}, err
	}
	var rules simulate.Rules
	if rules.Old, _, err = compileRules(ctx, s, dirs.before); err != nil {
		return simulate.Report{}, err
	}
	if rules.New, _, err = compileRules(ctx, s, dirs.after); err != nil {
		return simulate.Report{}, err
	}
	clock := &simulate.Clock{}
	before, after := memory.NewCounters(clock, s.Memory), memory.NewCounters(clock, s.Memory)
	simulation, err := simulate.New(s.Decide, rules, simulate.Ports{
		OldCounters: before, NewCounters: after, Clock: clock,
	})
	if err != nil {
		return simulate.Report{}, err
	}
	in, shown := p.Stdin, "standard input"
	if name != "-" {
		f, err := os.Open(name) // #nosec G304 -- the operator names the file
		if err != nil {
			return simulate.Report{}, fmt.Errorf("recorded requests: %w", err)
		}
		defer f.Close()
		in, shown = f, name
	}
	if err := replayTraffic(ctx, traffic.NewReader(in), simulation); err != nil {
		if f, ok := fault.As(err); ok && f.Kind == fault.Invalid {
			return simulate.Report{}, fault.New(fault.Invalid, shown+": "+f.Message)
		}
		return simulate.Report{}, err
	}
	report := simulation.Report()
	if lost := before.Evicted() + after.Evicted(); lost > 0 { // before their windows ended
		// the result is there
		_, _ = fmt.Fprintf(p.Stderr,
			"warning: %d counters did not fit; the result is inexact, raise COUNTERS_IN_PROCESS_MAX\n", lost)
	}
	if report.KeysLost {
		// the result is there
		_, _ = fmt.Fprintln(p.Stderr,
			"warning: too many keys were refused; the list of keys is inexact, all other numbers are exact")
	}
	return report, nil
}

// replayTraffic simulates all requests of a recording.
func replayTraffic(ctx context.Context, r *traffic.Reader, s *simulate.Simulation) error {
	for ctx.Err() == nil {
		at, request, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := s.Decide(ctx, at, request); err != nil {
			return r.AtLine(err)
		}
	}
	return ctx.Err()
}

// printComparison prints a report as JSON or as tables. The tables leave out rules without calls;
// the last one has the new rules without any.
func printComparison(o *cli.Output, w io.Writer, r simulate.Report) error {
	json := traffic.NewComparison(r)
	if o.Structured() {
		return o.PrintResult(w, cli.Table{Value: json})
	}
	type total struct {
		Calls         uint64 `column:"CALLS"`
		Old           uint64 `column:"OLD REFUSED"`
		New           uint64 `column:"NEW REFUSED"`
		NewlyRefused  uint64 `column:"NEWLY REFUSED"`
		NewlyAdmitted uint64 `column:"NEWLY ADMITTED"`
	}
	type rule struct {
		Domain string `column:"DOMAIN"`
		Path   string `column:"RULE"`
		Calls  uint64 `column:"CALLS"`
		Old    uint64 `column:"OLD REFUSED"`
		New    uint64 `column:"NEW REFUSED"`
	}
	type key struct {
		Domain     string `column:"DOMAIN"`
		Descriptor string `column:"KEY"`
		OldRefused uint64 `column:"OLD REFUSED"`
		NewRefused uint64 `column:"NEW REFUSED"`
	}
	type unused struct {
		Domain string `column:"DOMAIN"`
		Path   string `column:"NEW RULE WITHOUT CALLS"`
	}
	var rules []rule
	for _, one := range json.Rules {
		if one.Calls > 0 {
			rules = append(rules, rule{
				one.Domain, strings.Join(one.Path, ", "), one.Calls, one.OldRefused, one.NewRefused,
			})
		}
	}
	keys := each.Map(json.Keys, func(one traffic.KeyRefused) key { return key(one) })
	without := each.Map(json.Unused, func(one traffic.UnusedRule) unused {
		return unused{one.Domain, strings.Join(one.Path, ", ")}
	})
	totals := []total{{r.Calls, r.OldRefused, r.NewRefused, r.NewlyRefused, r.NewlyAdmitted}}
	return printTables(w, cli.ListTable(totals), cli.ListTable(rules), cli.ListTable(keys), cli.ListTable(without))
}

// printTables prints those tables that have rows, with an empty line between them.
func printTables(w io.Writer, tables ...cli.Table) error {
	for i, t := range tables {
		if len(t.Rows) == 0 {
			continue
		}
		if i > 0 {
			if err := cli.PrintLine(w, ""); err != nil {
				return err
			}
		}
		if err := cli.PrintTable(w, t); err != nil {
			return err
		}
	}
	return nil
}
