package limits_test

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/program"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

const simulate = "ratelimit simulate --old testdata/simulate/old --new testdata/simulate/new"

// TestCommands runs the commands of transcripts, which need no service and no database.
func TestCommands(t *testing.T) {
	fixture.RunTranscripts(t, "commands", func(t *testing.T, s *fixture.Transcript) *fixture.Place {
		p := fixture.NewPlace(t, s, &fixture.Environment{Dir: t.TempDir()})
		p.Words = append(p.Words, "SIMULATE", simulate)
		return p
	})
}

// generatedTraffic is a recording of many customers, about 2 ms after each other. Every third
// request has a second descriptor.
type generatedTraffic struct {
	calls, rest int // lines so far, and still to come
	line        []byte
}

// Read implements io.Reader.
func (g *generatedTraffic) Read(p []byte) (int, error) {
	for len(g.line) < len(p) && g.rest > 0 {
		g.calls, g.rest = g.calls+1, g.rest-1
		at := time.Date(2026, 1, 1, 0, 0, 0, g.calls%1000*1_000_000, time.UTC).
			Add(time.Duration(g.calls/1000*2) * time.Second)
		g.line = fmt.Appendf(g.line,
			`{"time":%q,"domain":"shop","descriptors":[{"entries":[{"key":"user","value":"user-%d"}]}`,
			at.Format(time.RFC3339Nano), g.calls*7919%10_000)
		if g.calls%3 == 0 {
			g.line = fmt.Appendf(g.line, `,{"entries":[{"key":"path","value":"/images/%d.png"}]}`, g.calls%1000)
		}
		g.line = append(g.line, `],"answer":"OK"}`+"\n"...)
	}
	n := copy(p, g.line)
	g.line = append(g.line[:0], g.line[n:]...)
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// BenchmarkSimulate measures the simulation of one request, with its line. A million lines must
// take less than ten seconds.
func BenchmarkSimulate(b *testing.B) {
	var stdout, stderr bytes.Buffer
	b.ReportAllocs()
	code := program.Run(b.Context(), cli.Process{
		Args:  strings.Fields(simulate + " -"),
		Stdin: &generatedTraffic{rest: b.N}, Stdout: &stdout, Stderr: &stderr,
	})
	if code != cli.ExitOK || !strings.Contains(stdout.String(), strconv.Itoa(b.N)) {
		b.Fatal(code, stderr.String())
	}
}
