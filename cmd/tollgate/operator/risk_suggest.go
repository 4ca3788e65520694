package operator

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/adapters/loginhistory"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/core/auth/history"
	"github.com/tollgate-dev/tollgate/core/auth/replay"
	"github.com/tollgate-dev/tollgate/wiring/settings"
)

func newRiskSuggest(p cli.Process) *cobra.Command {
	f := replayFlags{scorer: string(replay.Both), target: acceptable}
	c := &cobra.Command{
		Use:   "suggest EVENTS.jsonl",
		Short: "Say whether RISK_HISTORY may be on, and suggest bounds",
		Long: "Replay recorded sign-ins as 'tollgate risk replay --scorer both\n" +
			"--target-challenge 0.05' does, and say whether the bounds of the service\n" +
			"challenge at most 5 % of the legitimate ones. People count as having passed the\n" +
			"codes that the service asks for. A - reads standard input.",
		Example: "  tollgate risk suggest events.jsonl",
		Args:    cobra.ExactArgs(1),
	}
	o := cli.AddFormats(c, "output format: table or json", "table", "json")
	addAssumption(c, &f, replay.AllStepUps)
	c.RunE = func(c *cobra.Command, args []string) error {
		r, err := newReplayer(p, f)
		if err != nil {
			return err
		}
		return suggestBounds(c.Context(), p, replayRun{args[0], r, o}, f.target)
	}
	return c
}

// acceptable is the share of the legitimate sign-ins that the bounds of the service may challenge.
const acceptable = .05

// suggestBounds writes the bounds that challenge a share of the legitimate sign-ins of a file, and
// whether the history may decide.
func suggestBounds(ctx context.Context, p cli.Process, run replayRun, target float64) error {
	c := run.replayer.Calibration()
	err := run.each(ctx, p, func(l loginhistory.Line) error {
		if l.Event.PasswordCorrect {
			c.Add(&l.Verdict, l.Label)
		}
		return nil
	})
	if err != nil {
		return err
	}
	s, err := c.Suggest(target)
	if err != nil {
		return fmt.Errorf("%s", cli.ErrorSentence(err))
	}
	t, advice := suggestionTable(s), advise(s)
	if err := run.output.PrintResult(p.Stdout, t); err != nil || advice == "" || run.output.Format != "table" {
		return err
	}
	return cli.PrintLine(p.Stdout, "\n"+cli.HangText("", advice, cli.TerminalWidth(p.Stdout)))
}

// advise returns in words whether RISK_HISTORY may be on, or an empty text if the bounds are not
// those of the history.
func advise(s replay.Suggestion) string {
	switch {
	case !s.OfHistory:
		return ""
	case s.Silent:
		return fmt.Sprintf("The history is silent about all of these sign-ins: it begins after %d, and RISK_HISTORY may be on.",
			history.MinInstallation)
	}
	present, suggested := newOutcomeJSON(s.Present).Challenged, newOutcomeJSON(s.Legitimate).Challenged
	text := "With RISK_HISTORY=on the present bounds challenge " + formatShare(present) + " of these sign-ins: "
	switch {
	case present <= acceptable:
		text += "leave it on."
	case suggested <= acceptable:
		text += "write the suggested ones to the file of RISK_POLICY, or set RISK_HISTORY=shadow."
	default:
		text += "raise those of the points too, or set RISK_HISTORY=shadow."
	}
	return text + fmt.Sprintf(" Devices that were not confirmed, with %s of the sign-ins, are challenged at any score.",
		formatShare(float64(s.Unconfirmed)/float64(max(s.Legitimate.SignIns, 1))))
}

// SuggestionJSON is a suggestion in the output.
type SuggestionJSON struct {
	Bounds     map[string]int `json:"bounds"` // by key of RISK_POLICY
	Legitimate OutcomeJSON    `json:"legitimate"`
	Attacks    []OutcomeJSON  `json:"attacks"`
	Present    OutcomeJSON    `json:"present"` // the legitimate sign-ins with the bounds of the service
	Advice     string         `json:"advice,omitempty"`
}

// OutcomeJSON is what the bounds do to the sign-ins of a label, in shares of them.
type OutcomeJSON struct {
	Label      string  `json:"label"`
	SignIns    int     `json:"signIns"`
	Challenged float64 `json:"challenged"`
	Unverified float64 `json:"unverifiedOrLower"`
	HighRisk   float64 `json:"highRisk"`
}

func newOutcomeJSON(o replay.Outcome) OutcomeJSON {
	share := func(n int) float64 { return float64(n) / float64(max(o.SignIns, 1)) }
	return OutcomeJSON{o.Label, o.SignIns, share(o.Challenged), share(o.Unverified), share(o.HighRisk)}
}

// suggestionTable returns the suggestion as a table: first the bounds, then what they do.
func suggestionTable(s replay.Suggestion) cli.Table {
	group := settings.TrustLevels
	if s.OfHistory {
		group = settings.HistoryTrustLevels
	}
	j := SuggestionJSON{
		Bounds: map[string]int{
			group + ".FULL_TRUST": s.Bounds.Full, group + ".LIMITED_TRUST": s.Bounds.Limited,
			group + ".UNVERIFIED": s.Bounds.Unverified,
		},
		Legitimate: newOutcomeJSON(s.Legitimate), Attacks: []OutcomeJSON{},
		Present: newOutcomeJSON(s.Present), Advice: advise(s),
	}
	t := cli.Table{
		Header: []string{"SIGN-INS", "NUMBER", "ABOVE FULL_TRUST", "ABOVE LIMITED_TRUST", "ABOVE UNVERIFIED"},
	}
	t.Rows = append(t.Rows, []string{
		"bounds", "", strconv.Itoa(s.Bounds.Full), strconv.Itoa(s.Bounds.Limited), strconv.Itoa(s.Bounds.Unverified),
	})
	outcomes := []OutcomeJSON{j.Legitimate}
	for _, o := range s.Attacks {
		j.Attacks = append(j.Attacks, newOutcomeJSON(o))
		outcomes = append(outcomes, newOutcomeJSON(o))
	}
	for _, o := range outcomes {
		t.Rows = append(t.Rows, outcomeRow(o))
	}
	t.Value = j
	present := j.Present
	present.Label = "legit, present bounds"
	t.Rows = append(t.Rows, outcomeRow(present))
	return t
}

func outcomeRow(o OutcomeJSON) []string {
	return []string{
		o.Label, strconv.Itoa(o.SignIns), formatShare(o.Challenged), formatShare(o.Unverified), formatShare(o.HighRisk),
	}
}

// formatShare formats a share in percent.
func formatShare(share float64) string { return strconv.FormatFloat(share*100, 'f', 1, 64) + " %" }
