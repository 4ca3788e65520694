package oauth

import (
	"net/netip"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/each"
)

// This file makes the audit events of the authorization server (contract T-22).

// The actions of audit.Authorization.
const (
	ActionAllow     audit.Action = "allow"     // the person, or a remembered consent, has agreed
	ActionRefuse    audit.Action = "refuse"    // no token is issued, for the reason
	ActionToken     audit.Action = "token"     // a code was exchanged
	ActionRefresh   audit.Action = "refresh"   // a refresh token was exchanged
	ActionAssertion audit.Action = "assertion" // an ID-JAG was exchanged
	ActionRevoke    audit.Action = "revoke"    // the client, or the person, has ended the grant
	ActionDocument  audit.Action = "document"  // the document of a client was read
)

// NewChange returns the event of what is done with a grant from an address. The level is that of the
// person now, and the reason why it was refused; empty if it was not.
func NewChange( //nolint:revive // what an event says
	action audit.Action, f *Family, servers []Server, level auth.TrustLevel, from netip.Addr, reason string,
) audit.Change {
	details := f.details(from)
	names := each.MapRef(servers, func(s *Server) string { return s.Name.String() })
	details["servers"], details["scopes"] = audit.Texts(names), audit.Texts(f.Scopes)
	details.Set("trustLevel", level.String())
	details.Set("reason", reason)
	return audit.Change{
		Category: audit.Authorization, Action: action, Subject: audit.Subject(f.UserID), Failed: reason != "",
		Details: details,
	}
}

// NewReplay returns the event of a code or a refresh token that was used again.
func NewReplay(f *Family, servers []Server, level auth.TrustLevel, code bool, from netip.Addr) audit.Change {
	reason := "oauth_refresh_token_replay"
	if code {
		reason = "oauth_code_replay"
	}
	replay := NewChange("", f, servers, level, from, reason)
	replay.Category = audit.SuspiciousActivity
	return replay
}

// details returns the details that each event of a grant has.
func (f *Family) details(from netip.Addr) audit.Details {
	details := audit.Details{"client": audit.Text(f.Client), "resource": audit.Text(f.Resource)}
	auth.DescribeAddress(details, from)
	details.Set("clientName", f.ClientName)
	details.Set("familyId", string(f.ID))
	details.Set("sessionId", string(f.SessionID))
	if f.RedirectURI != "" {
		details.Set("host", RedirectHost(f.RedirectURI))
	}
	details.Set("provider", f.Provider)
	details.Set("subject", f.Subject)
	return details
}

// NewDocumentChange returns the event of a document that was read; the problem is why it was refused,
// and empty if it was not.
func NewDocumentChange(s *Sighting, from netip.Addr) audit.Change {
	details := audit.Details{audit.DetailActor: audit.Text(s.URL), "client": audit.Text(s.URL)}
	auth.DescribeAddress(details, from)
	details.Set("clientName", s.Name)
	details.Set("reason", s.Problem)
	return audit.Change{
		Category: audit.Authorization, Action: ActionDocument, Failed: s.Problem != "", Details: details,
	}
}
