package people_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/people"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/courier"
	"github.com/tollgate-dev/tollgate/test/must"
)

const anna = auth.Email("anna@example.com")

// letters is a courier that keeps the messages.
type letters struct {
	messages []courier.Message
	err      error
}

func (l *letters) Deliver(_ context.Context, m courier.Message) error {
	l.messages = append(l.messages, m)
	return errors.Join(l.err, m.Validate())
}

func TestConfigIsChecked(t *testing.T) {
	fx := newFixture(t)
	for ttl, ok := range map[time.Duration]bool{
		time.Hour: true, 720 * time.Hour: true, time.Hour - 1: false, 720*time.Hour + 1: false, 0: false,
	} {
		_, err := people.New(people.Config{InvitationTTL: ttl}, fx.ports)
		if (err == nil) != ok || err != nil && !strings.HasPrefix(err.Error(), "InvitationTTL: ") {
			t.Errorf("%v: %v", ttl, err)
		}
	}
}

// TestDelivered invites with a courier, with one that refuses, and without one: the account and the
// link are made in any case.
func TestDelivered(t *testing.T) {
	for name, c := range map[string]struct {
		courier   *letters
		delivered bool
	}{
		"no courier": {}, "a courier": {&letters{}, true}, "a courier that refuses": {&letters{err: errors.New("full")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			fx := newFixture(t)
			if c.courier != nil {
				fx.ports.Mail = people.Mail{Courier: c.courier}
				fx.startService()
			}
			_, invited, err := fx.service.Invite(t.Context(), people.Invitation{Email: anna, Name: "Anna"})
			must.Succeed(t, err)
			again, err := fx.service.InviteAgain(t.Context(), anna, nil)
			must.Succeed(t, err)
			for n, l := range []people.Link{invited, again} {
				if l.Delivered != c.delivered || !l.ExpiresAt.Equal(fx.clock.Now().Add(time.Hour)) {
					t.Errorf("the link is delivered: %t, ends at %v", l.Delivered, l.ExpiresAt)
				}
				if c.courier == nil {
					continue
				}
				// a courier that does not know links sends the text
				if m := c.courier.messages[n]; m.Link != l.URL || !strings.Contains(m.Text, "\n"+l.URL+"\n") ||
					m.Kind != courier.Notice || m.Recipient != string(anna) || strings.Contains(m.Subject, l.URL) {
					t.Errorf("the message is %q: %s", m.Subject, m.Text)
				}
			}
			if fmt.Sprint(invited) != "[link]" || fx.service.CanMail() != (c.courier != nil) {
				t.Errorf("the link prints as %v", invited)
			}
			if err := fx.service.SendResetLink(t.Context(), anna); !fault.Is(err, fault.Conflict) {
				t.Errorf("a reset of an invited person: %v", err)
			}
		})
	}
}

// TestInviteRefuses checks that an invitation that is refused leaves nothing.
func TestInviteRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		in   people.Invitation
		want fault.Kind
	}{
		"no name":          {people.Invitation{Email: "ivy@example.com"}, fault.Invalid},
		"the same address": {people.Invitation{Email: anna, Name: "Anna"}, fault.Conflict},
		"an unknown action": {people.Invitation{
			Email: "ivy@example.com", Name: "Ivy", Grants: []authority.GrantText{{Action: "review", Resource: "*"}, {Action: "rule"}},
		}, fault.Invalid},
		"a pattern of operate": {people.Invitation{
			Email: "ivy@example.com", Name: "Ivy", Grants: []authority.GrantText{{Action: "operate", Resource: "com.example/*"}},
		}, fault.Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			fx, mail := newFixture(t), &letters{}
			fx.ports.Mail = people.Mail{Courier: mail}
			fx.startService()
			fx.addAnna()
			_, before, err := fx.log.Search(t.Context(), authstore.AuditQuery{Limit: 1})
			must.Succeed(t, err)
			if _, _, err := fx.service.Invite(t.Context(), c.in); !fault.Is(err, c.want) {
				t.Errorf("error %v, want %s", err, c.want)
			}
			if all, err := fx.service.List(t.Context(), "", 9); len(all) != 1 || err != nil || len(mail.messages) > 0 {
				t.Errorf("the accounts are %v, %v; %d messages", all, err, len(mail.messages))
			}
			if _, after, err := fx.log.Search(t.Context(), authstore.AuditQuery{Limit: 1}); err != nil || after != before {
				t.Errorf("%d events, then %d, %v", before, after, err)
			}
		})
	}
}

