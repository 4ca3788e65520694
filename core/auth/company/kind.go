package company

import (
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/kinds"
	"github.com/tollgate-dev/tollgate/core/toolserver"
)

// SecretField is the field of the secret of a provider's client, which is written only.
const SecretField = "clientSecret"

const fieldIDJAG = "idJag"

// Kind describes the providers, which Parse reads.
var Kind = kinds.Kind{
	Name: "provider", List: "providers", Category: audit.AccountChange, Put: "provider_put", Remove: "provider_remove",
	About: "of company sign-in", PutDoc: "A secret that is left out is kept; null removes it. A domain belongs to one provider, and there are at most 20 providers.",
	RemoveDoc: "The grants that it gave and the sessions that came from it end; the identities stay.",
	Facts: []kinds.Field{
		{Name: "hasSecret", Shape: kinds.Flag, Example: "true"}, {Name: "createdAt", Form: "Time"},
		{Name: "lastSuccessAt", Form: "Time", Null: true}, {Name: "lastProblem"}, {Name: "lastProblemAt", Form: "Time", Null: true},
	},
	Fields: []kinds.Field{
		{Name: "name", Required: true, Example: "acme", Column: "NAME"},
		{Name: "displayName", Label: "Text of its button", Hint: "Empty for the name.", Most: 64, Example: "Acme", Usage: "name that people see (default NAME)"},
		{Name: "issuer", Required: true, Label: "Issuer", Hint: "Exactly as its discovery document has it.", Doc: "With https, or http on this machine; as in the discovery document", Example: "https://login.acme.example", Usage: "issuer, as its discovery document has it", Column: "ISSUER"},
		{Name: "clientId", Required: true, Label: "Client ID", Example: "tollgate", Usage: "id of the service as a client"},
		{
			Name: SecretField, Secret: true, Check: CheckSecret, Label: "Client secret", Control: "password",
			Hint: "It is not shown again, so enter it again after a mistake. Empty for PKCE alone.", Example: "a long secret",
			Doc:   "Sealed, and never returned; without one the client has PKCE alone. Another issuer or client loses it",
			Usage: "read the secret of the client from standard input",
		},
		{
			Name: "scopes", Shape: kinds.Texts, Label: "Scopes", Control: "text",
			Hint: "With spaces between them. Empty for openid profile email.", Default: "openid profile email",
		},
		{Name: "domains", Shape: kinds.Texts, Label: "E-mail domains", Hint: "That it speaks for, one on each line.", Doc: "The domains of the e-mail addresses that the provider speaks for", Most: maxDomains, Example: "acme.example", Usage: "e-mail domain that the provider speaks for; may be repeated", Column: "DOMAINS"},
		{Name: "create", Shape: kinds.Flag, Label: "New people", Control: "choices", Options: []kinds.Option{
			{Value: "true", Text: "Who has no account and an address of these domains gets one"},
		}, Doc: "Whether people of the domains who have no account get one", Example: "true", Usage: "make accounts for people of the domains", Column: "CREATE"},
		{Name: "enforce", Shape: kinds.Flag, Label: "Passwords", Control: "choices", Options: []kinds.Option{
			{Value: "true", Text: "People of these domains sign in at the company only"},
			{Value: "force", Text: "Even if no operator has tried that within 30 days"},
		}, Doc: "Whether people of the domains sign in at the company only", Usage: "people of the domains sign in at the company only", Column: "ENFORCE"},
		{Name: fieldIDJAG, Shape: kinds.Flag, Label: "Applications", Control: "choices", Options: []kinds.Option{
			{Value: "true", Text: "Its identity assertions (ID-JAG) give applications tokens, without a page to agree on"},
		}, Doc: "Whether its identity assertions (ID-JAG) give registered applications tokens for people, if this service issues them", Usage: "accept its identity assertions (ID-JAG) for applications"},
		{
			Name: "groupGrants", Shape: kinds.Objects, Inner: []kinds.Field{
				{Name: "group", Required: true, Example: "developers"},
				{Name: "action", Required: true, Check: kinds.Checked(toolserver.ParseAction), Options: kinds.Words(toolserver.Actions()...)},
				{Name: "resource", Required: true, Check: kinds.Checked(toolserver.ParsePattern), Example: "com.acme/*"},
			},
			Most: maxGrants, Label: "Grants by groups", Control: kinds.ControlGrants, Hint: "One on each line, for example developers=publish:com.example/*.",
			Flag: "group", Usage: "GROUP=ACTION:RESOURCE, a grant of the members of a group; may be repeated",
		},
		{
			Name: "requiredGroups", Shape: kinds.Texts, Label: "Required groups",
			Hint: "One on each line. A person must be in one of them. Empty admits everybody.", Most: maxGroups,
		},
		{Name: "emailClaim", Label: "Claim of the e-mail address", Hint: "Empty for email.", Default: "email"},
		{Name: "groupsClaim", Label: "Claim of the groups", Hint: "Empty for groups.", Default: "groups"},
		{
			Name: "audiences", Shape: kinds.Texts, Label: "Audiences of access tokens",
			Hint: "Whose tokens count as callers, one on each line. Empty for none.", Doc: "The audiences whose access tokens are accepted as callers", Most: maxValues,
			Usage: "audience whose access tokens count as callers; may be repeated", Column: "AUDIENCES",
		},
		{Name: "scopeClaim", Label: "Claim of the scopes", Hint: "Of access tokens. Empty for scope.", Doc: "The claim of access tokens with their scopes, a text or a list", Default: "scope", Usage: "claim of access tokens with their scopes", Column: "SCOPE CLAIM"},
		{Name: "secondFactor", Shape: kinds.Object, Inner: []kinds.Field{
			{Name: "acr", Shape: kinds.Texts, Label: "Second factor: acr", Hint: "Values that show one, each on a line.", Most: maxValues},
			{Name: "amr", Shape: kinds.Texts, Label: "Second factor: amr", Hint: "Values that show one, each on a line.", Most: maxValues, Example: "mfa"},
		}},
		{Name: "recheck", Label: "Check again every", Hint: "10s to 24h. Empty for 1h.", Doc: "10s to 24h", Default: "1h"},
		{Name: "maxSession", Label: "Longest session", Hint: "1m to 30d. Empty for 12h.", Doc: "1m to 30d", Default: "12h"},
		{
			Name: "networks", Shape: kinds.Texts, Label: "Networks",
			Hint: "Where it may be besides public addresses, one on each line, for example 10.0.0.0/8.", Doc: "Networks of the endpoints besides public addresses", Most: maxValues,
			Usage: "network of its endpoints besides public addresses; may be repeated",
		},
	},
}
