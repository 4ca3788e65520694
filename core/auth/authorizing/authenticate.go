package authorizing

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
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

// assertionType is the type of an assertion by which a client proves who it is (RFC 7523, section 2.2).
const assertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

// maxClientID is the greatest length of the id of a client that counts against a limit of its own.
const maxClientID = 2048

func errClient() error {
	return oauth.Refuse(oauth.CodeInvalidClient, "the client is unknown, or has not proved who it is")
}

// claim is how a request proves its client: by one method.
type claim struct {
	id     oauth.ClientID
	method oauth.Method
	secret string // or the assertion
}

// readClaim returns how a request proves its client (contract T-15). The error has CodeInvalidRequest, or
// CodeInvalidClient for one that names no client.
func readClaim(r *TokenRequest) (c claim, err error) {
	if err := oauth.Once(r.Form); err != nil {
		return c, err
	}
	named, assertion := r.Form.Get(oauth.ParameterClient), r.Form.Get("client_assertion")
	c = claim{oauth.ClientID(named), oauth.MethodNone, ""}
	ways := 0
	if r.Basic != nil {
		c = claim{oauth.ClientID(r.Basic.ID), oauth.MethodSecretBasic, r.Basic.Secret}
		ways++
	}
	if secret := r.Form.Get("client_secret"); secret != "" {
		c.method, c.secret = oauth.MethodSecretInForm, secret
		ways++
	}
	if kind := r.Form.Get("client_assertion_type"); assertion != "" || kind != "" {
		if kind != assertionType {
			return c, oauth.Refuse(oauth.CodeInvalidRequest, "client_assertion_type must be %s", assertionType)
		}
		c = claim{oauth.ClientID(oauth.SubjectOf(assertion)), oauth.MethodPrivateKey, assertion}
		ways++
	}
	switch {
	case ways > 1:
		return c, oauth.Refuse(oauth.CodeInvalidRequest, "a client proves in one way who it is")
	case c.id == "" || len(c.id) > maxClientID || named != "" && named != string(c.id):
		return c, errClient()
	}
	return c, nil
}

// authenticate returns the client of a request at one of the endpoints. The error has CodeInvalidRequest,
// CodeInvalidClient, which is the same for an unknown client and one that has not proved who it is, or is
// fault.Exhausted or fault.Unavailable.
func (s *Service) authenticate(ctx context.Context, r *TokenRequest) (client oauth.Client, err error) {
	c, err := readClaim(r)
	if err != nil {
		return client, err
	}
	sum := sha256.Sum256([]byte(c.id))
	if err := s.count(ctx, throttle.OAuthToken, hex.EncodeToString(sum[:])+" ", r.From); err != nil {
		return client, err
	}
	client, err = s.findClient(ctx, c.id, r.From)
	if f, ok := fault.As(err); ok && f.Code == oauth.CodeDocumentAway {
		return client, fault.Wrap(fault.Unavailable, "the document of the client cannot be read now: "+f.Message, err)
	}
	if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Invalid) {
		client, err = oauth.Client{Method: c.method}, nil // compared all the same, so that it takes as long
	}
	if err != nil {
		return client, err
	}
	proved, err := s.proves(ctx, &client, c)
	if err == nil && !proved {
		err = errClient()
	}
	return client, err
}

// proves reports whether a claim proves its client.
func (s *Service) proves(ctx context.Context, client *oauth.Client, c claim) (bool, error) {
	known := client.ID == c.id && client.Method == c.method
	switch c.method {
	case oauth.MethodNone:
		return known, nil
	case oauth.MethodSecretBasic, oauth.MethodSecretInForm:
		given := sha256.Sum256([]byte(c.secret))
		same := subtle.ConstantTimeCompare(given[:], client.SecretHash[:]) == 1
		return known && same && client.SecretHash != auth.TokenHash{}, nil
	case oauth.MethodPrivateKey:
		if known {
			return true, s.checkAssertion(ctx, client, c)
		}
	}
	return false, nil
}

// checkAssertion returns the error of authenticate unless an assertion of a client is its own, and was not
// used before.
func (s *Service) checkAssertion(ctx context.Context, client *oauth.Client, c claim) error {
	payload, err := s.ports.Documents.Verify(ctx, client, c.secret)
	if fault.Is(err, fault.Unauthenticated) {
		return errClient()
	}
	if err != nil {
		return err
	}
	now := s.ports.Clock.Now()
	use, err := oauth.CheckClientAssertion(payload, client.ID, []string{s.config.Issuer, s.config.Issuer + oauth.TokenPath}, now)
	if err != nil {
		return err
	}
	first, err := s.ports.Used.Claim(ctx, "oauth client "+string(client.ID)+" "+use.ID, max(use.Until.Sub(now), time.Second))
	if err == nil && !first {
		err = errClient()
	}
	return err
}

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
