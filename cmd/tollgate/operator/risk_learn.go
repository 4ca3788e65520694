package operator

import (
	"strconv"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/adapters/loginhistory"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/core/auth/learning"
	"github.com/tollgate-dev/tollgate/core/auth/replay"
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
	addAssumption(c, &f, replay.FirstDevice)
	var replayer *replay.Replayer
	c.PreRunE = func(*cobra.Command, []string) (err error) {
		replayer, err = newReplayer(p, f)
		return err
	}
	return newDatabaseTable(p, c, func(r run) (cli.Table, error) {
		err := replayRun{r.args[0], replayer, nil}.each(r.ctx, p, func(line loginhistory.Line) error {
			return r.Learner.Add(r.ctx, line.Who, line.Learnt, line.Event.At)
		})
		if err != nil {
			return cli.Table{}, err
		}
		s, err := r.Learner.Store(r.ctx)
		return summaryTable(s), err
	})
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
