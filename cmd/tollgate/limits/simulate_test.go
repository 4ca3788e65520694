package program

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
)

// simulated is the folder of two directories of rules, recorded requests, and the output about
// them.
const simulated = "testdata/simulate"

// simulateCommand runs the command for the directories in the folder.
func simulateCommand(t *testing.T, environ []string, stdin string, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := Run(t.Context(), cli.Process{
		Args: append([]string{
			"ratelimit", "simulate", "--old", simulated + "/old", "--new", simulated + "/new",
		}, args...),
		Environ: environ, Stdin: strings.NewReader(stdin), Stdout: &stdout, Stderr: &stderr,
	})
	return result{code, stdout.String(), stderr.String()}
}

// TestSimulateOutput compares both forms of the output with files, for a recording in a file and
// from standard input.
func TestSimulateOutput(t *testing.T) {
	traffic := filepath.Join(simulated, "traffic.jsonl")
	content, err := os.ReadFile(traffic)
	if err != nil {
		t.Fatal(err)
	}
	for format, golden := range map[string]string{"table": "output.txt", "json": "output.json"} {
		golden = filepath.Join(simulated, golden)
		r := simulateCommand(t, nil, "", "--output", format, traffic)
		if *update {
			if err := os.WriteFile(golden, []byte(r.stdout), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if r.code != cli.ExitOK || r.stderr != "" || r.stdout != string(want) {
			t.Errorf("%s: code %d, %q, got\n%s\nwant\n%s", format, r.code, r.stderr, r.stdout, want)
		}
		if piped := simulateCommand(t, nil, string(content), "--output", format, "-"); piped != r {
			t.Errorf("%s: standard input gives %+v, the file %+v", format, piped, r)
		}
	}
}

// newlyRefused is the number of requests that only the new rules refuse.
const newlyRefused = "3"

func TestSimulateExitCodes(t *testing.T) {
	const line = `{"time":"2026-01-01T00:00:00Z","domain":"shop","descriptors":[{"entries":[]}]}` + "\n"
	traffic := filepath.Join(simulated, "traffic.jsonl")
	wrong := t.TempDir()
	if err := os.WriteFile(wrong+"/rules.yaml", []byte("domain: shop\ndescriptors: [{value: x}]\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		environ []string
		stdin   string
		args    []string
		code    int
		stderr  string // a part of it
	}{
		"no requests":        {nil, "", []string{"-"}, cli.ExitOK, ""},
		"as many as allowed": {nil, "", []string{"--max-new-refusals", newlyRefused, traffic}, cli.ExitOK, ""},
		"more than allowed": {
			nil, "", []string{"--max-new-refusals", "2", traffic}, cli.ExitLimit,
			"tollgate: the new rules refuse too many requests: 3, and --max-new-refusals is 2\n",
		},
		"none allowed": {
			nil, "", []string{"--max-new-refusals=0", "--output=json", traffic}, cli.ExitLimit, "too many",
		},
		"malformed": {
			nil, line + line + "{\n", []string{"-"}, cli.ExitFailed,
			"tollgate: standard input: line 3: a name must be a text\n",
		},
		"half a line": {nil, line + line[:20], []string{"-"}, cli.ExitFailed, "line 2: time is not closed"},
		"an empty line": {
			nil, line + "\n" + line, []string{"-"}, cli.ExitFailed, "line 2: it must be an object",
		},
		"out of order": {
			nil, line + strings.Replace(line, "2026", "2025", 1), []string{"-"}, cli.ExitFailed,
			"line 2: the time 2025-01-01T00:00:00Z is before that of the request before, 2026-01-01T00:00:00Z",
		},
		"a missing file": {
			nil, "", []string{wrong + "/missing.jsonl"}, cli.ExitFailed, "missing.jsonl: no such file",
		},
		"a folder": {nil, "", []string{wrong}, cli.ExitFailed, "is a directory"},
		"wrong old rules": {
			nil, "", []string{"--old", wrong, traffic}, cli.ExitFailed, "rules.yaml:2:15: key must not be empty",
		},
		"wrong new rules": {
			nil, "", []string{"--new", wrong, traffic}, cli.ExitFailed, "rules.yaml:2:15: key must not be empty",
		},
		"no rules": {nil, "", []string{"--new", t.TempDir(), traffic}, cli.ExitFailed, ""},
		"a negative number": {
			nil, "", []string{"--max-new-refusals", "-1", traffic}, cli.ExitFailed,
			`--max-new-refusals: "-1" is not a whole number`,
		},
		"an unknown format": {
			nil, "", []string{"--output", "xml", traffic}, cli.ExitFailed, "--output: unknown format",
		},
		"no recording": {nil, "", nil, cli.ExitFailed, "wrong number of arguments (0)"},
		"two recordings": {
			nil, "", []string{traffic, traffic}, cli.ExitFailed, "wrong number of arguments (2)",
		},
		"a wrong setting": {
			[]string{"COUNTERS_IN_PROCESS_MAX=0"}, "", []string{traffic}, cli.ExitFailed, "COUNTERS_IN_PROCESS_MAX",
		},
		"a setting of others": {
			[]string{"GRPC_PORT=99999", "SECRET_KEY=short", "RATELIMIT_RECORD_SAMPLE=7"}, "", []string{traffic},
			cli.ExitOK, "",
		},
		"too many counters": {
			[]string{"COUNTERS_IN_PROCESS_MAX=1"}, "", []string{traffic}, cli.ExitOK, "warning: ",
		},
		"a setting of the rules": {
			[]string{"MERGE_DOMAIN_CONFIG=maybe"}, "", []string{traffic}, cli.ExitFailed, "MERGE_DOMAIN_CONFIG",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := simulateCommand(t, test.environ, test.stdin, test.args...)
			if r.code != test.code || !strings.Contains(r.stderr, test.stderr) ||
				(r.code == cli.ExitFailed) != (r.stdout == "") {
				t.Errorf("got %+v", r)
			}
		})
	}
	if r := runCommand(t, t.TempDir(), "", "ratelimit", "simulate", traffic); r.code != cli.ExitFailed ||
		!strings.Contains(r.stderr, "--new and --old are missing") {
		t.Errorf("without directories: %+v", r)
	}
}

// TestSimulateStopsWhenOver: the settings that change what is counted apply.
func TestSimulateStopsWhenOver(t *testing.T) {
	request := `{"time":"2026-01-01T00:00:00Z","domain":"shop","descriptors":[{"entries":[{"key":"user","value":"a"}]},{"entries":[{"key":"contract","value":"c"}],"hitsAddend":30}]}` + "\n"
	last := `{"time":"2026-01-01T00:00:00Z","domain":"shop","descriptors":[{"entries":[{"key":"contract","value":"c"}]}]}` + "\n"
	for _, test := range []struct{ environ, want string }{
		{"STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT=false", "3"}, {"STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT=true", "2"},
	} {
		r := simulateCommand(t, []string{test.environ}, strings.Repeat(request, 4)+last, "-")
		if fields := strings.Fields(r.stdout); r.code != cli.ExitOK || len(fields) < 14 || fields[11] != test.want {
			t.Errorf("%s: %+v", test.environ, r)
		}
	}
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
	code := Run(b.Context(), cli.Process{
		Args:  []string{"ratelimit", "simulate", "--old", simulated + "/old", "--new", simulated + "/new", "-"},
		Stdin: &generatedTraffic{rest: b.N}, Stdout: &stdout, Stderr: &stderr,
	})
	if code != cli.ExitOK || !strings.Contains(stdout.String(), strconv.Itoa(b.N)) {
		b.Fatal(code, stderr.String())
	}
}
