package oauth

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/fields"
	"github.com/tollgate-dev/tollgate/core/jsonvalue"
)

// The bounds of a document of a client (contract T-7).
const (
	MaxDocument      = 5 << 10  // bytes
	MaxDocumentKeys  = 64 << 10 // bytes of the key set that a document names
	maxDocumentName  = 200      // characters
	maxDocumentURIs  = 20
	methodOfDocument = "token_endpoint_auth_method"
)

// ParseDocument returns the client that has published a document at the URL that is its id. It returns
// fault.Invalid, with the reason, for a document that breaks a rule of contract T-7. Members that no rule
// names are ignored.
func ParseDocument(id ClientID, body []byte) (Client, error) {
	o, err := jsonvalue.ParseObject(body)
	if err != nil {
		return Client{}, fault.Newf(fault.Invalid, "the document of the client cannot be read: %s", err.Error())
	}
	c := Client{ID: id, Name: o.Text("client_name"), RedirectURIs: o.Texts("redirect_uris"), Method: MethodNone}
	if _, given := o[methodOfDocument]; given {
		c.Method = Method(o.Text(methodOfDocument))
	}
	_, secret := o["client_secret"]
	_, expires := o["client_secret_expires_at"]
	switch {
	case o.Text("client_id") != string(id):
		return Client{}, refuseDocument("has another client_id than its URL")
	case !fields.IsText(c.Name, maxDocumentName):
		return Client{}, refuseDocument("needs a client_name of 1 to %d characters", maxDocumentName)
	case len(c.RedirectURIs) == 0 || len(c.RedirectURIs) > maxDocumentURIs:
		return Client{}, refuseDocument("needs 1 to %d redirect_uris", maxDocumentURIs)
	case !allFunc(c.RedirectURIs, isWebRedirect):
		return Client{}, refuseDocument("has a redirect URI that is neither https nor http on the person's computer")
	case secret || expires || !allFunc(o.Inner("jwks").Objects("keys"), isPublicKey):
		return Client{}, refuseDocument("has a secret, which everybody can read")
	case c.Method != MethodNone && c.Method != MethodPrivateKey:
		return Client{}, refuseDocument("has a %s other than %s and %s", methodOfDocument, MethodNone, MethodPrivateKey)
	case c.Method == MethodPrivateKey:
		if err := c.readDocumentKeys(o); err != nil {
			return Client{}, err
		}
	}
	return c, nil
}

// refuseDocument returns the refusal of a document, whose message a format continues.
func refuseDocument(format string, args ...any) error {
	return fault.Newf(fault.Invalid, "the document of the client "+format, args...)
}

func allFunc[V any](all []V, good func(V) bool) bool {
	return !slices.ContainsFunc(all, func(v V) bool { return !good(v) })
}

// isWebRedirect reports whether a client by document may have a redirect URI (contract T-8).
func isWebRedirect(uri string) bool { return CheckRedirectURI(uri, false) == nil }

// isPlainHTTPS reports whether a text is an https URL with a host, and isPlain.
func isPlainHTTPS(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Scheme == "https" && u.Hostname() != "" && u.User == nil && isPlain(text)
}

// isPlain reports whether a URL is not too long, and has neither a fragment nor anything but visible ASCII.
func isPlain(text string) bool {
	return len(text) <= maxResource && isPrintable(text) && !strings.ContainsAny(text, `#\`)
}

// readDocumentKeys reads the keys of a document, or where they are.
func (c *Client) readDocumentKeys(o jsonvalue.Object) error {
	_, inline := o["jwks"]
	if _, named := o["jwks_uri"]; named == inline {
		return refuseDocument("needs either jwks or jwks_uri")
	}
	if c.JWKSURI = o.Text("jwks_uri"); !inline {
		if !isPlainHTTPS(c.JWKSURI) {
			return refuseDocument("has a jwks_uri that is not an https URL")
		}
		return nil
	}
	set := o.Inner("jwks")
	keys := set.Objects("keys")
	if len(keys) == 0 || len(keys) != len(set.List("keys")) {
		return refuseDocument("needs public keys in its jwks")
	}
	text, err := json.Marshal(set)
	c.JWKS = string(text)
	return err
}

// isPublicKey reports whether a key (RFC 7517) is the public half of an asymmetric one.
func isPublicKey(key jsonvalue.Object) bool {
	for _, private := range []string{"d", "p", "q", "dp", "dq", "qi", "oth", "k"} {
		if _, there := key[private]; there {
			return false
		}
	}
	return slices.Contains([]string{"RSA", "EC", "OKP"}, key.Text("kty"))
}