// TestStates does every act on an account in every state.
func TestStates(t *testing.T) {
	const invited, active, locked, disabled = auth.AccountInvited, auth.AccountActive, auth.AccountLocked, auth.AccountDisabled
	states := []auth.AccountState{invited, active, locked, disabled}
	for name, c := range map[string]struct {
		do   func(s *people.Service, ctx context.Context) error
		then [4]auth.AccountState // by the state before; empty for fault.Conflict
	}{
		"lock":    {func(s *people.Service, ctx context.Context) error { return s.Lock(ctx, anna) }, [4]auth.AccountState{"", locked, locked, ""}},
		"unlock":  {func(s *people.Service, ctx context.Context) error { return s.Unlock(ctx, anna) }, [4]auth.AccountState{"", active, active, ""}},
		"disable": {func(s *people.Service, ctx context.Context) error { return s.Disable(ctx, anna) }, [4]auth.AccountState{disabled, disabled, disabled, disabled}},
		"enable":  {func(s *people.Service, ctx context.Context) error { return s.Enable(ctx, anna) }, [4]auth.AccountState{"", active, "", active}},
		"invite again": {func(s *people.Service, ctx context.Context) error {
			_, err := s.InviteAgain(ctx, anna, nil)
			return err
		}, [4]auth.AccountState{invited, "", "", ""}},
		"reset link": {func(s *people.Service, ctx context.Context) error {
			_, err := s.MakeResetLink(ctx, anna)
			return err
		}, [4]auth.AccountState{"", active, locked, ""}},
		"rename": {func(s *people.Service, ctx context.Context) error {
			name := "Ann"
			return s.SetProfile(ctx, anna, people.Profile{Name: &name})
		}, [4]auth.AccountState{invited, active, locked, disabled}},
	} {
		for i, state := range states {
			t.Run(name+" "+string(state), func(t *testing.T) {
				fx := newFixture(t)
				user := fx.addAnna().ID
				if err := fx.ports.Accounts.Update(t.Context(), user, func(a *auth.Account) error {
					a.State = state
					return nil
				}); err != nil {
					t.Fatal(err)
				}
				err, want := c.do(fx.service, t.Context()), c.then[i]
				if (err == nil) != (want != "") || err != nil && !fault.Is(err, fault.Conflict) {
					t.Errorf("error %v", err)
				}
				if want == "" {
					want = state
				}
				if got := fx.accountState(); got != want {
					t.Errorf("the account is %s, want %s", got, want)
				}
			})
		}
	}
}

// TestEnableInvited: who has no password yet is invited again after the account was disabled.
func TestEnableInvited(t *testing.T) {
	fx := newFixture(t)
	if _, _, err := fx.service.Invite(t.Context(), people.Invitation{Email: anna, Name: "Anna"}); err != nil {
		t.Fatal(err)
	}
	for _, act := range []func(context.Context, auth.Email) error{fx.service.Disable, fx.service.Enable} {
		must.Succeed(t, act(t.Context(), anna))
	}
	if got := fx.accountState(); got != auth.AccountInvited {
		t.Errorf("the account is %s", got)
	}
}

