package stepup_test

import (
	"context"
	"errors"
	"testing"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/authtest"
	"github.com/tollgate-dev/tollgate/core/auth/history"
	"github.com/tollgate-dev/tollgate/core/auth/stepup"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
)

// brokenDeferrals cannot confirm.
type brokenDeferrals struct{ authstore.HistoryDeferrals }

func (brokenDeferrals) Confirm(context.Context, auth.SessionID) error {
	return errors.New("the table is gone")
}

// TestStepUpIsLearntFrom checks that a session is learnt from when it passes a step-up, and not
// after a wrong code, and that a step-up passes if the counts fail.
func TestStepUpIsLearntFrom(t *testing.T) {
	for name, c := range map[string]struct {
		learn, broken, wrong bool
		want                 int
	}{
		"the right code": {learn: true, want: 1}, "a wrong code": {learn: true, wrong: true}, "off": {},
		"the counts fail": {learn: true, broken: true},
	} {
		t.Run(name, func(t *testing.T) {
			fx := newFixture(t)
			store, value := fx.ports.Deferrals.(*fakedb.History), history.Value{
				Feature: history.Browser, Text: "Firefox|Linux",
			}
			err := store.Defer(t.Context(), fx.getSession(), []history.Addition{
				{Value: value, Person: true, Weight: 1},
			})
			must.Succeed(t, err)
			if c.broken {
				fx.ports.Deferrals = brokenDeferrals{}
			}
			config := authtest.StepUp()
			config.Learn = c.learn
			if fx.service, err = stepup.New(config, fx.ports); err != nil {
				t.Fatal(err)
			}
			p := fx.mustInitiate()
			code := fx.mail.lastCode()
			if c.wrong {
				code = wrongCode(code)
			}
			if _, err := fx.tryCode(p, code); (err != nil) != c.wrong {
				t.Fatalf("verify returns %v", err)
			}
			if got := fx.getSession().TrustLevel; (got == auth.FullTrust) == c.wrong {
				t.Errorf("the session has %v", got)
			}
			counts, err := store.Read(t.Context(), user, []history.Value{value}, nil)
			if err != nil || len(counts.Person) != c.want {
				t.Errorf("the counts are %v, %v", counts.Person, err)
			}
		})
	}
}
