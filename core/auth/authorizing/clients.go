package authorizing

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/fields"
	"github.com/tollgate-dev/tollgate/core/recent"
	"github.com/tollgate-dev/tollgate/ports/throttle"
)

// count counts a request of a client from an address against a limit (contract T-21). Who has one IPv6
// address has all of its /64. It returns fault.Exhausted over the limit.
func (s *Service) count(ctx context.Context, scope throttle.Scope, client string, from netip.Addr) error {
	key := from.String()
	if network, err := from.Prefix(64); err == nil && from.Is6() && !from.Is4In6() { //nolint:mnd // see above
		key = network.String()
	}
	v, err := s.ports.Throttle.Try(ctx, scope, client+key)
	if err != nil || v.Allowed || v.Unlimited {
		return err
	}
	return fault.New(fault.Exhausted, "too many requests: try again later").
		WithCode(auth.CodeRateLimit).After(v.RetryAfter(s.ports.Clock.Now()))
}

// Admits reports whether the settings admit a client by document (contract T-5, T-6).
func (c *Config) Admits(id oauth.ClientID) bool {
	switch c.Clients {
	case ClientsOpen:
		return id.IsDocumentURL()
	case ClientsOfHosts:
		return id.IsDocumentURL() && id.IsOf(c.Hosts)
	case ClientsRegistered:
	}
	return false
}

// findClient returns a client. It returns fault.NotFound for one that is unknown or not admitted, and
// otherwise the errors of Documents.Client.
func (s *Service) findClient(ctx context.Context, id oauth.ClientID, from netip.Addr) (oauth.Client, error) {
	switch {
	case !id.IsURL() && fields.IsText(string(id), fields.MaxText):
		return s.ports.Clients.Get(ctx, id)
	case !s.config.Admits(id):
		return oauth.Client{}, fault.New(fault.NotFound, "there is no such client here")
	}
	c, err := s.ports.Documents.Client(ctx, id)
	if err == nil || fault.Is(err, fault.Invalid) {
		s.noteDocument(ctx, id, &c, err, from)
	}
	return c, err
}

// How often it is stored that a document was read, and that it was read for the first time.
const (
	noteEvery  = 10 * time.Minute
	firstEvery = 24 * time.Hour
	maxSeen    = 1000
)

// noteDocument stores what happened when the document of a client was read, and records it the first
// time, and whenever it is refused. Errors are ignored: they are not worth refusing the client.
func (s *Service) noteDocument(ctx context.Context, id oauth.ClientID, c *oauth.Client, why error, from netip.Addr) {
	now := s.ports.Clock.Now()
	note := oauth.Sighting{URL: id, Name: c.Name, At: now}
	terms := c.Terms()
	state := string(id) + " " + hex.EncodeToString(terms[:])
	if why != nil {
		note.Name, note.Problem = "", fault.PublicMessage(why)
		state = string(id) + " " + note.Problem
	}
	sum := sha256.Sum256([]byte(now.Truncate(noteEvery).String() + state))
	if known, ok := s.seen.Get(id); ok && known == sum {
		return
	}
	s.seen.Put(id, sum, 1, now, recent.Bounds{Size: maxSeen, Age: noteEvery})
	if first, err := s.ports.Used.Claim(ctx, "oauth sighting "+state, noteEvery); err != nil || !first {
		return
	}
	_ = s.ports.Transactions.Atomically(ctx, func(ctx context.Context) error { // see above
		return s.ports.Sightings.Note(ctx, note)
	})
	if why == nil {
		if first, err := s.ports.Used.Claim(ctx, "oauth document "+state, firstEvery); err != nil || !first {
			return
		}
	}
	_ = s.ports.Trail.RecordChanges(ctx, oauth.NewDocumentChange(&note, from)) // see above
}
