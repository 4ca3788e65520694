package company

import (
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/kinds"
	"github.com/tollgate-dev/tollgate/core/toolserver"
)

// SecretField is the field of the secret of a provider's client, which is written only.
const SecretField = "clientSecret"

// Kind describes the providers, which Parse reads.
var Kind = kinds.Kind{
	Name: "provider", List: "providers", Category: audit.AccountChange, Put: "provider_put", Remove: "provider_remove",
	Fields: []kinds.Field{
		{Name: "name", Required: true},
		{Name: "displayName", Label: "Text of its button", Hint: "Empty for the name."},
		{Name: "issuer", Required: true, Label: "Issuer", Hint: "Exactly as its discovery document has it."},
		{Name: "clientId", Required: true, Label: "Client ID"},
		{
			Name: SecretField, Secret: true, Check: CheckSecret, Label: "Client secret", Control: "password",
			Hint: "It is not shown again, so enter it again after a mistake. Empty for PKCE alone.",
		},
		{
			Name: "scopes", Shape: kinds.Texts, Label: "Scopes", Control: "text",
			Hint: "With spaces between them. Empty for openid profile email.",
		},
		{Name: "domains", Shape: kinds.Texts, Label: "E-mail domains", Hint: "That it speaks for, one on each line."},
		{Name: "create", Shape: kinds.Flag, Label: "New people", Control: "choices", Options: []kinds.Option{
			{Value: "true", Text: "Who has no account and an address of these domains gets one"},
		}},
		{Name: "enforce", Shape: kinds.Flag, Label: "Passwords", Control: "choices", Options: []kinds.Option{
			{Value: "true", Text: "People of these domains sign in at the company only"},
			{Value: "force", Text: "Even if no operator has tried that within 30 days"},
		}},
		{
			Name: "groupGrants", Shape: kinds.Objects, Inner: []kinds.Field{
				{Name: "group", Required: true},
				{Name: "action", Required: true, Check: kinds.Checked(toolserver.ParseAction)},
				{Name: "resource", Required: true, Check: kinds.Checked(toolserver.ParsePattern)},
			},
			Label: "Grants by groups", Control: kinds.ControlGrants, Hint: "One on each line, for example developers=publish:com.example/*.",
		},
		{
			Name: "requiredGroups", Shape: kinds.Texts, Label: "Required groups",
			Hint: "One on each line. A person must be in one of them. Empty admits everybody.",
		},
		{Name: "emailClaim", Label: "Claim of the e-mail address", Hint: "Empty for email."},
		{Name: "groupsClaim", Label: "Claim of the groups", Hint: "Empty for groups."},
		{
			Name: "audiences", Shape: kinds.Texts, Label: "Audiences of access tokens",
			Hint: "Whose tokens count as callers, one on each line. Empty for none.",
		},
		{Name: "scopeClaim", Label: "Claim of the scopes", Hint: "Of access tokens. Empty for scope."},
		{Name: "secondFactor", Shape: kinds.Object, Inner: []kinds.Field{
			{Name: "acr", Shape: kinds.Texts, Label: "Second factor: acr", Hint: "Values that show one, each on a line."},
			{Name: "amr", Shape: kinds.Texts, Label: "Second factor: amr", Hint: "Values that show one, each on a line."},
		}},
		{Name: "recheck", Label: "Check again every", Hint: "10s to 24h. Empty for 1h."},
		{Name: "maxSession", Label: "Longest session", Hint: "1m to 30d. Empty for 12h."},
		{
			Name: "networks", Shape: kinds.Texts, Label: "Networks",
			Hint: "Where it may be besides public addresses, one on each line, for example 10.0.0.0/8.",
		},
	},
}
