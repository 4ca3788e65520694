package ratelimit

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

// recordedRules have units of a year, so that no window turns during a test.
const recordedRules = `domain: shop
descriptors:
  - key: user
    rate_limit: {unit: year, requests_per_unit: %d}
  - key: path
    rate_limit: {unit: year, requests_per_unit: 100000, algorithm: sliding_window}
`

// recordedLine is a line of a recording.
type recordedLine struct {
	Time        time.Time
	Domain      string
	Descriptors []struct{ Entries []struct{ Key, Value string } }
	HitsAddend  int
	Answer      string
}

func readRecording(t *testing.T, path string) (lines []recordedLine) {
	t.Helper()
	content, err := os.ReadFile(path)
	must.Succeed(t, err)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the recording has the mode %v, %v", info.Mode(), err)
	}
	for text := range strings.Lines(string(content)) {
		var line recordedLine
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		lines = append(lines, line)
	}
	return lines
}

// comparison is the JSON of a simulation.
type comparison struct {
	Calls                       int
	Old, New                    struct{ Refused int }
	NewlyRefused, NewlyAdmitted int
	Rules                       []struct {
		Domain                        string
		Path                          []string
		Calls, OldRefused, NewRefused int
	}
	Unused []struct {
		Domain string
		Path   []string
	}
	Keys []struct {
		Domain, Descriptor     string
		OldRefused, NewRefused int
	}
}

// callAsMany sends requests of many callers at once, over both transports, and returns how many
// were refused.
func callAsMany(t *testing.T, s *fixture.Service, callers, calls int) int {
	t.Helper()
	client := s.NewRateLimitClient(t)
	var refused atomic.Int64
	var all sync.WaitGroup
	for caller := range callers {
		all.Go(func() {
			for i := range calls {
				user := strconv.Itoa((caller + i) % 20)
				if i%4 == 0 {
					body := `{"domain":"shop","descriptors":[{"entries":[{"key":"user","value":"` + user + `"}]}]}`
					answer, err := apiclient.TryCall("POST", s.RateLimitAPI+"/json", body)
					if err != nil {
						t.Error(err)
						return
					}
					if answer.Status == http.StatusTooManyRequests {
						refused.Add(1)
					}
					continue
				}
				r := fixture.NewRateLimitRequest("shop", "user", user)
				r.Descriptors = append(r.Descriptors,
					fixture.NewRateLimitRequest("shop", "path", "/"+user).GetDescriptors()...)
				answer, err := client.ShouldRateLimit(t.Context(), r)
				if err != nil {
					t.Error(err)
					return
				}
				if answer.GetOverallCode() == ratelimit.RateLimitResponse_OVER_LIMIT {
					refused.Add(1)
				}
			}
		})
	}
	all.Wait()
	return int(refused.Load())
}

// TestRecordAndSimulate checks that what a service records under load from many callers can be
// simulated: the same rules refuse as many as the service did, and a lower limit refuses more.
func TestRecordAndSimulate(t *testing.T) {
	t.Parallel()
	const callers, calls = 16, 100
	e := newRulesEnvironment(t, fmt.Sprintf(recordedRules, 30))
	recording := filepath.Join(e.Dir, "traffic.jsonl")
	s := e.Start(t, "RATELIMIT_RECORD="+recording, "RATELIMIT_RECORD_SAMPLE=1")
	refused := callAsMany(t, s, callers, calls)
	apiclient.Call(t, "POST", s.RateLimitAPI+"/json", `{"domain":"","descriptors":[{}]}`).WantStatus(t,
		http.StatusBadRequest)
	s.Stop()
	lines := readRecording(t, recording)
	over := 0
	for _, line := range lines {
		if line.Answer == "OVER_LIMIT" {
			over++
		}
	}
	if len(lines) != callers*calls || over != refused || refused == 0 {
		t.Fatalf("%d of %d requests are recorded, %d of %d as refused", len(lines), callers*calls, over, refused)
	}

	tighter := filepath.Join(e.Dir, "tighter")
	must.Succeed(t, os.Mkdir(tighter, 0o700))
	fixture.WriteFile(t, filepath.Join(tighter, "rules.yaml"), fmt.Sprintf(recordedRules, 10))
	var same, changed comparison
	fixture.DecodeJSON(t,
		e.RunCommand(t, "", "ratelimit", "simulate", "--old", e.RulesDir, "--new", e.RulesDir, "--max-new-refusals",
			"0", "--output", "json", recording), &same)
	if same.Calls != callers*calls || same.Old.Refused != refused || same.New.Refused != refused ||
		same.NewlyRefused+same.NewlyAdmitted != 0 || len(same.Keys) != 0 {
		t.Errorf("the same rules: %+v, but the service refused %d", same, refused)
	}
	stdout, stderr, code := e.TryCommand(t, "", "ratelimit", "simulate", "--old", e.RulesDir, "--new", tighter,
		"--max-new-refusals", "0", "--output", "json", recording)
	fixture.DecodeJSON(t, stdout, &changed)
	if code != 2 || !strings.Contains(stderr, "--max-new-refusals") || changed.NewlyRefused != 20*20 ||
		changed.NewlyAdmitted != 0 || len(changed.Keys) != 20 {
		t.Errorf("tighter rules: code %d, %s %+v", code, stderr, changed)
	}
	if len(changed.Rules) != 2 || changed.Rules[0].Calls != callers*calls ||
		changed.Rules[0].NewRefused-changed.Rules[0].OldRefused != 400 || changed.Rules[1].NewRefused != 0 {
		t.Errorf("by rule: %+v", changed.Rules)
	}
}

