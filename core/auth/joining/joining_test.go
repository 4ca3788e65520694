package joining_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/people"
	"github.com/tollgate-dev/tollgate/core/auth/signin"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// TestLifetimes checks the last moment at which each link is good, and the first at which it is dead.
func TestLifetimes(t *testing.T) {
	for name, c := range map[string]struct {
		lifetime time.Duration
		open     func(fx *fixture) (check, use func() error)
	}{
		"setup": {24 * time.Hour, func(fx *fixture) (check, use func() error) {
			code := fx.setupCode()
			return func() error { return fx.service.CheckSetup(context.Background(), code) },
				func() error { _, err := fx.setUp(code, olga); return err }
		}},
		"invitation": {72 * time.Hour, func(fx *fixture) (check, use func() error) {
			secret := fx.invite(ivy)
			return func() error { _, err := fx.service.FindInvited(context.Background(), secret); return err },
				func() error {
					_, err := fx.service.Accept(context.Background(), secret, fx.newPassword(next), fx.origin("Firefox"))
					return err
				}
		}},
		"reset": {30 * time.Minute, func(fx *fixture) (check, use func() error) {
			fx.join(ivy)
			secret := fx.resetSecret(ivy)
			return func() error { return fx.service.CheckReset(context.Background(), secret) },
				func() error { return fx.service.Reset(context.Background(), secret, fx.newPassword(next)) }
		}},
	} {
		t.Run(name, func(t *testing.T) {
			fx := newFixture(t)
			check, use := c.open(fx)
			fx.clock.Advance(c.lifetime - time.Microsecond)
			for range 2 { // to open a page does not use the link up
				fx.mustSucceed(check())
			}
			fx.clock.Advance(time.Microsecond)
			for _, late := range []error{check(), use()} {
				wantFault(t, late, fault.NotFound, "after its end")
			}
			fx.clock.Advance(-time.Microsecond)
			fx.mustSucceed(use())
			for _, again := range []error{check(), use()} {
				wantFault(t, again, fault.NotFound, "after its use")
			}
		})
	}
}

// TestPurposes uses each link for what another one permits.
func TestPurposes(t *testing.T) {
	fx, ctx := newFixture(t), context.Background()
	setup := fx.setupCode()
	for what, check := range map[string]func(auth.LinkSecret) error{
		"an invitation": func(s auth.LinkSecret) error { _, err := fx.service.FindInvited(ctx, s); return err },
		"a reset":       func(s auth.LinkSecret) error { return fx.service.CheckReset(ctx, s) },
		"an unknown code": func(s auth.LinkSecret) error {
			return fx.service.CheckSetup(ctx, s[1:])
		},
		"no code": func(auth.LinkSecret) error { return fx.service.CheckSetup(ctx, "") },
	} {
		wantFault(t, check(setup), fault.NotFound, "a setup as %s", what)
	}
	invitation := fx.invite(ivy)
	for what, err := range map[string]error{
		"a reset": fx.service.Reset(ctx, invitation, fx.newPassword(next)),
		"a setup": fx.service.CheckSetup(ctx, invitation),
	} {
		wantFault(t, err, fault.NotFound, "an invitation as %s", what)
	}
	fx.join(olga)
	if _, err := fx.service.Accept(ctx, fx.resetSecret(olga), fx.newPassword(next), fx.origin("x")); !fault.Is(err, fault.NotFound) {
		t.Errorf("a reset as an invitation: %v", err)
	}
}

