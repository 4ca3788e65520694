// Package people is the operator's side of accounts: add, lock, disable, set password and telephone number. It is not reachable
// from the API; who may run it is whoever may run the operator commands.
package people

import (
	"context"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/ports/sessioncache"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// maxName is the greatest length of a name in characters.
const maxName = 200

// Records are the stores that this package works on; all of one adapter, so that a transaction spans them.
type Records struct {
	Accounts    authstore.Accounts
	Devices     authstore.Devices
	Sessions    authstore.Sessions
	Lockouts    authstore.Lockouts
	Pending     authstore.PendingLogins
	Transaction transaction.Runner
}

// Surroundings are the ports to the rest of the world.
type Surroundings struct {
	Passwords secrets.PasswordHasher
	Cache     sessioncache.Cache
	Trail     *audit.Trail
	Clock     clock.Clock
	Entropy   secrets.Entropy
}

// Service manages accounts. What it changes is in the audit log, with the operator as actor; what ends sessions counts on every
// instance within sessioncache.MaxAge. It is safe for concurrent use.
type Service struct {
	records    Records
	world      Surroundings
	lockoutKey auth.Key
	rules      PasswordRules

	secondFactor auth.SecondFactor
}

// New returns a service. It fails on a root secret that is too short.
func New(r Records, root auth.RootSecret, w Surroundings) (*Service, error) {
	key, err := root.Derive(auth.LockoutPurpose)
	if err != nil {
		return nil, err
	}
	secondFactor, err := auth.NewSecondFactor(root)
	if err != nil {
		return nil, err
	}
	return &Service{
		records: r, world: w, lockoutKey: key, rules: NewPasswordRules(), secondFactor: secondFactor,
	}, nil
}

// Person is who is to be added.
type Person struct {
	Email    auth.Email
	Name     string // 1 to 200 characters
	Password auth.Password
	Phone    string // E.164; empty for none
}

// Add makes an account. fault.Invalid with code validation_error, and the field in details.fields, when a rule is broken;
// fault.Conflict when the address has an account.
func (s *Service) Add(ctx context.Context, p Person) (auth.Account, error) {
	name, err := checkName(p.Name)
	if err != nil {
		return auth.Account{}, err
	}
	if err := checkPhone(p.Phone); err != nil {
		return auth.Account{}, err
	}
	hash, err := s.hash(ctx, p.Password)
	if err != nil {
		return auth.Account{}, err
	}
	now := s.world.Clock.Now()
	a := auth.Account{
		ID: secrets.NewUUID[auth.UserID](s.world.Entropy), Email: p.Email, Name: name, Phone: p.Phone, PasswordHash: hash,
		State: auth.AccountActive, CreatedAt: now, UpdatedAt: now,
	}
	err = s.records.Transaction.Atomically(ctx, func(ctx context.Context) error {
		if err := s.records.Accounts.Create(ctx, a); err != nil {
			return err
		}
		// In nobody's own log: it is before the person's first act.
		return s.record(ctx, auth.AccountChange, "", map[string]any{"action": "add", "userId": string(a.ID)})
	})
	if fault.Is(err, fault.Conflict) {
		return auth.Account{}, fault.Wrap(fault.Conflict, auth.CodeValidation, "this e-mail address has an account", err)
	}
	if err != nil {
		return auth.Account{}, err
	}
	return a, nil
}

// ByEmail returns the account of an address, or fault.NotFound.
func (s *Service) ByEmail(ctx context.Context, email auth.Email) (auth.Account, error) {
	a, err := s.records.Accounts.ByEmail(ctx, email)
	if fault.Is(err, fault.NotFound) {
		return auth.Account{}, auth.NoSuch("user")
	}
	return a, err
}

// List returns accounts ordered by address, those after the given one, at most limit.
func (s *Service) List(ctx context.Context, after auth.Email, limit int) ([]auth.Account, error) {
	return s.records.Accounts.List(ctx, after, limit)
}

func (s *Service) hash(ctx context.Context, p auth.Password) (auth.PasswordHash, error) {
	if err := s.rules.Check("password", p); err != nil {
		return "", err
	}
	return s.world.Passwords.Hash(ctx, p)
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

// phoneForm is an international telephone number (ITU-T E.164).
var phoneForm = regexp.MustCompile(`^\+[1-9][0-9]{6,14}$`)

func checkPhone(s string) error {
	if s != "" && !phoneForm.MatchString(s) {
		return auth.InvalidField(auth.CodeValidation, "phone", "must be an international number such as +4930123456")
	}
	return nil
}
