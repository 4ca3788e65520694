package audit_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
)

// TestChanging checks that a change shows the fields that differ, and of a secret only that.
func TestChanging(t *testing.T) {
	t.Parallel()
	before := audit.Object{Kind: "view", Key: "a", Fields: audit.Details{
		"same": audit.Texts([]string{"x"}), "was": audit.Text("1"), "gone": audit.Flag(true), "secret": audit.Text("h1"),
	}}
	after := audit.Object{Kind: "view", Key: "a", Fields: audit.Details{
		"same": audit.Texts([]string{"x"}), "was": audit.Text("2"), "new": audit.Number(3), "secret": audit.Text("h2"),
	}}
	for want, details := range map[string]audit.Details{
		`{"changes":{"gone":[true,null],"new":[null,3],"secret":"changed","was":["1","2"]},"key":"a","kind":"view"}`: audit.
			Changing(audit.Details{}, before, after),
		`{"key":"a","kind":"view"}`: audit.Changing(audit.Details{}, before, before),
	} {
		if got, err := json.Marshal(details); err != nil || string(got) != want {
			t.Errorf("%s, error %v, want %s", got, err, want)
		}
	}
}

// TestActor checks what an event says of who acted.
func TestActor(t *testing.T) {
	t.Parallel()
	for want, by := range map[string]audit.Actor{
		`{"action":"lock","actor":"operator"}`: {},
		`{"action":"lock","actor":"service:ci","applyId":"a","tokenPrefix":"tgs_12345678","trustLevel":"TOKEN"}`: {
			Who: audit.ServiceActor + "ci", TokenPrefix: "tgs_12345678", ApplyID: "a",
		},
	} {
		e := audit.NewEvent("1", time.Time{}, audit.Change{Action: "lock", ByOperator: true}, by)
		if got, err := json.Marshal(e.Details); err != nil || string(got) != want {
			t.Errorf("%s, error %v, want %s", got, err, want)
		}
	}
}
