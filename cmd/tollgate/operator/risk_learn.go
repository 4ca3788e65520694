package operator

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/adapters/loginhistory"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/core/auth/learning"
	"github.com/tollgate-dev/tollgate/core/auth/replay"
	"github.com/tollgate-dev/tollgate/wiring"
)

func newRiskLearn(p cli.Process) *cobra.Command {
	f := replayFlags{scorer: string(replay.Both)}
	c := &cobra.Command{
		Use:   "learn EVENTS.jsonl",
		Short: "Learn from recorded sign-ins what is usual for people",
		Long: "Fill the counts of the history score (RISK_HISTORY) from recorded sign-ins, in\n" +
			"the form that 'tollgate risk replay' reads. The command replays them and learns\n" +
			"from those from which the service would have learnt. A - reads standard input.\n\n" +
			"The person of a line is the one whose account has its userId, or else its email.\n" +
			"Sign-ins of people without an account are skipped and counted. A line that is\n" +
			"malformed or out of order ends the command with its number, and nothing is\n" +
			"learnt. What was learnt is added to what the service has learnt: run the command\n" +
			"once for a record, and not for sign-ins that the service itself has seen.",
		Example: "  tollgate risk learn events.jsonl\n" +
			"  tollgate risk learn --assume-step-up all --output json events.jsonl",
		Args: cobra.ExactArgs(1),
	}
	o := cli.AddOutput(c)
	addAssumption(c, &f)
	c.RunE = func(c *cobra.Command, args []string) error {
		r, err := newReplayer(p, f)
		if err != nil {
			return err
		}
		return withOperator(c, p, func(op *wiring.Operator) error {
			s, err := learnFile(c.Context(), p, replayRun{args[0], r, o}, op.Learner)
			if err != nil {
				return err
			}
			return o.PrintResult(p.Stdout, summaryTable(s))
		})
	}
	return c
}

// learnFile learns from the events of a file.
func learnFile(ctx context.Context, p cli.Process, run replayRun, l *learning.Learner) (learning.Summary, error) {
	err := run.each(ctx, p, func(line loginhistory.Line) error {
		return l.Add(ctx, line.Who, line.Learnt, line.Event.At)
	})
	if err != nil {
		return learning.Summary{}, err
	}
	return l.Store(ctx)
}

func summaryTable(s learning.Summary) cli.Table {
	type row struct {
		SignIns        int `json:"signIns"`
		People         int `json:"people"`
		UnknownSignIns int `json:"unknownSignIns"`
		UnknownPeople  int `json:"unknownPeople"`
	}
	return cli.Table{
		Header: []string{"", "SIGN-INS", "PEOPLE"},
		Rows: [][]string{
			{"learnt from", strconv.Itoa(s.SignIns), strconv.Itoa(s.People)},
			{"skipped, no account", strconv.Itoa(s.UnknownSignIns), strconv.Itoa(s.UnknownPeople)},
		},
		Value: row{s.SignIns, s.People, s.UnknownSignIns, s.UnknownPeople},
	}
}
