package authorizing

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authorization"
)

// This file decides whether somebody may have a token for a resource now (contract T-9, T-11, T-17). The
// same is decided at each step.

// no is a decision against a token: the code for the client, and the reason for the audit log.
type no struct {
	code fault.Code
	why  string
}

// Error returns the reason.
func (n no) Error() string { return n.why }

var (
	errNotAdmitted  = no{oauth.CodeInvalidTarget, "the client may not have this resource"}
	errSessionEnded = no{oauth.CodeInvalidGrant, "the session has ended"}
)

// target is a resource as it is now.
type target struct {
	oauth.Resource

	servers  []oauth.Server
	registry bool
}

// listed returns the servers that are listed, in the order of their names.
func (t *target) listed() []oauth.Server {
	all := slices.DeleteFunc(slices.Clone(t.servers), func(one oauth.Server) bool { return !one.Listed })
	slices.SortFunc(all, func(a, b oauth.Server) int { return strings.Compare(a.Name.String(), b.Name.String()) })
	return all
}

// maxResources is how many resources there are at most.
const maxResources = 1000

// findTarget returns a resource that a client may have by its URL, with the servers that are listed with
// it. The error is no with CodeInvalidTarget if there is no resource, it is closed, or the client may
// not have it. Without a client the last is not decided.
func (s *Service) findTarget(ctx context.Context, text string, c *oauth.Client) (t target, err error) {
	url, ok := oauth.CanonicalURL(text)
	if !ok {
		return t, no{oauth.CodeInvalidTarget, "the resource must be an absolute URL without a fragment"}
	}
	if own, _ := oauth.CanonicalURL(s.config.Issuer); url == own {
		t = target{Resource: oauth.Registry(s.config.Issuer), registry: true}
	} else if t, err = s.findServers(ctx, text, url); err != nil {
		return target{}, err
	}
	if closed := oauth.Closed(t.servers); closed != "" && !t.registry {
		return t, no{oauth.CodeInvalidTarget, closed}
	}
	if c != nil && !t.Admits(c) {
		return t, errNotAdmitted
	}
	return t, nil
}

// findServers returns the resource with a canonical URL that is declared, or else listed.
func (s *Service) findServers(ctx context.Context, text, url string) (t target, err error) {
	all, err := s.declared.Of(struct{}{}, s.ports.Clock.Now(), func() ([]oauth.Resource, error) {
		return s.ports.Resources.List(ctx, "", maxResources)
	})
	if err != nil {
		return t, err
	}
	for i := range all {
		if own, _ := oauth.CanonicalURL(all[i].URL); own == url {
			t.Resource = all[i]
			t.servers, err = s.ports.Gate.Servers(ctx, url, t.Servers)
			return t, err
		}
	}
	if s.config.AllListed && strings.HasPrefix(url, "https://") {
		t.Resource = oauth.Undeclared(text)
		if t.servers, err = s.ports.Gate.Servers(ctx, url, nil); err != nil {
			return t, err
		}
		if len(t.servers) > 0 {
			// Spelled as the request has it, if a server does: another one cannot change whom a token is for.
			if !slices.ContainsFunc(t.servers, func(one oauth.Server) bool { return one.URL == text }) {
				t.URL = cmp.Or(t.servers[0].URL, text)
			}
			return t, nil
		}
	}
	return t, no{oauth.CodeInvalidTarget, "there is no such resource"}
}

// permit returns the least trust level that the access rules need for a call of the target: of one of
// its servers if it is declared, and otherwise of all. The error is no if they do not allow it.
func (s *Service) permit(ctx context.Context, t *target, q authorization.Question) (auth.TrustLevel, error) {
	refused := no{oauth.CodeAccessDenied, "no access rule allows a call"}
	if t.registry {
		return 0, nil
	}
	var least auth.TrustLevel
	found := false
	for i := range t.servers {
		if !t.servers[i].Listed {
			continue
		}
		q.Server = t.servers[i].Name
		level, ok, err := s.ports.Gate.Permits(ctx, q)
		switch {
		case err != nil:
			return 0, err
		case !ok && t.Name == "":
			return 0, refused
		case ok && t.Name != "" && found:
			least = min(least, level)
		case ok:
			least = max(least, level)
			found = true
		}
	}
	if !found {
		return 0, refused
	}
	return least, nil
}

