package oauth

import (
	"encoding/hex"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/fields"
)

// ClientID identifies a client: a registered one by its key, one by document by the URL of that (contract
// T-5).
type ClientID string

// IsURL reports whether the client is one by document.
func (id ClientID) IsURL() bool { return strings.HasPrefix(string(id), "https://") }

// Method is how a client proves at the token endpoint that it is the client (RFC 7591, section 2).
type Method string

// The methods.
const (
	MethodNone         Method = "none"
	MethodPrivateKey   Method = "private_key_jwt"
	MethodSecretBasic  Method = "client_secret_basic"
	MethodSecretInForm Method = "client_secret_post"
)

// HasSecret reports whether a client of the method has a secret.
func (m Method) HasSecret() bool { return m == MethodSecretBasic || m == MethodSecretInForm }

// Client is an application that wants tokens: one that operators have registered, or one whose
// document was read.
type Client struct {
	ID           ClientID
	Name         string
	RedirectURIs []string // 1 to 20
	Method       Method
	JWKS         string         // a JSON Web Key Set; of MethodPrivateKey, or empty
	JWKSURI      string         // where such a set is; of MethodPrivateKey, or empty
	SecretHash   auth.TokenHash // of a registered client; zero without a secret
	Resources    []ResourceName // that it may have; empty for all
	SkipConsent  bool           // of a registered client: people are not asked
	ManagedBy    string         // the owner of the file that manages it; empty if it was made by hand

	// Of a registered client that is being stored: whether another secret is wanted, and the one that was
	// made, which is shown once. Neither is stored.
	NewSecret bool
	Secret    auth.ClientSecret
}

// The bounds of registered clients.
const (
	MaxClients      = 1_000
	maxName         = 200
	maxRedirectURIs = 20
	maxResources    = 100 // of a client
	maxKeys         = 64 << 10
)

// Asking says whether people are asked before a registered client gets tokens.
type Asking string

// The values of Asking.
const (
	ConsentAsk  Asking = "ask"
	ConsentSkip Asking = "skip"
)

// clientForm is the pattern of the ids of registered clients: what a path and a form have as it is.
const clientForm = `^[A-Za-z0-9][A-Za-z0-9._~-]{0,199}$`

var clientPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(clientForm) })

func checkRegisteredID(s string) error {
	if !clientPattern().MatchString(s) {
		return fields.Invalid("clientId", " must have 1 to 200 letters, digits, dots, hyphens, underscores and tildes, the first a "+
			"letter or a digit, not %.60q", s)
	}
	return nil
}

// ParseClientID returns the id of a client: one that is registered, or the URL of a document (contract T-5).
// It returns fault.Invalid for another text.
func ParseClientID(s string) (ClientID, error) {
	if id := ClientID(s); id.IsURL() {
		return id, checkDocumentURL(s)
	}
	return ClientID(s), checkRegisteredID(s)
}

// checkDocumentURL returns fault.Invalid for a text that is no URL of a document of a client.
func checkDocumentURL(s string) error {
	u, err := url.Parse(s)
	if err != nil || !isURLText(s) || u.Scheme != "https" || u.Hostname() == "" || u.User != nil || strings.ContainsAny(s, "?#") ||
		!strings.HasPrefix(u.Path, "/") {
		return fault.New(fault.Invalid, "the URL of a client must begin with https://, have a host and a path, and at most 2,048 "+
			"characters, but no user, query or fragment")
	}
	for _, segment := range strings.Split(u.Path, "/") {
		if segment == "." || segment == ".." {
			return fault.New(fault.Invalid, "the path of the URL of a client must not have . or .. as a part")
		}
	}
	return nil
}

// ParseClient returns the registered client that fields describe, as Fields returns them. It returns
// fault.Invalid, with the name of the field at the beginning, if one is wrong.
func ParseClient(given audit.Details) (Client, error) {
	r := fields.Reader{Values: given, MaxText: maxURL}
	id := given.Text("clientId")
	r.Note(checkRegisteredID(id))
	c := Client{
		ID: ClientID(id), Name: r.Text("name", "", maxName), RedirectURIs: fields.Parsed(&r, "redirectUris", true, maxRedirectURIs,
			func(s string) (string, error) { return s, CheckRedirectURI(s, true) }),
		Method:  fields.Word(&r, "method", MethodNone, MethodNone, MethodPrivateKey, MethodSecretBasic, MethodSecretInForm),
		JWKSURI: given.Text("jwksUri"), Resources: fields.Parsed(&r, "resources", false, maxResources, parseResourceName),
		SkipConsent: fields.Word(&r, "consent", ConsentAsk, ConsentAsk, ConsentSkip) == ConsentSkip, NewSecret: given.Flag("newSecret"),
	}
	var err error
	c.JWKS, err = readKeys(given["jwks"])
	r.Note(err)
	r.Note(c.checkProof())
	return c, r.Err
}

