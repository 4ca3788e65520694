package oauth

import (
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/kinds"
	"github.com/tollgate-dev/tollgate/core/trustlevel"
)

// ClientSecretFact is what the response that made the secret of a client has it as.
const ClientSecretFact = "clientSecret"

// ClientKind describes the registered clients, which ParseClient reads.
var ClientKind = kinds.Kind{
	Name: "client", List: "clients", Category: audit.AccountChange, Put: "client_put", Remove: "client_remove",
	About: "of the authorization server", Most: MaxClients, Shown: ClientSecretFact,
	PutDoc:    "A client with a secret gets one when it is made by hand, and the response has it this once; newSecret makes another one, and the one before is good no more.",
	RemoveDoc: "Its tokens end within a second.",
	Facts: []kinds.Field{
		{Name: "hasSecret", Shape: kinds.Flag, Doc: "Whether a secret was made for it", Example: "false"},
		{Name: ClientSecretFact, Null: true, Doc: "The secret, in the response that made it; otherwise null"},
	},
	Fields: []kinds.Field{
		{
			Name: "clientId", Required: true, Form: clientForm, Label: "ID", Hint: "What the application sends as client_id: letters, digits, dots, hyphens.",
			Example: "ide", Column: "ID",
		},
		{Name: "name", Required: true, Label: "Name", Hint: "That people see when they are asked.", Most: maxName, Example: "IDE of Acme", Usage: "name that people see", Column: "NAME"},
		{
			Name: "redirectUris", Shape: kinds.Texts, Required: true, Label: "Redirect URIs",
			Hint: "One on each line: https, http://localhost, http://127.0.0.1 or http://[::1], where any port matches one without, or a scheme of the application such as cursor://.",
			Doc:  "Where people are sent back to. With http only localhost, 127.0.0.1 and [::1]; without a port any port matches", Most: maxRedirectURIs, Example: "http://127.0.0.1/callback",
			Usage: "where people are sent back to; may be repeated", Whole: true, Column: "REDIRECT URIS",
		},
		{
			Name: "method", Label: "Proof", Control: "select", Default: string(MethodNone), Options: []kinds.Option{
				{Value: string(MethodNone), Text: "None: a public client, with PKCE"}, {Value: string(MethodPrivateKey), Text: "Assertions by its private key"},
				{Value: string(MethodSecretBasic), Text: "A secret in the header Authorization"}, {Value: string(MethodSecretInForm), Text: "A secret in the form"},
			}, Doc: "How the client proves at the token endpoint that it is the client (RFC 7591)", Usage: "none, private_key_jwt, client_secret_basic or client_secret_post", Column: "METHOD",
		},
		{
			Name: "jwks", Shape: kinds.Document, Null: true, Label: "Public keys", Control: "area", Hint: "A JSON Web Key Set, for assertions.",
			Doc: "A JSON Web Key Set (RFC 7517) of public keys, or a text with one, at most 64 KiB; of private_key_jwt, without jwksUri", Usage: "JSON Web Key Set of its public keys",
		},
		{Name: "jwksUri", Null: true, Label: "Address of the public keys", Hint: "With https, in place of the keys.", Doc: "Where the public keys are, with https; of private_key_jwt, without jwks", Usage: "address of its public keys, in place of --jwks"},
		{
			Name: "resources", Shape: kinds.Texts, Label: "Resources", Hint: "That it may have, by their names, one on each line. Empty for all.", Doc: "Names of resources that it may have; empty for all", Most: maxResources,
			Usage: "resource that it may have; may be repeated (default all)", Column: "RESOURCES",
		},
		{Name: "consent", Label: "Consent", Control: "select", Default: string(ConsentAsk), Options: []kinds.Option{
			{Value: string(ConsentAsk), Text: "People are asked"}, {Value: string(ConsentSkip), Text: "People are not asked"},
		}, Doc: "Whether people are asked before it gets tokens", Usage: "ask, or skip: people are not asked", Column: "CONSENT"},
		{Name: "newSecret", Shape: kinds.Flag, Secret: true, Label: "Secret", Control: "choices", Options: []kinds.Option{
			{Value: "true", Text: "Make a new secret; the present one ends"},
		}, Doc: "Make another secret, of a method with one. It is in no state", Usage: "make another secret, and print it"},
	},
}