// TestSetUp makes the first account with one of several codes, several times at once.
func TestSetUp(t *testing.T) {
	fx, ctx := newFixture(t), context.Background()
	codes := []auth.LinkSecret{fx.setupCode(), fx.setupCode(), fx.setupCode(), fx.setupCode()}
	if _, err := fx.service.SetUp(ctx, codes[0], people.Person{
		Email: olga, Name: "Olga", Password: fx.newPassword("weak"),
	}, fx.origin("Firefox")); !fault.Is(err, fault.Invalid) {
		t.Errorf("a weak password: %v", err)
	}
	if empty, err := fx.service.IsEmpty(ctx); !empty || err != nil {
		t.Errorf("empty: %t, %v", empty, err)
	}
	var mu sync.Mutex
	var r signin.Result
	succeeded := fx.runAtOnce(func(n int) error {
		got, err := fx.setUp(codes[n], olga)
		if err == nil {
			mu.Lock()
			defer mu.Unlock()
			r = got
		}
		return err
	})
	if succeeded != 1 {
		t.Fatalf("%d setups succeeded", succeeded)
	}
	fx.wantTrusted(r)
	for _, code := range codes {
		wantFault(t, fx.service.CheckSetup(ctx, code), fault.NotFound, "a code after the setup")
		if _, err := fx.ports.Links.Find(ctx, auth.HashSecret(code)); !fault.Is(err, fault.NotFound) {
			t.Errorf("a code is stored after the setup: %v", err)
		}
	}
	if _, err := fx.people.MakeSetupLink(ctx); !fault.Is(err, fault.Conflict) {
		t.Errorf("another code: %v", err)
	}
	if may, err := fx.grants.MayOperate(ctx, string(r.UserID)); !may || err != nil {
		t.Errorf("the first person operates: %t, %v", may, err)
	}
	if empty, err := fx.service.IsEmpty(ctx); empty || err != nil {
		t.Errorf("empty: %t, %v", empty, err)
	}
}

// TestAccept accepts an invitation, several times at once, each with another password.
func TestAccept(t *testing.T) {
	fx, ctx := newFixture(t), context.Background()
	fx.join(olga)
	secret := fx.invite(ivy)
	if _, err := fx.service.Accept(ctx, secret, fx.newPassword("weak"), fx.origin("x")); !fault.Is(err, fault.Invalid) {
		t.Errorf("a weak password: %v", err)
	}
	if fx.canSignIn(ivy, first) {
		t.Error("an invited person signs in")
	}
	passwords := []string{"Horse 1 Right!", "Horse 2 Right!", "Horse 3 Right!", "Horse 4 Right!"}
	var winner int
	var r signin.Result
	var mu sync.Mutex
	if n := fx.runAtOnce(func(n int) error {
		got, err := fx.service.Accept(ctx, secret, fx.newPassword(passwords[n]), fx.origin("Firefox"))
		if err == nil {
			mu.Lock()
			defer mu.Unlock()
			winner, r = n, got
		}
		return err
	}); n != 1 {
		t.Fatalf("%d accepted", n)
	}
	fx.wantTrusted(r)
	for i, password := range passwords {
		if fx.canSignIn(ivy, password) != (i == winner) {
			t.Errorf("password %d of winner %d", i, winner)
		}
	}
}

// TestInvitationsEnd makes invitations dead by what comes after them.
func TestInvitationsEnd(t *testing.T) {
	for name, end := range map[string]func(fx *fixture) error{
		"another invitation": func(fx *fixture) error { _, err := fx.people.InviteAgain(t.Context(), ivy, nil); return err },
		"disabled, and enabled again": func(fx *fixture) error {
			return errors.Join(fx.people.Disable(t.Context(), ivy), fx.people.Enable(t.Context(), ivy))
		},
		"active in another way": func(fx *fixture) error {
			return fx.stores.Accounts.Update(t.Context(), mustID(t, fx, ivy), func(a *auth.Account) error {
				a.State = auth.AccountActive // and the link is still stored
				return nil
			})
		},
		"a password by command": func(fx *fixture) error {
			return fx.people.SetPassword(t.Context(), ivy, fx.newPassword(first))
		},
	} {
		t.Run(name, func(t *testing.T) {
			fx := newFixture(t)
			secret := fx.invite(ivy)
			fx.mustSucceed(end(fx))
			if _, err := fx.service.FindInvited(t.Context(), secret); !fault.Is(err, fault.NotFound) {
				t.Errorf("the invitation: %v", err)
			}
			wantFault(t, fx.service.CheckReset(t.Context(), secret), fault.NotFound, "the invitation as a reset")
			_, err := fx.service.Accept(t.Context(), secret, fx.newPassword(next), fx.origin("Firefox"))
			wantFault(t, err, fault.NotFound, "to accept it")
		})
	}
}

