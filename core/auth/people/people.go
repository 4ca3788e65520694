// Package people manages accounts for operators: add, lock, disable, set password and telephone
// number. Only the operator commands use it, not the API.
package people

import (
	"context"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/auditing"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/ports/sessioncache"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// maxName is the greatest length of a name in characters.
const maxName = 200

// Ports are the dependencies of this package. All stores belong to one adapter, so that a
// transaction spans them.
type Ports struct {
	Accounts    authstore.Accounts
	Devices     authstore.Devices
	Sessions    authstore.Sessions
	Lockouts    authstore.Lockouts
	Pending     authstore.PendingLogins
	Transaction transaction.Runner

	Passwords secrets.PasswordHasher
	Cache     sessioncache.Cache
	Trail     *auditing.Trail
	Clock     clock.Clock
	Entropy   secrets.Entropy
	Root      auth.RootSecret // the keys of this package are derived from it
}

// Service manages accounts. Its changes are in the audit log, with the operator as actor. Ended
// sessions are refused on every instance within sessioncache.MaxAge. It is safe for concurrent use.
type Service struct {
	ports      Ports
	lockoutKey auth.Key
	rules      PasswordRules

	secondFactor auth.SecondFactor
}

// New returns a service. It returns an error if the root secret is too short.
func New(p Ports) (*Service, error) {
	key, err := p.Root.Derive(auth.LockoutPurpose)
	if err != nil {
		return nil, err
	}
	secondFactor, err := auth.NewSecondFactor(p.Root)
	if err != nil {
		return nil, err
	}
	return &Service{
		ports: p, lockoutKey: key, rules: NewPasswordRules(), secondFactor: secondFactor,
	}, nil
}

// Person is the input of Add.
type Person struct {
	Email    auth.Email
	Name     string // 1 to 200 characters
	Password auth.Password
	Phone    string // E.164; optional
}

// Add creates an account. The error is fault.Invalid with code validation_error, and the field in
// details.fields, if a rule is broken, and fault.Conflict if the address has an account.
func (s *Service) Add(ctx context.Context, p Person) (auth.Account, error) {
	name, err := checkName(p.Name)
	if err != nil {
		return auth.Account{}, err
	}
	if err := checkPhone(p.Phone); err != nil {
		return auth.Account{}, err
	}
	hash, err := s.hashPassword(ctx, p.Password, p.Email, name)
	if err != nil {
		return auth.Account{}, err
	}
	now := s.ports.Clock.Now()
	a := auth.Account{
		ID: secrets.NewUUID[auth.UserID](s.ports.Entropy), Email: p.Email, Name: name, Phone: p.Phone,
		PasswordHash: hash,
		State:        auth.AccountActive, CreatedAt: now, UpdatedAt: now,
	}
	err = s.ports.Transaction.Atomically(ctx, func(ctx context.Context) error {
		if err := s.ports.Accounts.Create(ctx, a); err != nil {
			return err
		}
		// The event has no user, so that it is not in the person's own log.
		return s.ports.Trail.RecordChanges(ctx, audit.Change{
			Category: audit.AccountChange, Action: "add", ByOperator: true, Details: audit.Details{
				"userId": audit.Text(a.ID),
			},
		})
	})
	if fault.Is(err, fault.Conflict) {
		return auth.Account{}, fault.Wrap(fault.Conflict, "this e-mail address has an account", err).
			WithCode(auth.CodeValidation)
	}
	if err != nil {
		return auth.Account{}, err
	}
	return a, nil
}

// ByEmail returns the account of an address, or fault.NotFound.
func (s *Service) ByEmail(ctx context.Context, email auth.Email) (auth.Account, error) {
	a, err := s.ports.Accounts.ByEmail(ctx, email)
	if fault.Is(err, fault.NotFound) {
		return auth.Account{}, auth.NotFound("user")
	}
	return a, err
}

// List returns accounts ordered by address, those after the given one, at most limit.
func (s *Service) List(ctx context.Context, after auth.Email, limit int) ([]auth.Account, error) {
	return s.ports.Accounts.List(ctx, after, limit)
}

func (s *Service) hashPassword(
	ctx context.Context, p auth.Password, email auth.Email, name string,
) (auth.PasswordHash, error) {
	if err := s.rules.Check("password", p, email, name); err != nil {
		return "", err
	}
	return s.ports.Passwords.Hash(ctx, p)
}

func checkName(s string) (string, error) {
	s = strings.TrimSpace(s)
	problem := ""
	switch {
	case s == "":
		problem = "must not be empty"
	case !utf8.ValidString(s), strings.ContainsFunc(s, unicode.IsControl):
		problem = "must be text without control characters"
	case utf8.RuneCountInString(s) > maxName:
		problem = "must have at most 200 characters"
	default:
		return s, nil
	}
	return "", auth.InvalidField(auth.CodeValidation, "name", problem)
}

// phonePattern matches an international telephone number (ITU-T E.164).
var phonePattern = regexp.MustCompile(`^\+[1-9][0-9]{6,14}$`)

func checkPhone(s string) error {
	if s != "" && !phonePattern.MatchString(s) {
		return auth.InvalidField(auth.CodeValidation, "phone",
			"must be an international number, for example +4930123456")
	}
	return nil
}
