package auth

import (
	"hash/crc32"
	"math/big"
	"net/netip"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/scope"
)

// APISecret is a token of a person or of a service account in clear: its prefix, 43 characters of
// base62 with 256 random bits, and 6 of the CRC-32 of what is before them. It prints as a
// placeholder.
type APISecret string

// The parts of an APISecret.
const (
	personPrefix  = "tgp_"
	servicePrefix = "tgs_"
	bodyLength    = 43 // characters of 256 bits
	sumLength     = 6  // characters of 32 bits
	shownLength   = 12 // characters of APIToken.Prefix
)

// String returns a placeholder.
func (APISecret) String() string { return "[token]" }

// GoString returns a placeholder.
func (s APISecret) GoString() string { return s.String() }

// newAPISecret returns the token of 256 random bits.
func newAPISecret(prefix string, random [32]byte) APISecret {
	text := prefix + base62(new(big.Int).SetBytes(random[:]), bodyLength)
	return APISecret(text + checksum(text))
}

func checksum(text string) string {
	return base62(big.NewInt(int64(crc32.ChecksumIEEE([]byte(text)))), sumLength)
}

// base62 returns the digits of a number, 0 to 9, A to Z and a to z, with zeros in front of them.
func base62(n *big.Int, length int) string {
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	base, rest := big.NewInt(int64(len(digits))), new(big.Int)
	text := make([]byte, length)
	for i := range text {
		n, rest = new(big.Int).DivMod(n, base, rest)
		text[length-1-i] = digits[rest.Int64()]
	}
	return string(text)
}

// IsAPISecret reports whether a text has the prefix of a token of a person or of a service account.
func IsAPISecret(text string) bool {
	return strings.HasPrefix(text, personPrefix) || strings.HasPrefix(text, servicePrefix)
}

// IsWellFormed reports whether the token has the length of one and its checksum is right. Anything
// else was never issued.
func (s APISecret) IsWellFormed() bool {
	if len(s) != len(personPrefix)+bodyLength+sumLength || !IsAPISecret(string(s)) {
		return false
	}
	text, sum := string(s[:len(s)-sumLength]), string(s[len(s)-sumLength:])
	return !strings.ContainsFunc(text[len(personPrefix):], notInBase62) && checksum(text) == sum
}

func notInBase62(r rune) bool {
	return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r)
}

// Owner is the owner of tokens: the id of a person, or service: and the name of a service account.
type Owner string

// ServiceOwner returns a service account as an owner.
func ServiceOwner(name string) Owner { return Owner(audit.ServiceActor + name) }

// Service returns the name of a service account; ok is false for a person.
func (o Owner) Service() (name string, ok bool) {
	return strings.CutPrefix(string(o), audit.ServiceActor)
}

// APITokenID names a token of a person or of a service account.
type APITokenID string

// APIToken is a token of a person or of a service account as it is stored, by its hash.
type APIToken struct {
	ID       APITokenID
	Hash     TokenHash
	Owner    Owner
	Name     string
	Prefix   string // the first characters of the token, by which people recognise it
	Scopes   scope.Set
	Networks []netip.Prefix // from which it is good; empty for everywhere
	// Workload is true for the token that a workload of a service account got for its ID token. It
	// is neither listed nor counted.
	Workload     bool
	CreatedBy    Owner
	CreatedAt    time.Time
	ExpiresAt    time.Time
	NoticeAt     time.Time // when its end is announced next; zero for never
	LastUsedAt   time.Time // to the minute; zero before the first use
	LastUsedFrom netip.Addr
}

// WorkloadTTL is the lifetime of the token of a workload.
const WorkloadTTL = 10 * time.Minute

// The bounds of tokens.
const (
	maxTokenName   = 64 // characters
	maxNetworks    = 20
	minTokenTTL    = 24 * time.Hour
	maxTokenTTL    = 365 * minTokenTTL
	tokenTTL       = 90 * minTokenTTL
	personTokens   = 20
	serviceTokens  = 50
	tokenTolerance = time.Minute // for what has passed since the client read its clock
)

// MaxTokens returns how many tokens an owner may have that have not expired.
func (o Owner) MaxTokens() int {
	if _, ok := o.Service(); ok {
		return serviceTokens
	}
	return personTokens
}

// APITokenDraft is a token as its maker describes it; empty fields were left out.
type APITokenDraft struct {
	Name      string
	Scopes    []string
	ExpiresAt time.Time
	Networks  []string
}

