// Package mirror has the rules of mirrors, by which a registry takes over servers of another one
// (contract C-60 to C-70): which servers a mirror takes, when it reads the other registry, which of
// its versions have changed, and when its list is too short to be believed. It does no I/O.
package mirror

import (
	"crypto/sha256"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/fields"
	"github.com/tollgate-dev/tollgate/core/registry"
)

// The bounds of Mirror.Interval, and its default.
const (
	MinInterval     = time.Minute
	MaxInterval     = 7 * 24 * time.Hour
	DefaultInterval = time.Hour
)

// Name is the name of a mirror: 1 to 40 lower-case letters, digits and hyphens.
type Name string

// ParseName returns the name of a mirror. It returns fault.Invalid for a text of another form.
func ParseName(s string) (Name, error) {
	return Name(s), fields.CheckNameOf("the name of a mirror", s)
}

// Review is what becomes of the documents of a mirror in a registry that lists only what was
// approved.
type Review string

// The values of Review.
const (
	Pending Review = "pending" // they wait for review
	Trusted Review = "trusted" // they are listed at once
)

// ParseReview returns the value with the given name. It returns fault.Invalid for any other text.
func ParseReview(s string) (Review, error) {
	return fault.OneOf("review", s, Pending, Trusted)
}

// Mirror is another registry whose servers are taken over. New makes one.
type Mirror struct {
	Name      Name
	URL       URL
	Selection registry.Selection // which servers are taken
	Interval  time.Duration      // between two reads of the other registry
	Review    Review
	Flags
	CreatedAt time.Time
	ManagedBy string // the owner of the file that manages the mirror; empty without one
	State     State
}

// Flags are what is on or off of a mirror, in drafts and rows too.
type Flags struct {
	Lenient bool // documents that break rules are taken too (transfer.Options.Lenient)
}

// Draft is a mirror as an operator writes it. Interval and Review may be zero: DefaultInterval and
// Pending.
type Draft struct {
	Name, URL        string
	Include, Exclude []string
	Interval         time.Duration
	Review           string
	Flags
	ManagedBy string // empty to keep that of a mirror that is replaced
}

// New returns the mirror of a draft. It returns fault.Invalid, with the name of the field, if one
// is wrong.
func New(d Draft, now time.Time) (Mirror, error) {
	m := Mirror{
		Interval: DefaultInterval, Review: Pending, Flags: d.Flags, ManagedBy: d.ManagedBy,
		CreatedAt: now.UTC().Truncate(time.Microsecond),
	}
	m.State.NextAt = m.CreatedAt
	var err error
	if m.Name, err = ParseName(d.Name); err != nil {
		return Mirror{}, fault.In("name", err)
	}
	if m.URL, err = ParseURL(d.URL); err != nil {
		return Mirror{}, fault.In("url", err)
	}
	if m.Selection, err = registry.ParseSelection(d.Include, d.Exclude); err != nil {
		return Mirror{}, err
	}
	if d.Interval != 0 {
		m.Interval = d.Interval
	}
	if m.Interval < MinInterval || m.Interval > MaxInterval {
		return Mirror{}, fault.In("interval", fault.Newf(fault.Invalid, "interval must be from %s to %s, not %s",
			MinInterval, MaxInterval, m.Interval))
	}
	if d.Review != "" {
		if m.Review, err = ParseReview(d.Review); err != nil {
			return Mirror{}, fault.In("review", err)
		}
	}
	return m, nil
}

// Takes reports whether the mirror takes a server.
func (m *Mirror) Takes(name registry.Name) bool { return m.Selection.Includes(name) }

// Submitter returns the key of the mirror as the submitter of documents for review.
func (m *Mirror) Submitter() string { return submitterPrefix + string(m.Name) }

const submitterPrefix = "mirror:"

// OfSubmitter returns the mirror that is a submitter of documents. ok is false for a person and for
// a publisher.
func OfSubmitter(key string) (name Name, ok bool) {
	if len(key) <= len(submitterPrefix) || key[:len(submitterPrefix)] != submitterPrefix {
		return "", false
	}
	return Name(key[len(submitterPrefix):]), true
}

// maxURL is the greatest length of a URL in bytes.
const maxURL = 2048

// URL is the address of another registry, before /v0.1. The zero value is no URL.
type URL string

// ParseURL returns the address of a registry, without a slash at its end. It returns fault.Invalid
// unless it is an absolute http or https URL without credentials, query and fragment.
func ParseURL(s string) (URL, error) {
	if len(s) > maxURL {
		return "", fault.Newf(fault.Invalid, "url must have at most %d bytes", maxURL)
	}
	u, err := url.Parse(s)
	if err != nil || u.Hostname() == "" || u.Opaque != "" ||
		strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return "", fault.New(fault.Invalid, "url must be an absolute URL, such as https://registry.example.com")
	}
	base := strings.TrimRight(s, "/")
	switch {
	case u.Scheme != "https" && u.Scheme != "http":
		return "", fault.New(fault.Invalid, "url must begin with https:// or http://")
	case u.User != nil:
		return "", fault.New(fault.Invalid, "url must not contain a user name or a password")
	case strings.ContainsAny(s, "?#"):
		return "", fault.New(fault.Invalid, "url must not have a query or a fragment")
	case strings.HasSuffix(base, "/v0.1") || strings.HasSuffix(base, "/v0") || strings.HasSuffix(base, "/servers"):
		return "", fault.New(fault.Invalid, "url must end before /v0.1, such as https://registry.example.com")
	}
	return URL(base), nil
}

// token is the part of the address of a view that gives access to it.
var token = regexp.MustCompile(`/t/[^/]+`)

// Latest returns the address of the latest version of a server of the registry.
func (u URL) Latest(name registry.Name) URL {
	return u + URL("/v0.1/servers/"+url.PathEscape(name.String())+"/versions/latest")
}

// Public returns the URL for people who may not know its secret: the token of a view is replaced.
func (u URL) Public() string { return token.ReplaceAllString(string(u), "/t/***") }

// String returns the URL as Public does.
func (u URL) String() string { return u.Public() }

// GoString returns the URL as Public does.
func (u URL) GoString() string { return u.Public() }

// Address returns the whole URL, with its secret.
func (u URL) Address() string { return string(u) }

// Tracked is the state of a version in another registry that a mirror has taken.
type Tracked struct {
	Name    registry.Name
	Version registry.Version
	// Hash is the SHA-256 hash of the document.
	Hash    [sha256.Size]byte
	Status  registry.Status
	Message string
	// PublishedAt is UTC with microseconds; zero if the other registry gives no time.
	PublishedAt time.Time
	// StatusChangedAt likewise. It is zero for a status that the other registry did not give.
	StatusChangedAt time.Time
	// Review is the review to which the document was submitted; empty if it was listed at once. The
	// document is not listed while the review is pending or rejected.
	Review registry.ReviewID
}

// Upstream returns the state for the lineage of the server. document says whether the document is
// another one than the one that is listed.
func (t *Tracked) Upstream(document bool) registry.Upstream {
	return registry.Upstream{
		Release: registry.Release{
			Name: t.Name, Version: t.Version, Status: t.Status, StatusMessage: t.Message,
			StatusChangedAt: t.StatusChangedAt, PublishedAt: t.PublishedAt,
		},
		Document: document,
	}
}

// IsListed reports whether the other registry lists the version.
func (t *Tracked) IsListed() bool { return t.Status != registry.StatusDeleted }
