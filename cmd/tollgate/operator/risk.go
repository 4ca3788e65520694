package operator

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/adapters/iplists"
	"github.com/tollgate-dev/tollgate/adapters/loginhistory"
	"github.com/tollgate-dev/tollgate/adapters/maxmind"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/core/auth/history"
	"github.com/tollgate-dev/tollgate/core/auth/learning"
	"github.com/tollgate-dev/tollgate/core/auth/replay"
	"github.com/tollgate-dev/tollgate/wiring/settings"
)

func newRisk(p cli.Process) *cobra.Command {
	return cli.NewGroup("risk", "Show how sign-ins are scored, and learn from recorded ones",
		newRiskReplay(p), newRiskSuggest(p), newRiskLearn(p))
}

func newRiskReplay(p cli.Process) *cobra.Command {
	var f replayFlags
	c := &cobra.Command{
		Use:   "replay EVENTS.jsonl",
		Short: "Score recorded sign-ins as the service would",
		Long: "Read sign-ins in the order in which they happened, one JSON object per line, and\n" +
			"write {\"id\",\"riskScore\",\"trustLevel\",\"factors\"} for each. The command uses the\n" +
			"code and the settings of the service (RISK_POLICY, HIGH_RISK_COUNTRIES,\n" +
			"DEVICE_BINDING) and the times of the events, and stores nothing. A - reads\n" +
			"standard input.\n\n" +
			"Required: id, ts (RFC 3339 or Unix seconds), userId or email, ip,\n" +
			"passwordCorrect. Optional: country, asn, lat, lon, userAgent, screenResolution,\n" +
			"timezone, language; ipReputation (clean, hosting, proxy, tor, listed);\n" +
			"stepUpPassed (step-up or second factor), deviceTrusted, deviceTokenShown (true\n" +
			"or false); label (legit, or the name of an attack). Other fields are ignored. A\n" +
			"missing country or reputation is looked up if GEOIP_CITY_DB or\n" +
			"IP_REPUTATION_LISTS is set, and adds no points otherwise.\n\n" +
			"A sign-in with a wrong password is scored like one with the right password, and\n" +
			"then counts as a failed attempt. Lockouts are not replayed.\n\n" +
			"With --scorer history or both each line also has the score of the points\n" +
			"(pointsScore), that of the history (historyScore; null if it is silent) and its\n" +
			"parts (historyParts). With --target-challenge the command writes, in place of\n" +
			"the scores, the bounds that challenge at most this share of the legitimate\n" +
			"sign-ins, the share of each label that they challenge, and that of the present\n" +
			"bounds.",
		Example: "  tollgate risk replay events.jsonl > scores.jsonl\n" +
			"  RISK_POLICY=stricter.yaml tollgate risk replay --output table events.jsonl\n" +
			"  tollgate risk replay --scorer both --target-challenge 0.05 events.jsonl",
	}
	o := cli.AddFormats(c, "output format: json (one line each) or table (with the reasons)", "json", "table")
	addAssumption(c, &f, replay.FirstDevice)
	c.Flags().StringVar(&f.scorer, "scorer", string(replay.Points),
		"score to write: points, history (how unusual the sign-in is for the person), or both (the higher one, as with RISK_HISTORY=on)")
	cli.CompleteValues(c, "scorer", string(replay.Points), string(replay.History), string(replay.Both))
	c.Flags().Float64Var(&f.target, "target-challenge", 0,
		"suggest bounds that challenge at most this share of the legitimate sign-ins, for example 0.05")
	c.RunE = func(c *cobra.Command, args []string) error {
		if c.Flags().Changed("target-challenge") && !(f.target > 0 && f.target < 1) {
			return fmt.Errorf("--target-challenge: %v is not between 0 and 1", f.target)
		}
		r, err := newReplayer(p, f)
		if err != nil {
			return err
		}
		if f.target > 0 {
			return suggestBounds(c.Context(), p, replayRun{args[0], r, o}, f.target)
		}
		return writeScores(c.Context(), p, replayRun{args[0], r, o})
	}
	return c
}

