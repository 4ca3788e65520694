package console

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/fixture"
)

// TestOperatorReadsTheHistory checks that the page Risk shows the score of the history with its
// reasons next to the points.
func TestOperatorReadsTheHistory(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := e.Start(t)
		ada := e.NewPerson(t, "ada@example.com")
		var record strings.Builder
		for n := 505; n > 0; n-- {
			line := map[string]any{
				"id": n, "ts": time.Now().Add(-time.Duration(n) * 7 * time.Hour).Unix(), "email": ada.Email,
				"ip":              "127.0.0.1",
				"passwordCorrect": true, "stepUpPassed": true,
			}
			for name, value := range ada.Device {
				line[name] = value
			}
			text, err := json.Marshal(line)
			if err != nil {
				t.Fatal(err)
			}
			record.WriteString(string(text) + "\n")
		}
		file := filepath.Join(e.Dir, "record.jsonl")
		fixture.WriteFile(t, file, record.String())
		e.RunCommand(t, "", "risk", "learn", file)
		ada.Device["userAgent"] = "Mozilla/5.0 (Windows NT 10.0; rv:60.0) Gecko/20100101 Firefox/60.0"
		ada.Login(t, s)
		b := newOperator(t, e, s)
		b.open("/console/operator/risk?email=ada@example.com", http.StatusOK)
		b.wantText("no step-up or MFA was passed on the device", "points 30: the lower trust level of both counts",
			"of all sign-ins here")

		own := newBrowser(t, s) // of somebody who knows the password
		own.signIn(ada)
		own.open("/console/account/log?type=RISK_EVALUATION", http.StatusOK)
		own.wantText("Risk score")
		own.wantNoText("of all sign-ins here", "no step-up or MFA was passed on the device", "History")
	})
}