// checkProof returns an error unless the client has exactly what its method needs.
func (c *Client) checkProof() error {
	u, err := url.Parse(c.JWKSURI)
	private := c.Method == MethodPrivateKey
	switch {
	case !private && c.JWKS != "":
		return fields.Invalid("jwks", " is for the method %s only", MethodPrivateKey)
	case !private && c.JWKSURI != "":
		return fields.Invalid("jwksUri", " is for the method %s only", MethodPrivateKey)
	case private && (c.JWKS == "") == (c.JWKSURI == ""):
		return fields.Invalid("jwks", " or jwksUri, and not both, is what the method %s needs", MethodPrivateKey)
	case c.NewSecret && !c.Method.HasSecret():
		return fields.Invalid("newSecret", " is for the methods %s and %s only", MethodSecretBasic, MethodSecretInForm)
	case c.JWKSURI != "" && (err != nil || !isURLText(c.JWKSURI) || u.Scheme != "https" || u.Hostname() == "" || u.User != nil ||
		strings.Contains(c.JWKSURI, "#")):
		return fields.Invalid("jwksUri", " must be a URL that begins with https://, without a user and a fragment")
	}
	return nil
}

// keyMembers are the members that a public key of a type must have; other types are not asymmetric.
var keyMembers = map[string][]string{"RSA": {"n", "e"}, "EC": {"crv", "x", "y"}, "OKP": {"crv", "x"}}

// readKeys returns a JSON Web Key Set (RFC 7517), an object or its JSON, as JSON; empty without one.
func readKeys(v audit.Value) (string, error) {
	set, _ := v.(audit.Details)
	if text, ok := v.(audit.Text); ok && text != "" {
		if json.Unmarshal([]byte(text), &set) != nil || set == nil {
			return "", fields.Invalid("jwks", " must be an object in JSON")
		}
	}
	if set == nil {
		return "", nil
	}
	keys := set.Objects("keys")
	if len(keys) == 0 || len(keys) != len(set.List("keys")) {
		return "", fields.Invalid("jwks", " must have a list of public keys, with the name keys")
	}
	for _, key := range keys {
		needed := keyMembers[key.Text("kty")]
		if needed == nil || slices.ContainsFunc(needed, func(name string) bool { return key.Text(name) == "" }) {
			return "", fields.Invalid("jwks", " must have public keys of the types RSA, EC and OKP only, with all their members")
		}
		for _, name := range []string{"d", "p", "q", "dp", "dq", "qi", "oth", "k"} {
			if _, private := key[name]; private {
				return "", fields.Invalid("jwks", " has a private key: it must have public keys only")
			}
		}
	}
	text, err := json.Marshal(set)
	if err != nil || len(text) > maxKeys || strings.Contains(string(text), `\u0000`) {
		return "", fields.Invalid("jwks", " must have at most 64 KiB, and no NUL")
	}
	return string(text), nil
}

// Fields returns the client as ParseClient reads it, without empty fields.
func (c *Client) Fields() audit.Details {
	all := audit.Details{
		"clientId": audit.Text(c.ID), "name": audit.Text(c.Name), "redirectUris": audit.Texts(c.RedirectURIs), "method": audit.Text(c.Method),
		"consent": audit.Text(ConsentAsk),
	}
	if c.SkipConsent {
		all["consent"] = audit.Text(ConsentSkip)
	}
	if c.JWKS != "" {
		var set audit.Details
		_ = json.Unmarshal([]byte(c.JWKS), &set) // no error: readKeys has written it
		all["jwks"] = set
	}
	all.Set("jwksUri", c.JWKSURI)
	fields.SetTexts(all, "resources", c.Resources)
	return all
}

// HasSecret reports whether the client has a secret now: its method has, and one was made.
func (c *Client) HasSecret() bool { return c.SecretHash != auth.TokenHash{} }

// Object returns the client for the audit log and for its store. Of the secret it has the hash.
func (c *Client) Object() audit.Object {
	all := c.Fields()
	if c.HasSecret() {
		all[audit.FieldSecret] = audit.Text(hex.EncodeToString(c.SecretHash[:]))
	}
	return audit.Object{Kind: ClientKind.Name, Key: string(c.ID), Fields: all}
}

// ReadClient returns the client that the fields of an Object describe.
func ReadClient(stored audit.Details) (Client, error) {
	c, err := ParseClient(stored)
	if text := stored.Text(audit.FieldSecret); text != "" && err == nil {
		_, err = hex.Decode(c.SecretHash[:], []byte(text))
	}
	return c, err
}