// addAssumption adds the flag --assume-step-up with its default.
func addAssumption(c *cobra.Command, f *replayFlags, usual replay.Assumption) {
	c.Flags().StringVar(&f.assumption, "assume-step-up", string(usual),
		"sessions that count as having passed a step-up if stepUpPassed is missing: first-device (the first of each person), none or all")
	cli.CompleteValues(c, "assume-step-up", string(replay.FirstDevice), string(replay.NoStepUp),
		string(replay.AllStepUps))
}

// replayFlags are the flags of a replay.
type replayFlags struct {
	assumption, scorer string
	target             float64 // 0 if it was not given
}

// newReplayer returns a replayer with the settings of the service.
func newReplayer(p cli.Process, f replayFlags) (*replay.Replayer, error) {
	stepUp, err := replay.ParseAssumption(f.assumption)
	if err != nil {
		return nil, fmt.Errorf("--assume-step-up: %s", cli.ErrorSentence(err))
	}
	scorer, err := replay.ParseScorer(f.scorer)
	if err != nil {
		return nil, fmt.Errorf("--scorer: %s", cli.ErrorSentence(err))
	}
	s, err := settings.Read(p.Environ)
	if err != nil {
		return nil, err
	}
	geography, err := maxmind.Open(s.Places)
	if err != nil {
		return nil, err
	}
	reputation, err := iplists.Open(s.IPLists)
	if err != nil {
		return nil, err
	}
	c := replay.Config{Assess: s.SignIn.Assess(), StepUp: stepUp, Scorer: scorer}
	return replay.New(c, geography, reputation), nil
}

// replayRun is the replay of a file.
type replayRun struct {
	file     string
	replayer *replay.Replayer
	output   *cli.Output
}

// each calls do with the verdict on each event. After a wrong line it has called do with the lines
// before.
func (run replayRun) each(ctx context.Context, p cli.Process, do func(loginhistory.Line) error) error {
	in := p.OpenStdin(ctx)
	if run.file != "-" {
		f, err := os.Open(run.file)
		if err != nil {
			return err
		}
		defer f.Close()
		in = f
	}
	err := loginhistory.ReplayLines(ctx, in, run.replayer, do)
	if errors.Is(err, context.Canceled) {
		return errors.New("interrupted")
	}
	return err
}

// writeScores writes the scores of the events.
func writeScores(ctx context.Context, p cli.Process, run replayRun) error {
	out := bufio.NewWriter(p.Stdout)
	write := loginhistory.NewLineWriter(out)
	if run.output.Format == "table" {
		write = scoreTable(out, cli.TerminalWidth(p.Stdout))
	}
	err := run.each(ctx, p, write)
	if flushed := out.Flush(); err == nil && flushed != nil {
		return fmt.Errorf("write output: %w", flushed)
	}
	return err
}

// scoreTable returns a function that prints a score as a row. The columns have a fixed width,
// because later rows are not known yet.
func scoreTable(w io.Writer, width int) func(loginhistory.Line) error {
	header := true
	put := func(id, score, level any, why string) error {
		columns := fmt.Sprintf("%-24s  %5v  %-13s  ", id, score, level)
		return cli.PrintLine(w, cli.HangText(columns, why, width))
	}
	return func(l loginhistory.Line) error {
		if header {
			if err := put("ID", "SCORE", "LEVEL", "WHY"); err != nil {
				return err
			}
			header = false
		}
		id := cli.ReplaceControls(strings.Trim(string(l.ID), `"`))
		return put(id, strconv.FormatFloat(l.RiskScore, 'f', -1, 64), l.Level,
			cli.ReplaceControls(strings.Join(listReasons(l), "; ")))
	}
}

// listReasons returns the reasons of the factors, and of the parts of the history, that add points.
func listReasons(l loginhistory.Line) []string {
	var list []string
	if l.History != nil {
		for _, part := range l.History.Parts {
			if part.Points >= .5 {
				list = append(list, fmt.Sprintf("%.0f: %s", part.Points, part.Reason()))
			}
		}
	}
	for factor, points := range l.Factors {
		if points > 0 {
			list = append(list, fmt.Sprintf("%d: %s", points, l.Reasons[factor]))
		}
	}
	return list
}

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
