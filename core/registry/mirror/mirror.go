// Package mirror has the rules of mirrors, by which a registry takes over servers of another one
// (contract C-60 to C-70): which servers a mirror takes, when it reads the other registry, which of
// its versions have changed, and when its list is too short to be believed. It does no I/O.
package mirror

import (
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
