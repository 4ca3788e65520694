package authentication

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

// historyEvaluation is the detail "history" of a risk evaluation.
type historyEvaluation struct {
	Mode, Silent       string
	Score, PointsScore int
	Parts              []struct {
		Feature, Value, Reason string
		Points                 float64
	}
}

// readHistory reads the last risk evaluation of a person as an operator: its score and what it says
// about the history, which is nil if it was off.
func readHistory(
	t *testing.T, p *fixture.Person, e *fixture.Environment,
) (score int, unanswered []string, h *historyEvaluation) {
	t.Helper()
	var found []struct {
		Details struct {
			RiskScore  int
			Unanswered []string
			History    *historyEvaluation
		}
	}
	e.ReadCommand(t, &found, "audit", "search", "--email", p.Email, "--type", "RISK_EVALUATION", "--limit", "1")
	d := found[0].Details
	return d.RiskScore, d.Unanswered, d.History
}

// recordedSignIn is a line of a record that has passed a step-up, from a person's usual device.
func recordedSignIn(p *fixture.Person, at time.Time) string {
	line := map[string]any{
		"id": 1, "ts": at.Format(time.RFC3339), "email": p.Email, "ip": "127.0.0.1", "passwordCorrect": true,
		"stepUpPassed": true,
	}
	for name, value := range p.Device {
		line[name] = value
	}
	text, _ := json.Marshal(line) // it has texts and numbers only
	return string(text) + "\n"
}

// learnRecord learns from a number of sign-ins of a person, seven hours apart, the last one seven
// hours ago.
func learnRecord(t *testing.T, e *fixture.Environment, p *fixture.Person, signIns int) {
	t.Helper()
	var record bytes.Buffer
	for n := signIns; n > 0; n-- {
		record.WriteString(recordedSignIn(p, time.Now().Add(-time.Duration(n)*7*time.Hour)))
	}
	file := filepath.Join(e.Dir, "record.jsonl")
	fixture.WriteFile(t, file, record.String())
	var learnt struct{ SignIns, People, UnknownSignIns int }
	e.ReadCommand(t, &learnt, "risk", "learn", file)
	if learnt.SignIns != signIns || learnt.People != 1 || learnt.UnknownSignIns != 0 {
		t.Fatalf("learnt from %+v, want %d sign-ins", learnt, signIns)
	}
}

// strangeDevice is a device that no one has used.
var strangeDevice = map[string]string{
	"userAgent":        "Mozilla/5.0 (Windows NT 6.1; rv:60.0) Gecko/20100101 Firefox/60.0",
	"screenResolution": "800x600", "timezone": "Asia/Tokyo", "language": "ja-JP",
}

// historySettings keep the session on a strange device at UNVERIFIED whatever its score, so that it
// can read its own audit log.
var historySettings = []string{"AUTH_RATE_LIMIT=10000", fixture.RiskPolicy("history")}

// TestHistoryModes signs in from a strange device in each mode.
func TestHistoryModes(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		e.WantAuditEvents(t)
		ada := e.NewPerson(t, "ada@example.com")
		learnRecord(t, e, ada, 505)
		thief := &fixture.Person{Email: ada.Email, Device: strangeDevice}
		var s *fixture.Service
		for _, mode := range []string{"off", "shadow", "on"} {
			if s != nil {
				s.Stop()
			}
			s = e.Start(t, append([]string{"RISK_HISTORY=" + mode}, historySettings...)...)
			thief.Login(t, s)
			score, _, h := readHistory(t, thief, e)
			if (h == nil) != (mode == "off") || mode != "on" && score != 30 {
				t.Fatalf("%s: the score is %d, the history says %+v", mode, score, h)
			}
			if h == nil {
				continue
			}
			if h.Mode != mode || h.Silent != "" || h.PointsScore != 30 || h.Score <= 30 || len(h.Parts) == 0 ||
				mode == "on" && score != h.Score {
				t.Errorf("%s: the score is %d, the history says %+v", mode, score, h)
			}
			for _, p := range h.Parts {
				if p.Feature == "" || !strings.Contains(p.Reason, ": ") {
					t.Errorf("%s: the part %+v has no reason", mode, p)
				}
			}
			scores := s.ReadMetrics("tollgate_login_score")["tollgate_login_score"].GetMetric()
			if len(scores) != 2 {
				t.Errorf("%s: %d histograms of scores, want those of points and history", mode, len(scores))
			}
			for _, m := range scores {
				if n := m.GetHistogram().GetSampleCount(); n != 1 {
					t.Errorf("%s: %d scores are counted, want one: %v", mode, n, m.GetLabel())
				}
			}
		}
	})
}

// TestThiefLearnsNoHabits signs in with a stolen password from devices that have more and more in
// common with the owner's. What the thief can read is the same for each (contract A-63); the owner,
// after a code, and operators read everything.
func TestThiefLearnsNoHabits(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := e.Start(t, append([]string{"RISK_HISTORY=on"}, historySettings...)...)
		ada := e.NewPerson(t, "ada@example.com")
		learnRecord(t, e, ada, 505)
		thief := &fixture.Person{Email: ada.Email, Device: maps.Clone(strangeDevice)}
		scores := map[int]bool{}
		var first map[string]any
		for _, feature := range []string{"", "language", "timezone", "screenResolution"} {
			if feature != "" {
				thief.Device[feature] = ada.Device[feature]
			}
			thief.Login(t, s)
			log := thief.ReadAuditLog(t, s, "eventType=RISK_EVALUATION&limit=1").Logs
			details := log[0].Details
			delete(details, "sessionId")
			if first == nil {
				first = details
			}
			if !reflect.DeepEqual(details, first) || details["history"] != nil || details["reasons"] != nil ||
				details["factors"] == nil {
				t.Errorf("with the owner's %s a thief reads %v, before %v", feature, details, first)
			}
			_, _, h := readHistory(t, ada, e)
			scores[h.Score] = true
		}
		if len(scores) < 3 {
			t.Errorf("the history has the scores %v: the devices are not different enough for this test", scores)
		}
		thief.StepUp(t, e, s) // as the owner could
		if log := thief.ReadAuditLog(t, s,
			"eventType=RISK_EVALUATION&limit=1").Logs; log[0].Details["history"] == nil ||
			log[0].Details["reasons"] == nil {
			t.Errorf("at FULL_TRUST the event has %v", log[0].Details)
		}
	})
}

