package operator

import (
	"context"
	"fmt"
	"strconv"

	"github.com/tollgate-dev/tollgate/adapters/loginhistory"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/core/auth/replay"
	"github.com/tollgate-dev/tollgate/wiring/settings"
)

// suggestBounds writes the bounds that challenge a share of the legitimate sign-ins of a file.
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
	return run.output.PrintResult(p.Stdout, suggestionTable(s))
}

// SuggestionJSON is a suggestion in the output.
type SuggestionJSON struct {
	Bounds     map[string]int `json:"bounds"` // by key of RISK_POLICY
	Legitimate OutcomeJSON    `json:"legitimate"`
	Attacks    []OutcomeJSON  `json:"attacks"`
	Present    OutcomeJSON    `json:"present"` // the legitimate sign-ins with the bounds of the service
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
		Present: newOutcomeJSON(s.Present),
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