// TestLastOperator keeps the last person who can operate from it, but for a change by force.
func TestLastOperator(t *testing.T) {
	fx := newFixture(t)
	operate := []authority.GrantText{{Action: "operate"}}
	give := func(id auth.UserID) {
		t.Helper()
		must.Succeed(t, fx.grants.GiveGrants(t.Context(), string(id), operate))
	}
	give(fx.addAnna().ID)
	_, _, err := fx.service.Invite(t.Context(), people.Invitation{Email: "ivy@example.com", Name: "Ivy", Grants: operate})
	must.Succeed(t, err)
	for name, do := range map[string]func(context.Context, auth.Email) error{"lock": fx.service.Lock, "disable": fx.service.Disable} {
		err := do(t.Context(), anna)
		if f, ok := fault.As(err); !ok || f.Kind != fault.Conflict || f.Code != auth.CodeLastOperator {
			t.Errorf("%s: %v", name, err)
		}
		if fx.accountState() != auth.AccountActive || fx.sessionEndReason() != "" {
			t.Errorf("after %s the account is %s, the session ended by %q", name, fx.accountState(), fx.sessionEndReason())
		}
	}
	other := fx.newAnna()
	other.Email = "olga@example.com"
	olga, err := fx.service.Add(t.Context(), other)
	must.Succeed(t, err)
	give(olga.ID)
	for _, act := range []struct {
		ctx   context.Context
		email auth.Email
		ok    bool
	}{{t.Context(), anna, true}, {t.Context(), other.Email, false}, {authstore.ByForce(t.Context()), other.Email, true}} {
		if err := fx.service.Lock(act.ctx, act.email); (err == nil) != act.ok {
			t.Errorf("lock %s: %v", act.email, err)
		}
	}
}

// TestBreakGlassBounds checks how long a password may be admitted.
func TestBreakGlassBounds(t *testing.T) {
	fx := newFixture(t)
	fx.addAnna()
	for lasts, ok := range map[time.Duration]bool{
		people.MinBreakGlass: true, people.MaxBreakGlass: true, people.MinBreakGlass - 1: false, people.MaxBreakGlass + 1: false,
	} {
		if err := fx.service.BreakGlass(t.Context(), anna, lasts); (err == nil) != ok || !ok && !fault.Is(err, fault.Invalid) {
			t.Errorf("%v: %v", lasts, err)
		}
	}
}

// TestProfile changes the name and the telephone number; nothing is changed if one breaks a rule or
// the condition does not hold.
func TestProfile(t *testing.T) {
	text := func(s string) *string { return &s }
	stale := func(context.Context) error { return fault.New(fault.Stale, "stale") }
	for name, c := range map[string]struct {
		profile     people.Profile
		name, phone string
		action      string
		want        fault.Kind
	}{
		"name":      {people.Profile{Name: text(" Ann ")}, "Ann", "+4930123456", "profile", 0},
		"phone":     {people.Profile{Phone: text("")}, "Anna", "", "phone", 0},
		"both":      {people.Profile{Name: text("Ann"), Phone: text("+15551234567")}, "Ann", "+15551234567", "profile", 0},
		"neither":   {people.Profile{}, "Anna", "+4930123456", "", 0},
		"the same":  {people.Profile{Name: text("Anna"), Phone: text("+4930123456")}, "Anna", "+4930123456", "", 0},
		"bad phone": {people.Profile{Name: text("Ann"), Phone: text("1")}, "Anna", "+4930123456", "profile", fault.Invalid},
		"bad name":  {people.Profile{Name: text(""), Phone: text("")}, "Anna", "+4930123456", "profile", fault.Invalid},
		"stale":     {people.Profile{Name: text("Ann"), Condition: stale}, "Anna", "+4930123456", "profile", fault.Stale},
	} {
		t.Run(name, func(t *testing.T) {
			fx := newFixture(t)
			fx.addAnna()
			fx.clock.Advance(time.Second)
			err := fx.service.SetProfile(t.Context(), anna, c.profile)
			if (err == nil) != (c.want == 0) || err != nil && !fault.Is(err, c.want) {
				t.Errorf("error %v", err)
			}
			a, err := fx.service.ByEmail(t.Context(), anna)
			pending := c.want == 0 && c.phone != "" && c.phone != "+4930123456" // another number
			if err != nil || a.Name != c.name || a.Phone != c.phone || a.PhonePending != pending {
				t.Errorf("the account is %+v, %v", a, err)
			}
			found, _, err := fx.log.Search(t.Context(), authstore.AuditQuery{Limit: 1})
			action := cmp.Or(c.action, "add") // no event if nothing has changed
			if err != nil || c.want == 0 && found[0].Details.Text("action") != action ||
				c.action != "" && string(c.profile.Action()) != c.action {
				t.Errorf("the event is %+v, %v", found, err)
			}
		})
	}
}