// TestBrokenCounts renames a table of the counts: people still sign in and step up.
func TestBrokenCounts(t *testing.T) {
	e := fixture.NewProduction(t)
	s := e.Start(t, "RISK_HISTORY=on")
	ada := e.NewPerson(t, "ada@example.com")
	ada.Login(t, s)
	db := e.OpenDatabase(t)
	for _, statement := range []string{
		"ALTER TABLE history_counts RENAME TO away", "ALTER TABLE history_deferred RENAME TO away_too",
	} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	ada.StepUp(t, e, s)
	ada.Login(t, s)
	if score, unanswered, h := readHistory(t, ada,
		e); score != 15 || len(unanswered) != 1 || unanswered[0] != "history" || h.Silent != "unread" {
		t.Errorf("the score is %d, unanswered %v, the history says %+v", score, unanswered, h)
	}
}

// TestKilledWhileLearning lets people step up on two instances at once and kills both before they
// have gathered what they learnt. Each sign-in counts once after that.
func TestKilledWhileLearning(t *testing.T) {
	t.Parallel()
	e := fixture.NewProduction(t)
	settings := []string{"AUTH_RATE_LIMIT=10000"}
	instances := []*fixture.Service{
		e.StartProcess(t, settings...), e.StartProcess(t, append(settings, "DATA_DIR="+filepath.Join(e.Dir, "elsewhere"))...),
	}
	const people = 12
	var all []*fixture.Person
	for n := range people {
		all = append(all, e.NewPerson(t, fmt.Sprintf("p%d@example.com", n)))
	}
	var working sync.WaitGroup
	for n, p := range all {
		working.Go(func() {
			p.Login(t, instances[n%2])
			p.StepUp(t, e, instances[(n+1)%2])
		})
	}
	working.Wait()
	for _, s := range instances {
		s.Process.Kill()
	}
	db := e.OpenDatabase(t)
	number := func(query string) (n float64) {
		must.Succeed(t, db.QueryRowContext(t.Context(), query).Scan(&n))
		return n
	}
	const own = "SELECT coalesce(sum(sum), 0) FROM history_counts WHERE feature = 1"
	if n := number(own); n != people {
		t.Errorf("%v sign-ins of people were learnt, want %d", n, people)
	}
	for _, s := range []*fixture.Service{
		e.Start(t, settings...), e.Start(t, append(settings, "DATA_DIR="+filepath.Join(e.Dir, "elsewhere"))...),
	} {
		s.AwaitRules()
	}
	await.Until(t, "what was learnt is gathered", func() bool {
		return number("SELECT count(*) FROM history_additions") == 0
	})
	if n := number("SELECT coalesce(sum(sum), 0) FROM history_totals WHERE feature = 1"); n != people {
		t.Errorf("%v sign-ins of everybody were gathered, want %d", n, people)
	}
	if n := number(own); n != people {
		t.Errorf("after the restart %v sign-ins of people were learnt, want %d", n, people)
	}
}

// TestRetentionOfCounts learns a sign-in of two people. The counts of the one whose last sign-in is
// older than the retention are removed, those of the other are not.
func TestRetentionOfCounts(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := e.Start(t, "RETENTION_INTERVAL=1s")
		ada, bob := e.NewPerson(t, "ada@example.com"), e.NewPerson(t, "bob@example.com")
		file := filepath.Join(e.Dir, "record.jsonl")
		fixture.WriteFile(t, file, recordedSignIn(ada, time.Now())+recordedSignIn(bob, time.Now()))
		var learnt struct{ SignIns int }
		e.ReadCommand(t, &learnt, "risk", "learn", file)
		if learnt.SignIns != 2 {
			t.Fatalf("learnt from %d sign-ins", learnt.SignIns)
		}
		epoch := "0"
		if e.Shared {
			epoch = "'epoch'"
		}
		db := e.OpenDatabase(t)
		const ofAda = " WHERE user_id = (SELECT id FROM accounts WHERE email = 'ada@example.com')"
		if _, err := db.ExecContext(t.Context(),
			"UPDATE history_counts SET period = 0, last_at = "+epoch+ofAda); err != nil {
			t.Fatal(err)
		}
		number := func(condition string) (n float64) {
			if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM history_counts"+condition).
				Scan(&n); err != nil {
				t.Fatal(err)
			}
			return n
		}
		await.Until(t, "counts are removed", func() bool { return number(ofAda) == 0 })
		await.Until(t, "the removed counts are counted", func() bool {
			return s.Metric("tollgate_records_removed_total", "kind", "history_counts") > 0
		})
		if number("") == 0 {
			t.Error("the counts of a recent sign-in are removed too")
		}
		bob.Login(t, s)
		bob.StepUp(t, e, s)
	})
}
