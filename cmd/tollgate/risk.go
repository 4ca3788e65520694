package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/adapters/loginhistory"
	"github.com/tollgate-dev/tollgate/core/auth/replay"
	"github.com/tollgate-dev/tollgate/wiring"
)

func newRisk(p process) *cobra.Command {
	c := &cobra.Command{Use: "risk", Short: "Show how sign-ins are scored"}
	c.AddCommand(newRiskReplay(p))
	return c
}

func newRiskReplay(p process) *cobra.Command {
	var assumption string
	c := &cobra.Command{
		Use:   "replay EVENTS.jsonl",
		Short: "Score recorded sign-ins as the service would",
		Long: "Read sign-ins in the order in which they happened, one JSON object per line, and\n" +
			"write {\"id\",\"riskScore\",\"trustLevel\",\"factors\"} for each. The command uses the\n" +
			"code and the settings of the service (RISK_*, HIGH_RISK_COUNTRIES,\n" +
			"DEVICE_BINDING) and the times of the events, and stores nothing. A - reads\n" +
			"standard input.\n\n" +
			"Required: id, ts (RFC 3339 or Unix seconds), userId or email, ip,\n" +
			"passwordCorrect. Optional: country, asn, lat, lon, userAgent, screenResolution,\n" +
			"timezone, language; ipReputation (clean, hosting, proxy, tor, listed);\n" +
			"stepUpPassed (step-up or second factor), deviceTrusted, deviceTokenShown (true\n" +
			"or false). Other fields are ignored. A missing country or reputation is looked\n" +
			"up if GEOIP_CITY_DB or IP_REPUTATION_LISTS is set, and adds no points otherwise.\n\n" +
			"A sign-in with a wrong password is scored like one with the right password, and\n" +
			"then counts as a failed attempt. Lockouts are not replayed.",
		Example: "  tollgate risk replay events.jsonl > scores.jsonl\n" +
			"  RISK_OTHER_COUNTRY=30 tollgate risk replay --output table events.jsonl",
		Args: cobra.ExactArgs(1),
	}
	o := addFormats(c, "output format: json (one line each) or table (with the reasons)", "json", "table")
	c.Flags().StringVar(&assumption, "assume-step-up", string(replay.FirstDevice),
		"sessions that count as having passed a step-up if stepUpPassed is missing: first-device (the first of each person), none or all")
	completeValues(c, "assume-step-up", string(replay.FirstDevice), string(replay.NoStepUp), string(replay.AllStepUps))
	c.RunE = func(c *cobra.Command, args []string) error {
		stepUp, err := replay.ParseAssumption(assumption)
		if err != nil {
			return fmt.Errorf("--assume-step-up: %s", errorSentence(err))
		}
		s, err := readSettings(p)
		if err != nil {
			return err
		}
		r, err := wiring.NewReplayer(s, stepUp)
		if err != nil {
			return err
		}
		return replayFile(c.Context(), p, args[0], r, o)
	}
	return c
}

// replayFile scores the events of a file. After a wrong line it still writes the scores of the
// lines before.
func replayFile(ctx context.Context, p process, name string, r *replay.Replayer, o *output) error {
	in := p.openStdin(ctx)
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		in = f
	}
	out := bufio.NewWriter(p.stdout)
	write := loginhistory.NewLineWriter(out)
	if o.format == "table" {
		write = scoreTable(out, terminalWidth(p.stdout))
	}
	err := loginhistory.ReplayLines(ctx, in, r, write)
	if errors.Is(err, context.Canceled) {
		err = errors.New("interrupted")
	}
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
		if _, err := io.WriteString(w, hangText(columns, why, width)+"\n"); err != nil {
			return fmt.Errorf("write output: %w", err)
		}
		return nil
	}
	return func(l loginhistory.Line) error {
		if header {
			if err := put("ID", "SCORE", "LEVEL", "WHY"); err != nil {
				return err
			}
			header = false
		}
		id := replaceControls(strings.Trim(string(l.ID), `"`))
		return put(id, l.Score, l.Level, replaceControls(strings.Join(listReasons(l), "; ")))
	}
}

// listReasons returns the reasons of the factors that add points.
func listReasons(l loginhistory.Line) []string {
	var list []string
	f, r := l.Factors, l.Reasons
	for _, factor := range []struct {
		points int
		reason string
	}{
		{f.DeviceFamiliarity, r.DeviceFamiliarity}, {f.GeographicAnomaly, r.GeographicAnomaly}, {f.IPReputation, r.IPReputation},
		{f.LoginVelocity, r.LoginVelocity}, {f.FailedAttempts, r.FailedAttempts},
	} {
		if factor.points > 0 {
			list = append(list, fmt.Sprintf("%d: %s", factor.points, factor.reason))
		}
	}
	return list
}
