package event

import (
	"encoding/base64"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
)

// MaxWebhooks is the greatest number of webhooks.
const MaxWebhooks = 50

// maxURL is the greatest length of the URL of a webhook, in bytes.
const maxURL = 2048

// WebhookID identifies a webhook; it is a UUID in lower case.
type WebhookID string

// Secret is the text whose bytes are the key of signatures: 256 random bits in base64. It prints as
// a placeholder.
type Secret string

// NewSecret returns the secret of random bits.
func NewSecret(random [32]byte) Secret { return Secret(base64.StdEncoding.EncodeToString(random[:])) }

// The bounds of a secret that an operator chooses, in characters.
const (
	minSecret = 16
	maxSecret = 256
)

// ParseSecret returns a secret that an operator has chosen. It returns fault.Invalid for one that is
// short, long, or not of visible ASCII characters.
func ParseSecret(s string) (Secret, error) {
	if len(s) < minSecret || len(s) > maxSecret || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return "", fault.Newf(fault.Invalid, "secret must have %d to %d visible ASCII characters", minSecret, maxSecret)
	}
	return Secret(s), nil
}

// String returns a placeholder.
func (Secret) String() string { return "[webhook secret]" }

// GoString returns a placeholder.
func (s Secret) GoString() string { return s.String() }

// Webhook is a receiver of events.
type Webhook struct {
	ID        WebhookID
	URL       URL
	Events    []Type // at least one, in the order of Types, each once
	Pattern   registry.Pattern
	Secret    []byte // sealed
	CreatedAt time.Time
	ManagedBy string // the owner of the file that manages the webhook; empty without one
}

// Object returns the webhook as the audit log describes it: of the URL, it shows the host only.
func (w *Webhook) Object() audit.Object {
	secret := audit.HashSecret(w.URL.String() + " " + string(w.Secret))
	return audit.Object{Kind: "webhook", Key: string(w.ID), Fields: audit.Details{
		"host": audit.Text(w.URL.Host()), audit.FieldSecret: audit.Text(secret), "events": audit.Texts(w.Events),
		"pattern": audit.Text(w.Pattern.String()), "managedBy": audit.Text(w.ManagedBy),
	}}
}

// Draft has the parameters of a webhook, as they were given.
type Draft struct {
	URL     string
	Events  []string
	Pattern string // empty for all servers
	Secret  Secret // empty for a random one, or to keep that of a webhook that is changed
	// ManagedBy is empty to keep that of a webhook that is changed.
	ManagedBy string
}

// Draft returns the parameters of the webhook.
func (w *Webhook) Draft() Draft {
	events := each.Strings(w.Events)
	return Draft{URL: w.URL.String(), Events: events, Pattern: w.Pattern.String(), ManagedBy: w.ManagedBy}
}

// New returns a webhook without an ID, a secret and a time. It returns fault.Invalid, with the name
// of the parameter, for a wrong one.
func New(d Draft) (Webhook, error) {
	w := Webhook{ManagedBy: d.ManagedBy}
	var err error
	if w.URL, err = ParseURL(d.URL); err != nil {
		return Webhook{}, fault.In("url", err)
	}
	if len(d.Events) == 0 {
		return Webhook{}, fault.In("events", fault.New(fault.Invalid, "events is missing: name at least one"))
	}
	wanted := make(map[Type]bool, len(d.Events))
	for _, s := range d.Events {
		t, err := ParseType(s)
		if err != nil {
			return Webhook{}, fault.In("events", err)
		}
		wanted[t] = true
	}
	w.Events = slices.DeleteFunc(Types(), func(t Type) bool { return !wanted[t] })
	if d.Pattern == "" {
		d.Pattern = "*"
	}
	w.Pattern, err = registry.ParsePattern(d.Pattern)
	return w, fault.In("pattern", err)
}

// Wants reports whether the webhook receives events of a type about a server, or of no server in
// particular if the name is the zero one.
func (w *Webhook) Wants(t Type, name registry.Name) bool {
	return slices.Contains(w.Events, t) && (name == registry.Name{} || w.Pattern.Matches(name))
}

// URL is where a webhook receives events. The zero value is no URL.
type URL struct {
	text     string
	host     string // with its port, if there is one
	loopback bool
}

// ParseURL returns a URL. It returns fault.Invalid unless the URL is absolute, has the scheme
// https, or http and a loopback host, and has neither credentials nor a fragment (contract C-51).
func ParseURL(s string) (URL, error) {
	if len(s) > maxURL {
		return URL{}, fault.Newf(fault.Invalid, "url must have at most %d bytes", maxURL)
	}
	u, err := url.Parse(s)
	if err != nil || u.Hostname() == "" || u.Opaque != "" ||
		strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return URL{}, fault.New(fault.Invalid, "url must be an absolute URL, such as https://example.com/hook")
	}
	loopback := isLoopback(u.Hostname())
	switch {
	case u.User != nil:
		return URL{}, fault.New(fault.Invalid,
			"url must not contain a user name or a password: the receiver checks the signature")
	case strings.Contains(s, "#"):
		return URL{}, fault.New(fault.Invalid, "url must not have a fragment")
	case u.Scheme != "https" && (u.Scheme != "http" || !loopback):
		return URL{}, fault.New(fault.Invalid,
			"url must begin with https://; http:// is for a loopback host only, such as 127.0.0.1")
	}
	return URL{s, u.Host, loopback}, nil
}

// isLoopback reports whether a host is this machine by its name: localhost or a loopback address.
func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Zone() == "" && a.Unmap().IsLoopback()
}

// String returns the text of the URL.
func (u URL) String() string { return u.text }

// Host returns the host of the URL, with its port if it has one. It is all of the URL that is shown
// to others than operators: its path may be secret.
func (u URL) Host() string { return u.host }

// Hostname returns the host of the URL without its port.
func (u URL) Hostname() string {
	return (&url.URL{Host: u.host}).Hostname()
}

// Masked returns the URL with "…" in place of the last part of its path and the query, which may be
// secret.
func (u URL) Masked() string {
	text, _, query := strings.Cut(u.text, "?")
	start := strings.Index(text, "://") + len("://") + len(u.host)
	path := strings.TrimRight(text[start:], "/")
	if path == "" && !query {
		return text
	}
	return text[:start] + path[:max(0, strings.LastIndexByte(path, '/'))] + "/…"
}

// IsLoopback reports whether the host of the URL is localhost or a loopback address. Only then may
// an event be sent to a loopback address.
func (u URL) IsLoopback() bool { return u.loopback }
