package main

import (
	"fmt"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/must"
)

// TestMeasures checks the measures of scores that can be counted by hand.
func TestMeasures(t *testing.T) {
	c := classes{"legit": {0, 1, 1, 2, 3}, "thief": {1, 2, 3, 4}}
	// The pairs in which the attack is higher: 1+2/2, 3+1/2, 4+1/2, 5, of 20.
	if got := c.areaUnderCurve("thief"); math.Abs(got-15./20) > 1e-9 {
		t.Errorf("area %v", got)
	}
	for share, want := range map[float64]float64{1: .8, .75: .4, .5: .2, .25: 0} {
		if got := c.challenged("thief", share); math.Abs(got-want) > 1e-9 {
			t.Errorf("%v caught: %v challenged, want %v", share, got, want)
		}
	}
}

func writeFile(t *testing.T, name, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	must.Succeed(t, os.WriteFile(file, []byte(content), 0o600))
	return file
}

// TestRun checks which logins count, the tables, and that the plot is a PNG.
func TestRun(t *testing.T) {
	var events, lines strings.Builder
	for n := range 40 {
		label := []string{"legit", "legit", "legit", "thief"}[n%4]
		fmt.Fprintf(&events, `{"id":"%d","userId":"u%d","passwordCorrect":%t,"label":%q}`+"\n", n, n%5, n%7 != 0, label)
		fmt.Fprintf(&lines,
			`{"id":"%d","riskScore":%d,"historyParts":[{"feature":"address","points":%d},{"feature":"device","points":-4}]}`+"\n", n, n%4*30, n%4*10)
	}
	e, s := writeFile(t, "e.jsonl", events.String()), writeFile(t, "s.jsonl", lines.String())
	streams, err := readStreams([]string{e}, 1)
	must.Succeed(t, err)
	one, err := readScores(s)
	must.Succeed(t, err)
	if len(streams[0]) != 28 {
		t.Errorf("%d logins count", len(streams[0]))
	}
	var out strings.Builder
	all := []scorer{{"mine", []scores{one}}}
	printTable(&out, streams, all)
	printAblation(&out, streams, all)
	for _, line := range []string{
		"| mine | 1.0000 ± 0.0000 / 0.000 ± 0.000 |", "|---|---|", "| nothing | 1.0000 / 0.000 |",
		"| address | 0.5000 / 1.000 |", "| device | 1.0000 / 0.000 |",
	} {
		if !strings.Contains(out.String(), line+"\n") {
			t.Errorf("%s is missing in\n%s", line, &out)
		}
	}
	file := filepath.Join(t.TempDir(), "plot.png")
	must.Succeed(t, run([]string{"-events", e, "-plot", file, "mine=" + s}))
	f, err := os.Open(file)
	must.Succeed(t, err)
	defer f.Close()
	if p, err := png.Decode(f); err != nil || p.Bounds().Dx() < 500 {
		t.Errorf("the plot: %v", err)
	}
	for _, args := range [][]string{
		{}, {"-events", e}, {"-events", e, "mine=" + s + "," + s}, {"-events", e + "," + e, "mine=" + s}, {
			"-events", e, "mine=none",
		},
	} {
		if run(args) == nil {
			t.Errorf("%q: no error", args)
		}
	}
}
