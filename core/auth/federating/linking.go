package federating

import (
	"context"
	"net/netip"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/auth/notices"
	"github.com/tollgate-dev/tollgate/core/auth/trust"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// Found is an identity with which a person has come back from a provider, and which is not linked yet. Its
// groups are learnt at the first sign-in.
type Found struct {
	Issuer, Subject string
	Email           auth.Email
}

// Question is what a person is asked before an identity is linked (contract A-74).
type Question struct {
	Found

	Company string
}

// requireLinker returns a session as it is stored, whose person links an identity. The error is that of
// trust.RequireProven.
func (s *Service) requireLinker(ctx context.Context, id auth.SessionID, maxAge time.Duration) (auth.Session, error) {
	session, err := s.ports.Sessions.Get(ctx, id)
	if err == nil {
		err = trust.RequireProven(&session, s.ports.Clock.Now(), maxAge)
	}
	return session, err
}

// ask returns a cookie with the question whether the identity of claims is to be linked to the person who
// has begun that in a session. It returns fault.Forbidden if that is not the session of the browser any
// more or the person is in no required group, and the errors of checkFree.
func (s *Service) ask(
	ctx context.Context, in Callback, one begun, p *company.Provider, c *company.Claims,
) (Cookie, error) {
	session, rest := in.Session, in.Cookie
	if session == nil || session.ID != one.Link {
		return rest, fault.New(fault.Forbidden, "the session in which you began to link a company sign-in has ended")
	}
	if !p.Admits(c.Groups.Names) {
		return rest, refusedError{company.NoGroup, session.UserID, p, c.Groups.Problem}.asFault()
	}
	one.Found, one.At = &Found{c.Issuer, c.Subject, c.Email}, s.ports.Clock.Now()
	if _, err := s.checkFree(ctx, session.UserID, one.Found); err != nil {
		return rest, err
	}
	return s.add(rest, one)
}

// checkFree reports whether an identity is linked to a person already. It returns fault.Conflict if it
// belongs to another person, or the person has another identity of the issuer.
func (s *Service) checkFree(ctx context.Context, user auth.UserID, f *Found) (linked bool, err error) {
	known, err := s.ports.Identities.Find(ctx, f.Issuer, f.Subject)
	switch {
	case err == nil && known.UserID == user:
		return true, nil
	case err == nil:
		return false, fault.New(fault.Conflict, "this identity is linked to another account")
	case !fault.Is(err, fault.NotFound):
		return false, err
	}
	others, err := s.ports.Identities.Of(ctx, user)
	if err == nil && hasIssuer(others, f.Issuer) {
		err = fault.New(fault.Conflict, "your account has another identity of this company sign-in: unlink it first")
	}
	return false, err
}

// isQuestion returns what selects the question of a state that was asked in a session.
func isQuestion(session auth.SessionID, state string) func(begun) bool {
	return func(b begun) bool { return b.Found != nil && b.Link == session && b.State == state }
}

// Question returns the question of a state, which a session has in its cookie, with its provider. It
// returns fault.Invalid if there is none.
func (s *Service) Question(ctx context.Context, session auth.SessionID, c Cookie, state string) (q Question, err error) {
	for _, one := range s.open(c) {
		if isQuestion(session, state)(one) {
			p, err := s.asker(ctx, &one)
			if err != nil {
				return q, err
			}
			return Question{*one.Found, p.DisplayName}, nil
		}
	}
	return q, errState()
}

// asker returns the provider at which a person has found an identity, as long as it has its issuer.
func (s *Service) asker(ctx context.Context, one *begun) (*company.Provider, error) {
	client, err := s.find(ctx, string(one.Provider), "")
	if err == nil && client.Issuer != one.Found.Issuer {
		err = errState()
	}
	return client.Provider, err
}

// Link links the identity of a question to its person, with an event and a notice, and returns the cookie
// without the question. Of parallel calls for a question, on all instances, one succeeds. It returns
// fault.Invalid for a question that was not asked in the session or has been answered, and the errors of
// Begin and of checkFree.
func (s *Service) Link(ctx context.Context, caller auth.SessionID, from netip.Addr, c Cookie, state string) (Cookie, error) {
	// The password or code that began it counts for the answer too.
	recent := s.config.ReauthenticationMaxAge + 2*BegunTTL
	if _, err := s.requireLinker(ctx, caller, recent); err != nil {
		return c, err
	}
	one, rest, err := s.take(ctx, c, "company question", isQuestion(caller, state))
	if err != nil {
		return rest, err
	}
	p, err := s.asker(ctx, &one)
	if err != nil {
		return rest, err
	}
	var session auth.Session
	done := false
	err = s.ports.Transactions.Atomically(ctx, func(ctx context.Context) (err error) {
		if session, err = s.requireLinker(ctx, caller, recent); err != nil {
			return err
		}
		// The lock of the account lets two links of one person follow each other, so that the second one sees
		// what the first has stored.
		if err := s.ports.Accounts.Update(ctx, session.UserID, func(*auth.Account) error { return nil }); err != nil {
			return err
		}
		if done, err = s.checkFree(ctx, session.UserID, one.Found); err != nil || done {
			return err
		}
		about := audit.Details{}
		session.Describe(about)
		auth.DescribeAddress(about, from)
		_, err = s.addIdentity(ctx, p, company.Identity{
			UserID: session.UserID, Issuer: one.Found.Issuer, Subject: one.Found.Subject, Email: one.Found.Email,
		}, about)
		return err
	})
	if err == nil && !done {
		s.noteSuccess(ctx, p, "", nil)
		s.notify(notices.CompanyLinked, &session, from)
	}
	return rest, err
}

// notify sends the person of a session a notice of an act there, from an address.
func (s *Service) notify(kind notices.Kind, session *auth.Session, from netip.Addr) {
	s.ports.Notices.Notify(notices.Event{
		Kind: kind, UserID: session.UserID, At: s.ports.Clock.Now(), Address: from, DeviceID: session.DeviceID,
	})
}