// needed returns the level that a token for the target needs.
func (t *target) needed(least auth.TrustLevel) auth.TrustLevel {
	return max(t.MinTrust, least, auth.Unverified)
}

// standing is how far the person of a grant is trusted now.
type standing struct {
	sessionID auth.SessionID // empty for an assertion
	level     auth.TrustLevel
	authTime  time.Time
	until     time.Time  // of a session; otherwise zero
	address   netip.Addr // at which it began
	groups    []string   // in place of those of the person; nil for those
}

// findStanding returns how far the person of a family is trusted. The error is no if the session or the identity
// has ended, or the person may not sign in.
func (s *Service) findStanding(ctx context.Context, f *oauth.Family) (standing, error) {
	gone := no{oauth.CodeInvalidGrant, "the person may not sign in"}
	account, err := s.ports.Accounts.Get(ctx, f.UserID)
	if fault.Is(err, fault.NotFound) || err == nil && account.State != auth.AccountActive {
		err = gone
	}
	if err != nil {
		return standing{}, err
	}
	if f.SessionID == "" {
		found := standing{level: f.Level, authTime: f.AuthTime, groups: f.Groups}
		return found, s.checkIdentity(ctx, f)
	}
	session, err := s.ports.Sessions.Get(ctx, f.SessionID)
	if fault.Is(err, fault.NotFound) || err == nil && (!session.Active(s.ports.Clock.Now()) || session.UserID != f.UserID) {
		err = errSessionEnded
	}
	if err != nil {
		return standing{}, err
	}
	return standingOf(&session), nil
}

func standingOf(session *auth.Session) standing {
	return standing{
		sessionID: session.ID, level: session.TrustLevel, authTime: session.Authenticated(), until: session.ExpiresAt,
		address: session.IPAddress,
	}
}

// checkIdentity returns no unless the provider of an assertion still makes some, and has not said since
// that the person has left.
func (s *Service) checkIdentity(ctx context.Context, f *oauth.Family) error {
	all, err := s.asserting(ctx)
	if err != nil {
		return err
	}
	p := company.Named(all, f.Provider)
	if p == nil {
		return no{oauth.CodeInvalidGrant, "the provider makes no assertions any more"}
	}
	linked, err := s.ports.Identities.Find(ctx, p.Issuer, f.Subject)
	if fault.Is(err, fault.NotFound) || err == nil && (linked.UserID != f.UserID || linked.ConfirmedAt.IsZero()) {
		return no{oauth.CodeInvalidGrant, "the person has left the company"}
	}
	return err
}

// answer is what is found about a family of which a token may be issued, or is good, now.
type answer struct {
	target   target
	standing standing
	scopes   []string
}

// decide returns the answer about a family of a client for a request from an address, or no.
func (s *Service) decide(ctx context.Context, f *oauth.Family, c *oauth.Client, from netip.Addr) (a answer, err error) {
	if a.standing, err = s.findStanding(ctx, f); err != nil {
		return a, err
	}
	if a.target, err = s.findTarget(ctx, f.Resource, c); err != nil {
		return a, err
	}
	if !from.IsValid() {
		from = a.standing.address
	}
	least, err := s.permit(ctx, &a.target, authorization.Question{
		UserID: f.UserID, Groups: a.standing.groups, Client: f.Client, From: from,
	})
	if err != nil {
		return a, err
	}
	if need := a.target.needed(least); !a.standing.level.Admits(need) {
		return a, no{oauth.CodeUnmetAuthentication, "this needs " + need.String() + ", and there is " + a.standing.level.String()}
	}
	a.scopes = oauth.CommonScopes(f.Scopes, a.target.Scopes)
	if len(a.scopes) == 0 && len(f.Scopes) > 0 {
		return a, no{oauth.CodeInvalidScope, "the resource has no scope of the grant any more"}
	}
	return a, nil
}