// TestRecordedKeys checks the sample, the hash of values and the metric: each key is recorded as a
// whole or not at all, and its hash is the same after a restart, of the service with its database
// and of the rate limit service alone with SECRET_KEY.
func TestRecordedKeys(t *testing.T) {
	t.Parallel()
	for command, secret := range map[string]string{"serve": "", "ratelimit": strings.Repeat("k", 32)} {
		t.Run(command, func(t *testing.T) {
			e := newRulesEnvironment(t, fmt.Sprintf(recordedRules, 1000))
			e.Command = command
			recording := filepath.Join(e.Dir, "traffic.jsonl")
			settings := []string{
				"RATELIMIT_RECORD=" + recording, "RATELIMIT_RECORD_SAMPLE=0.5", "RATELIMIT_RECORD_HASH=true",
				"SECRET_KEY=" + secret,
			}
			for range 2 {
				s := e.Start(t, settings...)
				client := s.NewRateLimitClient(t)
				for range 3 {
					for user := range 40 {
						fixture.WantOverallCode(t, client,
							fixture.NewRateLimitRequest("shop", "user", "person-"+strconv.Itoa(user)),
							ratelimit.RateLimitResponse_OK)
					}
				}
				if n := s.Metric("tollgate_ratelimit_recorded_total", "outcome", "queue_full"); n != 0 {
					t.Errorf("%v are dropped", n)
				}
				s.Stop()
			}
			found := map[string]int{}
			for _, line := range readRecording(t, recording) {
				found[line.Descriptors[0].Entries[0].Value]++
			}
			for value, n := range found {
				if len(value) != 16 || n != 6 {
					t.Errorf("%q is recorded %d times, want 16 digits, and 6 times", value, n)
				}
			}
			if len(found) < 5 || len(found) > 35 {
				t.Errorf("%d keys of 40 are in a sample of 0.5", len(found))
			}
		})
	}
}

// TestRecordSettings checks that a service with wrong settings of a recording does not start, and
// says why.
func TestRecordSettings(t *testing.T) {
	t.Parallel()
	e := newRulesEnvironment(t, fmt.Sprintf(recordedRules, 10))
	environ := e.Environ
	for setting, want := range map[string]string{
		"RATELIMIT_RECORD=/missing/traffic.jsonl": "RATELIMIT_RECORD: open",
		"RATELIMIT_RECORD_SAMPLE=0":               "RATELIMIT_RECORD_SAMPLE: 0 is not more than 0 and at most 1",
		"RATELIMIT_RECORD_HASH=true":              "RATELIMIT_RECORD_HASH: set SECRET_KEY",
	} {
		e.Environ = append(append([]string{"RATELIMIT_RECORD=" + filepath.Join(e.Dir, "traffic.jsonl")},
			environ...), setting)
		if _, stderr, code := e.TryCommand(t, "", "ratelimit"); code != 1 || !strings.Contains(stderr, want) {
			t.Errorf("%s: code %d, %s", setting, code, stderr)
		}
	}
}
