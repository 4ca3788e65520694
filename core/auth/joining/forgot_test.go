package joining_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/notices"
	"github.com/tollgate-dev/tollgate/core/auth/people"
	"github.com/tollgate-dev/tollgate/ports/courier"
)

// runForgotten requests links and returns what is reported, when all requests are done. It must be
// called in a bubble.
func (fx *fixture) runForgotten(emails ...auth.Email) (events []any) {
	fx.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	var group sync.WaitGroup
	for _, email := range emails {
		fx.service.Forgot(email)
	}
	group.Go(func() { fx.service.Run(ctx) })
	synctest.Wait()
	stop()
	group.Wait()
	for len(fx.reports) > 0 {
		events = append(events, <-fx.reports)
	}
	return events
}

// TestForgot requests links for people in each state, and for more than an address gets.
func TestForgot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fx := newFixture(t)
		const lou, dora = auth.Email("lou@example.com"), auth.Email("dora@example.com")
		fx.invite(ivy)
		for _, email := range []auth.Email{olga, lou, dora} {
			fx.join(email)
		}
		fx.mustSucceed(fx.people.Lock(t.Context(), lou))
		fx.mustSucceed(fx.people.Disable(t.Context(), dora))
		fx.mail.messages = nil // the invitations
		events := fx.runForgotten(ivy, dora, "nobody@example.com", lou, olga, olga, olga, olga, olga)
		for _, event := range events {
			if event != (notices.Sent{Kind: "forgotten_password"}) {
				t.Errorf("the report is %v", event)
			}
		}
		to := map[string]int{}
		for _, m := range fx.mail.messages {
			to[m.Recipient]++
			if m.Kind != courier.Notice || m.Subject != "Tools: Set a new password" || !strings.Contains(m.Text, m.Link) {
				t.Errorf("the message is %q: %s", m.Subject, m.Text)
			}
			fx.mustSucceed(fx.service.CheckReset(t.Context(), fx.secretOf(people.Link{URL: m.Link}, "reset-password")))
		}
		if len(events) != 4 || len(to) != 2 || to[string(olga)] != 3 || to[string(lou)] != 1 {
			t.Errorf("%d messages are reported, and went to %v", len(events), to)
		}
		if len(fx.throttle.tries) != 5 { // whoever has no account is counted too
			t.Errorf("these were counted: %v", fx.throttle.tries)
		}
		for key := range fx.throttle.tries {
			if !strings.HasPrefix(key, "reset ") || strings.Contains(key, "@") {
				t.Errorf("the address is counted as %s", key)
			}
		}
	})
}

// TestForgotFails requests links while a dependency fails, without a courier, and too many at once.
func TestForgotFails(t *testing.T) {
	for name, c := range map[string]struct {
		spoil  func(fx *fixture)
		emails []auth.Email
		failed int
	}{
		"counters are away":   {func(fx *fixture) { fx.throttle.err = errors.New("away") }, []auth.Email{olga, ivy}, 2},
		"the courier refuses": {func(fx *fixture) { fx.mail.err = errors.New("full") }, []auth.Email{olga, ivy}, 1},
		"more than may wait":  {func(fx *fixture) { fx.throttle.most = 0 }, slices.Repeat([]auth.Email{olga}, 1002), 0},
		"an address twice":    {func(fx *fixture) { fx.throttle.most = 0 }, []auth.Email{olga, olga}, 0},
		"nobody of this name": {func(*fixture) {}, []auth.Email{"nobody@example.com"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fx := newFixture(t)
				fx.join(olga)
				fx.mail.messages = nil
				c.spoil(fx)
				failed, dropped := 0, uint64(0)
				for _, event := range fx.runForgotten(c.emails...) {
					switch e := event.(type) {
					case notices.Failed:
						failed++
						if e.Kind != "forgotten_password" || e.Err == nil {
							t.Errorf("the report is %v", e)
						}
					case notices.Dropped:
						dropped += e.Count
					default:
						t.Errorf("the report is %v", e)
					}
				}
				if failed != c.failed || int(dropped) != max(0, len(c.emails)-1000) || len(fx.mail.messages) > 0 {
					t.Errorf("%d failed, %d were dropped, %d were sent", failed, dropped, len(fx.mail.messages))
				}
			})
		})
	}
}