// NewAPIToken returns the token of a draft, without ID, Owner, CreatedBy and secret. The error is
// fault.Invalid with code validation_error and the problems in details.fields.
func NewAPIToken(d APITokenDraft, now time.Time) (APIToken, error) {
	problems := map[string]string{}
	t := APIToken{Name: strings.TrimSpace(d.Name), CreatedAt: now, ExpiresAt: d.ExpiresAt}
	if n := utf8.RuneCountInString(t.Name); n < 1 || n > maxTokenName || !utf8.ValidString(t.Name) ||
		strings.ContainsFunc(t.Name, unicode.IsControl) {
		problems["name"] = "must have 1 to 64 characters, without control characters"
	}
	var err error
	if t.Scopes, err = scope.Parse(d.Scopes); err != nil {
		problems["scopes"] = fault.PublicMessage(err)
	}
	if t.ExpiresAt.IsZero() {
		t.ExpiresAt = now.Add(tokenTTL)
	}
	if left := t.ExpiresAt.Sub(now); left < minTokenTTL-tokenTolerance || left > maxTokenTTL+tokenTolerance {
		problems["expiresAt"] = "must be 1 to 365 days from now"
	}
	t.ExpiresAt = t.ExpiresAt.UTC().Truncate(time.Second)
	if t.Networks, err = parseNetworks(d.Networks); err != nil {
		problems["networks"] = err.Error()
	}
	if len(problems) > 0 {
		return APIToken{}, InvalidFields(CodeValidation, problems)
	}
	t.NoticeAt = t.NextNotice(now)
	return t, nil
}

func parseNetworks(texts []string) ([]netip.Prefix, error) {
	if len(texts) > maxNetworks {
		return nil, fault.Newf(fault.Invalid, "must have at most %d networks", maxNetworks)
	}
	var list []netip.Prefix
	for _, text := range texts {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fault.Newf(fault.Invalid, "must not have %.60q: a network is an address and a length, for "+
				"example 192.0.2.0/24", text)
		}
		list = append(list, p.Masked())
	}
	return list, nil
}

// NewWorkloadToken returns the token of a workload of a service account, without ID and secret.
func NewWorkloadToken(service string, scopes scope.Set, now time.Time) APIToken {
	return APIToken{
		Owner: ServiceOwner(service), CreatedBy: ServiceOwner(service), Name: "workload", Scopes: scopes,
		Workload: true, CreatedAt: now, ExpiresAt: now.Add(WorkloadTTL),
	}
}

// Issue returns the token with a secret of 256 random bits, of which it has the hash, and the
// secret.
func (t APIToken) Issue(random [32]byte) (APIToken, APISecret) {
	prefix := personPrefix
	if _, ok := t.Owner.Service(); ok {
		prefix = servicePrefix
	}
	secret := newAPISecret(prefix, random)
	t.Hash, t.Prefix = HashSecret(secret), string(secret[:shownLength])
	return t, secret
}

// Describe returns the name and the end of the token for its owner.
func (t *APIToken) Describe() string {
	return t.Name + " (" + t.Prefix + "…), until " + t.ExpiresAt.UTC().Format("2 January 2006, 15:04 UTC")
}

// Admits reports whether the token is good from an address.
func (t *APIToken) Admits(from netip.Addr) bool {
	from = from.Unmap().WithZone("")
	return len(t.Networks) == 0 ||
		slices.ContainsFunc(t.Networks, func(p netip.Prefix) bool { return p.Contains(from) })
}

// tokenNotices are how long before its end the end of a token is announced.
var tokenNotices = []time.Duration{14 * 24 * time.Hour, 2 * 24 * time.Hour}

// NextNotice returns when the end of the token is announced next, later than after; zero for never.
// A token that lives shorter than the time of a notice has no such notice.
func (t *APIToken) NextNotice(after time.Time) time.Time {
	for _, before := range tokenNotices {
		if at := t.ExpiresAt.Add(-before); at.After(after) {
			return at
		}
	}
	return time.Time{}
}

// useStep is how often the last use of a token is stored, at most.
const useStep = time.Minute

// Use sets the last use of the token, and reports whether it is to be stored.
func (t *APIToken) Use(now time.Time, from netip.Addr) bool {
	minute := now.UTC().Truncate(useStep)
	if !minute.After(t.LastUsedAt) {
		return false
	}
	t.LastUsedAt, t.LastUsedFrom = minute, from
	return true
}