// TestReset sets another password by a link: sessions, logins that wait for a second factor and other
// links end, and the second factor stays.
func TestReset(t *testing.T) {
	fx, ctx := newFixture(t), context.Background()
	r, bystander := fx.join(ivy), fx.join(olga)
	app, err := fx.people.EnrolMFA(ctx, ivy)
	fx.mustSucceed(err)
	_, err = fx.people.ActivateMFA(ctx, ivy, app.Code(auth.TOTPStep(fx.clock.Now())))
	fx.mustSucceed(err)
	fx.clock.Advance(time.Minute)
	code := signin.MFAAnswer{
		UserID: r.UserID, Code: app.Code(auth.TOTPStep(fx.clock.Now())), Origin: fx.origin("Firefox"),
	}
	if _, err := fx.ports.SignIn.Login(ctx, signin.Login{
		Email: ivy, Password: fx.newPassword(first), Origin: fx.origin("Firefox"),
	}); err != nil {
		t.Fatal(err)
	}
	s, err := fx.stores.Sessions.Get(ctx, r.SessionID)
	fx.mustSucceed(err)
	fx.cache.Put(ctx, s, fx.clock.Now())
	other, secret := fx.resetSecret(ivy), fx.resetSecret(ivy)
	wantFault(t, fx.service.Reset(ctx, secret, fx.newPassword("weak")), fault.Invalid, "a weak password")
	if n := fx.runAtOnce(func(int) error { return fx.service.Reset(ctx, secret, fx.newPassword(next)) }); n != 1 {
		t.Errorf("%d resets succeeded", n)
	}
	wantFault(t, fx.service.CheckReset(ctx, other), fault.NotFound, "the other link")
	if s, err = fx.stores.Sessions.Get(ctx, r.SessionID); err != nil || s.EndReason != auth.EndPassword {
		t.Errorf("the session ended by %q, %v", s.EndReason, err)
	}
	if _, kept := fx.cache.Get(ctx, r.SessionID); kept {
		t.Error("the copy of the session is kept")
	}
	if s, err = fx.stores.Sessions.Get(ctx, bystander.SessionID); err != nil || !s.EndedAt.IsZero() {
		t.Errorf("the session of another person ended at %v, %v", s.EndedAt, err)
	}
	if _, err := fx.ports.SignIn.VerifyMFA(ctx, code); !fault.Is(err, fault.Unauthenticated) {
		t.Errorf("the login that waited: %v", err)
	}
	again, err := fx.ports.SignIn.Login(ctx, signin.Login{
		Email: ivy, Password: fx.newPassword(next), Origin: fx.origin("Firefox"),
	})
	if err != nil || !again.MFARequired {
		t.Errorf("the next sign-in: %+v, %v", again, err)
	}
	if _, err := fx.ports.SignIn.VerifyMFA(ctx, code); err != nil {
		t.Errorf("the second factor: %v", err)
	}
}

// TestResetNeedsSignIn checks in which states an account takes another password by a link.
func TestResetNeedsSignIn(t *testing.T) {
	fx, ctx := newFixture(t), context.Background()
	fx.join(ivy)
	locked := fx.resetSecret(ivy)
	fx.mustSucceed(fx.people.Lock(ctx, ivy))
	fx.mustSucceed(fx.service.Reset(ctx, locked, fx.newPassword(next)))
	if a, err := fx.people.ByEmail(ctx, ivy); err != nil || a.State != auth.AccountLocked {
		t.Errorf("after a reset the locked account is %s, %v", a.State, err)
	}
	disabled := fx.resetSecret(ivy)
	fx.mustSucceed(fx.stores.Accounts.Update(ctx, mustID(t, fx, ivy), func(a *auth.Account) error {
		a.State = auth.AccountDisabled // and the link is still stored
		return nil
	}))
	for _, err := range []error{
		fx.service.CheckReset(ctx, disabled), fx.service.Reset(ctx, disabled, fx.newPassword(first)),
	} {
		wantFault(t, err, fault.NotFound, "a reset of a disabled account")
	}
}

func mustID(t *testing.T, fx *fixture, email auth.Email) auth.UserID {
	t.Helper()
	a, err := fx.people.ByEmail(t.Context(), email)
	fx.mustSucceed(err)
	return a.ID
}