// ResourceKind describes the resources, which ParseResource reads.
var ResourceKind = kinds.Kind{
	Name: "resource", List: "resources", Category: audit.RegistryChange, Put: "resource_put", Remove: "resource_remove",
	About: "of the authorization server", Most: MaxDeclared,
	PutDoc: "In force within a second on all instances. Two resources cannot have one URL.", RemoveDoc: "Its tokens end within a second.",
	Facts: []kinds.Field{{
		Name: "state", Label: "State", Doc: "`open`, `closed: ` and why no tokens are issued for it now, or `unknown: ` and why", Example: "open",
	}},
	Fields: []kinds.Field{
		{Name: "name", Required: true, Example: "weather", Column: "NAME"},
		{
			Name: "url", Required: true, Label: "URL", Hint: "A remote of a listed version of one of the servers.", Most: maxResource, Example: "https://weather.example.com/mcp",
			Doc:   "What clients name as resource (RFC 8707), and what the tokens are for: a remote of a listed version of one of the servers. With https, or http on this computer",
			Usage: "URL that tokens are for, a remote of one of the servers", Column: "URL",
		},
		{Name: "servers", Shape: kinds.Texts, Required: true, Label: "Servers", Hint: "At the URL, by their names, one on each line.", Doc: "Names of the servers at the URL", Most: maxServers, Example: "com.example/weather", Usage: "server at the URL; may be repeated", Column: "SERVERS"},
		{Name: "scopes", Shape: kinds.Texts, Label: "Scopes", Control: "text", Hint: "That its tokens can have, with spaces between them.", Doc: "The scopes that its tokens can have", Most: maxScopes, Example: "forecast:read", Usage: "scope that tokens can have; may be repeated", Whole: true, Column: "SCOPES"},
		{Name: "introspectors", Shape: kinds.Texts, Label: "May introspect its tokens", Hint: "Service accounts as service:NAME, one on each line.", Doc: "The service accounts that may introspect its tokens, as `service:NAME`", Most: maxIntrospectors, Usage: "service account that may introspect tokens, as service:NAME; may be repeated"},
		{
			Name: "tokenTtl", Shape: kinds.Number, Label: "Lifetime of tokens", Control: "number", Hint: "60 to 3,600 seconds. Empty for 600.",
			Doc: "The lifetime of its access tokens in seconds, 60 to 3,600", Most: int(MaxTokenTTL.Seconds()), Default: "600", Usage: "lifetime of access tokens in seconds, 60 to 3600",
		},
		{
			Name: "minTrust", Label: "Least trust", Control: "select", Hint: "Who has less is asked to verify.", Options: kinds.Words(trustlevel.Names()...),
			Doc: "The trust level that a person needs", Default: trustlevel.LimitedTrust.String(), Usage: "trust level that a person needs", Column: "MIN TRUST",
		},
		{
			Name: "clients", Shape: kinds.Texts, Label: "Clients", Hint: "That may have its tokens, by id or address of the document, one on each line. Empty for all.",
			Doc: "Clients that may have its tokens, by their ids or the URLs of their documents; empty for all", Most: maxClients, Usage: "client that may have tokens; may be repeated (default all)", Whole: true,
		},
		{Name: "refresh", Shape: kinds.Flag, Label: "Renewal", Control: "choices", Default: "true", Options: []kinds.Option{
			{Value: "true", Text: "Applications can renew tokens without the person, for at most 30 days"},
		}, Doc: "Whether clients get refresh tokens", Usage: "issue refresh tokens"},
	},
}
