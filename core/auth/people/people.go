// Package people manages accounts for operators: add, invite, lock, disable, change name and
// telephone number, and make links by which people set their password. Package joining accepts the
// links.
package people

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/auditing"
	"github.com/tollgate-dev/tollgate/core/auth/notices"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/courier"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/ports/sessioncache"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// maxName is the greatest length of a name in characters.
const maxName = 200

// Config holds the settings of people.
type Config struct {
	InvitationTTL time.Duration
	Console       ConsoleURL
	Product       string // the name of the service in messages
}

// ConsoleURL is the address under which people reach the console, with a slash at the end.
type ConsoleURL string

// Validate returns an error that begins with the name of the first field that is out of range.
func (c Config) Validate() error {
	if c.InvitationTTL < time.Hour || c.InvitationTTL > 720*time.Hour {
		return fmt.Errorf("InvitationTTL: %v is not in the range 1h to 720h", c.InvitationTTL)
	}
	return nil
}

// ServeAt sets the address of the console, for a service on a port that the system chose. It must
// be called before the service is used.
func (s *Service) ServeAt(console ConsoleURL) { s.config.Console = console }

// Mail is the courier of links; a nil one is not configured.
type Mail struct{ courier.Courier }

// Ports are the dependencies of this package. All stores belong to one adapter, so that a
// transaction spans them.
type Ports struct {
	Accounts    authstore.Accounts
	Devices     authstore.Devices
	Sessions    authstore.Sessions
	Lockouts    authstore.Lockouts
	Pending     authstore.PendingLogins
	Links       authstore.Links
	Directory   authstore.Directory
	Operators   authstore.Operators
	Transaction transaction.Runner
	Grants      authority.Granter

	Passwords secrets.PasswordHasher
	Mail      Mail
	Notices   *notices.Notifier
	Cache     sessioncache.Cache
	Trail     *auditing.Trail
	Clock     clock.Clock
	Entropy   secrets.Entropy
	Root      auth.RootSecret // the keys of this package are derived from it
}

// Service manages accounts. Its changes are in the audit log, with the operator as actor. Ended
// sessions are refused on every instance within sessioncache.MaxAge. It is safe for concurrent use.
type Service struct {
	config     Config
	ports      Ports
	lockoutKey auth.Key
	rules      PasswordRules

	secondFactor auth.SecondFactor
}

