// Package pairing gives a command a session of its own, which the person of the command has approved
// in a browser: the device authorization of RFC 8628. It does not sign people in in the browser;
// packages signin and federating do.
package pairing

import (
	"context"
	"encoding/binary"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/auth/credentials"
	"github.com/tollgate-dev/tollgate/core/auth/locking"
	"github.com/tollgate-dev/tollgate/core/auth/signin"
	"github.com/tollgate-dev/tollgate/core/auth/trust"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/ports/singleuse"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// The times of a request (contract A-79).
const (
	TTL      = 10 * time.Minute
	Interval = 5 * time.Second // between two polls of a command
	leeway   = time.Second     // a poll may come this much early
	recent   = 15 * time.Minute
)

// letters are those of codes: without vowels, which make words, and without Y, so that no two look
// alike (RFC 8628, section 6.1). Eight of them have 34 bits.
const (
	letters    = "BCDFGHJKLMNPQRSTVWXZ"
	codeLength = 8
)

// Ports are the dependencies of a Service. All stores belong to one adapter, so that a transaction
// spans them.
type Ports struct {
	Links       authstore.Links
	Sessions    authstore.Sessions
	Accounts    authstore.Accounts
	Logins      authstore.Logins
	Lockouts    authstore.Lockouts
	Transaction transaction.Runner
	SignIn      *signin.Service
	Used        singleuse.Store
	Clock       clock.Clock
	Entropy     secrets.Entropy
	Root        auth.RootSecret // the key of the hashes of codes is derived from it
}

// Service makes requests of commands, decides about them and answers them. It is safe for concurrent
// use.
type Service struct {
	guard *locking.Guard
	key   auth.Key
	ports Ports
}

// New returns a service. It returns the error of RootSecret.Derive.
func New(c credentials.Config, p Ports) (*Service, error) {
	key, err := p.Root.Derive("codes of commands")
	return &Service{locking.New(c.Lockout, p.Lockouts, p.Clock), key, p}, err
}

// Begin returns the secret with which a command polls for its session, and the code that its person
// enters in a browser. The secret has 256 bits; the code follows it.
func (s *Service) Begin(ctx context.Context, from signin.Origin) (secret auth.LinkSecret, code string, err error) {
	code = s.newCode()
	secret = secrets.NewSecret[auth.LinkSecret](s.ports.Entropy)
	now := s.ports.Clock.Now()
	return secret + "." + auth.LinkSecret(code), code, s.ports.Links.Put(ctx, auth.Link{
		Hash: s.key.Sum(code), Purpose: auth.LinkRequest, CreatedAt: now, ExpiresAt: now.Add(TTL),
		Asker: signin.SystemOf(from.Device), AskedFrom: from.Address, Answer: auth.HashSecret(secret),
	})
}

// newCode returns a code like BCDF-GHJK.
func (s *Service) newCode() string {
	var random [8]byte // so many that the remainders below are as good as equally likely
	s.ports.Entropy.Fill(random[:])
	code, rest := make([]byte, codeLength), binary.BigEndian.Uint64(random[:])
	for i := range code {
		code[i], rest = letters[rest%uint64(len(letters))], rest/uint64(len(letters))
	}
	return string(code[:codeLength/2]) + "-" + string(code[codeLength/2:])
}

// canonical returns a code as newCode writes it, of one that a person has entered.
func canonical(code string) string {
	code = strings.ToUpper(strings.NewReplacer(" ", "", "-", "").Replace(code))
	return code[:min(len(code), codeLength/2)] + "-" + code[min(len(code), codeLength/2):]
}

// Find returns the request with a code that a person has entered. The error is fault.Invalid for one
// that does not wait, which counts as a guess, and fault.Forbidden with code account_locked after too
// many of those.
func (s *Service) Find(ctx context.Context, by auth.Session, code string) (auth.Link, error) {
	subject := auth.CommandLockout(by.UserID)
	if err := s.guard.Check(ctx, subject); err != nil {
		return auth.Link{}, errGuesses(err)
	}
	l, err := s.find(ctx, code)
	if fault.Is(err, fault.NotFound) {
		if _, err := s.guard.Fail(ctx, subject); err != nil {
			return l, errGuesses(err)
		}
		err = errNotWaiting()
	}
	return l, err
}

// find returns the request with a code, or fault.NotFound.
func (s *Service) find(ctx context.Context, code string) (auth.Link, error) {
	l, err := s.ports.Links.Find(ctx, s.key.Sum(canonical(code)))
	if err == nil && (l.Purpose != auth.LinkRequest || !auth.Alive(l.ExpiresAt, s.ports.Clock.Now(), TTL)) {
		err = auth.NotFound("code")
	}
	return l, err
}

func errNotWaiting() error {
	return auth.InvalidField(auth.CodeInvalidInput, "code",
		"is not the code of a command that waits: it may be mistyped, was used, or is older than 10 minutes")
}

func errGuesses(err error) error {
	if f, ok := fault.As(err); ok && f.Code == auth.CodeAccountLocked {
		return fault.New(fault.Exhausted, "too many wrong codes: try again later")
	}
	return err
}

// Full returns nil if a command that the session approves gets full trust; otherwise why not, in the
// errors of trust.RequireProven.
func (s *Service) Full(by *auth.Session) error {
	return trust.RequireProven(by, s.ports.Clock.Now(), recent)
}

// Decide approves the request with a code, or refuses it. It must be called for an act of the person.
// Of parallel calls for one code, on all instances, one succeeds; the others return fault.Invalid.
func (s *Service) Decide(ctx context.Context, by auth.Session, code string, approve bool) error {
	l, err := s.Find(ctx, by, code)
	if err != nil {
		return err
	}
	answer := auth.Link{
		Hash: l.Answer, Purpose: auth.LinkCommand, UserID: by.UserID, CreatedAt: s.ports.Clock.Now(), ExpiresAt: l.ExpiresAt,
	}
	if err = trust.Require(by.TrustLevel, auth.Unverified); approve && err != nil {
		return err
	} else if approve {
		answer.SessionID = by.ID
	}
	err = s.ports.Transaction.Atomically(ctx, func(ctx context.Context) error {
		if err := s.ports.Links.Take(ctx, l.Hash); err != nil {
			return err
		}
		return s.ports.Links.Put(ctx, answer)
	})
	if fault.Is(err, fault.NotFound) {
		err = errNotWaiting()
	}
	return err
}

// Exchange begins the session of a command whose request was approved, and returns it with the e-mail
// address of its person. The error is fault.Invalid with code authorization_pending before the
// decision, and slow_down for a poll that comes too soon; fault.Forbidden if the person has refused;
// and fault.Unauthenticated with code invalid_credentials for a secret that is unknown, used or
// expired, and after the end of the session in which it was approved.
func (s *Service) Exchange(
	ctx context.Context, secret auth.LinkSecret, from signin.Origin,
) (r signin.Result, email auth.Email, err error) {
	l, err := s.findAnswer(ctx, secret)
	switch {
	case err == nil && l.SessionID == "":
		if err = s.ports.Links.Take(ctx, l.Hash); err == nil {
			return r, "", fault.New(fault.Forbidden, "the sign-in was refused in the browser")
		}
	case err == nil:
		r, err = s.ports.SignIn.Start(ctx, from, func(ctx context.Context) (signin.Admitted, error) {
			admitted, err := s.admit(ctx, &l)
			email = admitted.Account.Email
			return admitted, err
		})
	}
	if fault.Is(err, fault.NotFound) {
		if err := s.ports.SignIn.RecordCode(ctx, from, l.UserID); err != nil {
			return r, "", err
		}
		err = fault.New(fault.Unauthenticated, "the code was used or has expired: begin again with 'tollgate login'").
			WithCode(auth.CodeInvalidCredentials)
	}
	return r, email, err
}

// findAnswer returns the answer to the request of a command. It returns fault.Invalid before there is
// one, and fault.NotFound for a secret without a request.
func (s *Service) findAnswer(ctx context.Context, secret auth.LinkSecret) (auth.Link, error) {
	random, code, _ := strings.Cut(string(secret), ".")
	hash := auth.HashSecret(auth.LinkSecret(random))
	waiting, err := s.find(ctx, code) // first: a decision may come now
	if err == nil && waiting.Answer == hash {
		first, err := s.ports.Used.Claim(ctx, "poll:"+string(hash[:]), Interval-leeway)
		switch {
		case err != nil:
			return waiting, err
		case !first:
			return waiting, fault.New(fault.Invalid, "the last poll was less than 5 seconds ago").WithCode(auth.CodeSlowDown)
		}
		return waiting, fault.New(fault.Invalid, "the person has not decided yet").WithCode(auth.CodePending)
	}
	if err != nil && !fault.Is(err, fault.NotFound) {
		return waiting, err
	}
	l, err := s.ports.Links.Find(ctx, hash)
	if err == nil && (l.Purpose != auth.LinkCommand || !auth.Alive(l.ExpiresAt, s.ports.Clock.Now(), TTL)) {
		err = auth.NotFound("code")
	}
	return l, err
}

// admit uses an answer up, and returns what the command gets. Of parallel calls, on all instances, one
// succeeds; others return fault.NotFound. It locks the row of the account, so that its state cannot
// change during the transaction of the context.
func (s *Service) admit(ctx context.Context, l *auth.Link) (a signin.Admitted, err error) {
	if err := s.ports.Links.Take(ctx, l.Hash); err != nil {
		return a, err
	}
	by, err := s.ports.Sessions.Get(ctx, l.SessionID)
	if err == nil && !by.Active(s.ports.Clock.Now()) {
		err = auth.NotFound("session")
	}
	if err != nil {
		return a, err
	}
	switch a.Most = by.TrustLevel; {
	case by.Authenticated().After(l.CreatedAt): // the approval was for less
		a.Most = min(a.Most, auth.Unverified)
	case trust.RequireProven(&by, l.CreatedAt, recent) == nil:
		a.Factor = auth.FactorBrowser
	}
	err = s.ports.Accounts.Update(ctx, by.UserID, func(stored *auth.Account) error {
		if a.Account = *stored; a.Account.State != auth.AccountActive {
			return auth.NotFound("account")
		}
		return nil
	})
	if err == nil {
		err = s.copyLogin(ctx, &a, &by)
	}
	return a, err
}

// copyLogin gives the session of the command the sign-in at a provider from which a session came, so
// that it ends with the person's sign-in there. The refresh token stays where it is, so the session of
// the command ends when the one in the browser would end without another check.
func (s *Service) copyLogin(ctx context.Context, a *signin.Admitted, by *auth.Session) error {
	found, err := s.ports.Logins.Find(ctx, authstore.LoginQuery{At: s.ports.Clock.Now(), Session: by.ID, Limit: 1})
	if err != nil || len(found) == 0 {
		return err
	}
	a.Login, a.Until = found[0], by.MaxExpiresAt
	a.Login.ID, a.Login.Refresh, a.Login.RecheckAt = secrets.NewUUID[company.LoginID](s.ports.Entropy), nil, time.Time{}
	return nil
}