// New returns a service. It returns an error if a setting is out of range or the root secret is too
// short.
func New(c Config, p Ports) (*Service, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	key, err := p.Root.Derive(auth.LockoutPurpose)
	if err != nil {
		return nil, err
	}
	secondFactor, err := auth.NewSecondFactor(p.Root)
	if err != nil {
		return nil, err
	}
	return &Service{
		config: c, ports: p, lockoutKey: key, rules: NewPasswordRules(), secondFactor: secondFactor,
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
	a, err := s.NewAccount(ctx, p)
	if err == nil {
		err = s.ports.Transaction.Atomically(ctx, func(ctx context.Context) error {
			return s.create(ctx, a, audit.Change{Action: "add", ByOperator: true})
		})
	}
	if err != nil {
		return auth.Account{}, err
	}
	return a, nil
}

// NewAccount returns an account that can be stored. The errors are those of Add for rules.
func (s *Service) NewAccount(ctx context.Context, p Person) (auth.Account, error) {
	a, err := s.newInvited(p.Email, p.Name)
	if err != nil {
		return auth.Account{}, err
	}
	if err := CheckPhone(p.Phone); err != nil {
		return auth.Account{}, err
	}
	a.Phone, a.State = p.Phone, auth.AccountActive
	a.PasswordHash, err = s.HashPassword(ctx, "password", p.Password, &a)
	return a, err
}

// newInvited returns an account without a password.
func (s *Service) newInvited(email auth.Email, name string) (auth.Account, error) {
	name, err := ParseName(name)
	now := s.ports.Clock.Now()
	return auth.Account{
		ID: secrets.NewUUID[auth.UserID](s.ports.Entropy), Email: email, Name: name, State: auth.AccountInvited,
		CreatedAt: now, UpdatedAt: now,
	}, err
}

// AddFirst creates the first account, which may do everything, in the transaction of the context.
// It returns fault.Conflict if there is an account.
func (s *Service) AddFirst(ctx context.Context, a auth.Account) error {
	if err := s.ports.Operators.Lock(ctx); err != nil {
		return err
	}
	if err := s.CheckEmpty(ctx); err != nil {
		return err
	}
	ctx = auditing.ByPerson(ctx, a.ID)
	if err := s.create(ctx, a, audit.Change{Action: "setup", ByOperator: true}); err != nil {
		return err
	}
	err := s.ports.Grants.GiveGrants(ctx, string(a.ID), authority.FirstGrants())
	if err != nil {
		return err
	}
	return s.ports.Links.RemoveAll(ctx, "", auth.LinkSetup)
}

// AddFromCompany creates the account of a person whom a provider has signed in, without a password,
// in the transaction of the context. A name that cannot be used is replaced by the e-mail address.
func (s *Service) AddFromCompany(ctx context.Context, email auth.Email, name string) (auth.Account, error) {
	if _, err := ParseName(name); err != nil {
		name = string(email)
	}
	a, err := s.newInvited(email, name)
	if err != nil {
		return auth.Account{}, err
	}
	a.State = auth.AccountActive
	return a, s.create(ctx, a, audit.Change{Action: "create"})
}

// CheckEmpty returns fault.Conflict if there is an account.
func (s *Service) CheckEmpty(ctx context.Context) error {
	found, err := s.ports.Accounts.List(ctx, "", 1)
	if err == nil && len(found) > 0 {
		err = fault.New(fault.Conflict, "the service is set up: there is an account")
	}
	return err
}

// create stores an account with its event. The event has no user, so that it is not in the person's
// own log.
func (s *Service) create(ctx context.Context, a auth.Account, change audit.Change) error {
	if err := s.ports.Operators.Lock(ctx); err != nil { // a setup sees it, or comes first
		return err
	}
	err := s.ports.Accounts.Create(ctx, a)
	if fault.Is(err, fault.Conflict) {
		return fault.Wrap(fault.Conflict, "this e-mail address has an account", err)
	}
	if err != nil {
		return err
	}
	change.Category = audit.AccountChange
	change.Details = audit.About(audit.Details{"userId": audit.Text(a.ID)}, newObject(&a))
	return s.ports.Trail.RecordChanges(ctx, change)
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

// Search returns people, ordered by e-mail address.
func (s *Service) Search(ctx context.Context, q authstore.DirectoryQuery) ([]authstore.Person, error) {
	return s.ports.Directory.Search(ctx, q)
}

// Groups returns the groups in which people are, as authstore.Directory.Groups does.
func (s *Service) Groups(ctx context.Context) ([]string, error) { return s.ports.Directory.Groups(ctx) }

// ByID returns a person, or fault.NotFound.
func (s *Service) ByID(ctx context.Context, id auth.UserID) (authstore.Person, error) {
	found, err := s.Search(ctx, authstore.DirectoryQuery{ID: id, Limit: 1})
	if err == nil && len(found) == 0 {
		err = auth.NotFound("person")
	}
	if err != nil {
		return authstore.Person{}, err
	}
	return found[0], nil
}

// HashPassword returns the hash of a new password of a person. The error names the field if the
// password breaks a rule.
func (s *Service) HashPassword(
	ctx context.Context, field string, p auth.Password, a *auth.Account,
) (auth.PasswordHash, error) {
	if err := s.rules.Check(field, p, a.Email, a.Name); err != nil {
		return "", err
	}
	return s.ports.Passwords.Hash(ctx, p)
}

// ParseName returns the name of a person: 1 to 200 characters. Anything else is fault.Invalid with
// code validation_error.
func ParseName(s string) (string, error) {
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

// CheckPhone returns fault.Invalid with code validation_error for a text that is neither empty nor an
// international telephone number.
func CheckPhone(s string) error {
	if s != "" && !phonePattern.MatchString(s) {
		return auth.InvalidField(auth.CodeValidation, "phone",
			"must be an international number, for example +4930123456")
	}
	return nil
}
