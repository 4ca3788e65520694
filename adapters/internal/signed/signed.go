// Package signed reads signed tokens of others, and the key sets with which they are verified (RFC 7515, RFC
// 7517). What a token must say, its callers know.
package signed

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"

	"github.com/tollgate-dev/tollgate/core/fault"
)

// Asymmetric returns the algorithms of signatures that this service accepts: those in which only
// the issuer can sign.
func Asymmetric() []string {
	return []string{
		oidc.RS256, oidc.RS384, oidc.RS512, oidc.PS256, oidc.PS384, oidc.PS512,
		oidc.ES256, oidc.ES384, oidc.ES512, oidc.EdDSA,
	}
}

// MaxToken is the maximum length of a token in bytes. Those of GitHub have about 2,000.
const MaxToken = 16 << 10

// Token is a JWT in compact form in its parts. Nothing in it is verified.
type Token struct {
	Text      string
	Signed    string // the header and the payload as they were signed
	Algorithm string
	KeyID     string // empty if the token does not name its key
	Kind      string // the header typ; empty without one
	Payload   []byte
	Claims    map[string]any
}

// Parse returns the parts of a token. It returns fault.Unauthenticated if the token is
// malformed; the claims are set then if they could be read. The encoding must be exactly that of
// RFC 7515: otherwise one token would have several texts, each of which could be used once.
func Parse(text string) (Token, error) {
	if len(text) > MaxToken {
		return Token{}, refusef("the token is longer than %d bytes", MaxToken)
	}
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return Token{}, refusef("the token is not a signed JWT: it has %d parts, not 3", len(parts))
	}
	t := Token{Text: text, Signed: parts[0] + "." + parts[1]}
	var err error
	if t.Payload, t.Claims, err = decodeObject(parts[1]); err != nil {
		return Token{}, refusef("the payload of the token %v", err)
	}
	_, header, err := decodeObject(parts[0])
	if err != nil {
		return t, refusef("the header of the token %v", err)
	}
	if _, err := decodePart(parts[2]); err != nil {
		return t, refusef("the signature of the token %v", err)
	}
	if _, extended := header["crit"]; extended { // RFC 7515, section 4.1.11
		return t, refusef("the header of the token names extensions (crit), which are not supported")
	}
	t.Algorithm, _ = header["alg"].(string) // a wrong type is refused as an unknown algorithm
	if kind, named := header["typ"]; named {
		if t.Kind, _ = kind.(string); t.Kind == "" {
			t.Kind = "unknown"
		}
	}
	if kid, named := header["kid"]; named {
		var isText bool
		if t.KeyID, isText = kid.(string); !isText {
			return t, refusef("the header of the token has a kid that is not a text")
		}
	}
	return t, nil
}

// decodeObject returns the bytes and the members of a part of a token. Its errors do not contain
// anything of the token.
func decodeObject(part string) (raw []byte, members map[string]any, err error) {
	if raw, err = decodePart(part); err != nil {
		return nil, nil, err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&members); err != nil || members == nil {
		return nil, nil, errors.New("is not a JSON object")
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, nil, errors.New("has more than one JSON object")
	}
	return raw, members, nil
}

func decodePart(part string) ([]byte, error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(part)
	if err != nil || strings.ContainsAny(part, "\r\n") { // the decoder skips line ends
		return nil, errors.New("is not in base64url")
	}
	return raw, nil
}

// refusef returns fault.Unauthenticated with a message from a format.
func refusef(format string, args ...any) error {
	return fault.Newf(fault.Unauthenticated, format, args...)
}

// Keys are the public keys of a key set that can verify signatures.
type Keys []jose.JSONWebKey

// maxKeys and maxRSA bound the work for a signature: the keys of a set, and the bits of an RSA key.
const (
	maxKeys = 100
	maxRSA  = 8192
)

// ParseKeys returns the public keys of a key set (RFC 7517), the first 100. A key that cannot be used
// does not hinder the others (section 5).
func ParseKeys(text []byte) (Keys, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(text, &set); err != nil || set.Keys == nil {
		return nil, errors.New("the document is not a JSON Web Key Set")
	}
	var usable Keys
	for _, member := range set.Keys {
		var key jose.JSONWebKey
		if err := key.UnmarshalJSON(member); err != nil || key.Use == "enc" {
			continue
		}
		switch public := key.Key.(type) {
		case *rsa.PublicKey:
			if public.N.BitLen() <= maxRSA {
				usable = append(usable, key)
			}
		case *ecdsa.PublicKey, ed25519.PublicKey:
			usable = append(usable, key)
		}
	}
	return usable[:min(len(usable), maxKeys)], nil
}

// Have reports whether the set has the key that a token names. A token that names no key may be
// signed by a key that the set does not have.
func (k Keys) Have(t Token) bool {
	return t.KeyID != "" && slices.ContainsFunc(k, func(key jose.JSONWebKey) bool { return key.KeyID == t.KeyID })
}

// HaveSigned reports whether a key of the set has signed a token.
func (k Keys) HaveSigned(ctx context.Context, t Token) bool {
	var candidates []crypto.PublicKey
	for _, key := range k {
		if (t.KeyID == "" || key.KeyID == t.KeyID) && (key.Algorithm == "" || key.Algorithm == t.Algorithm) {
			candidates = append(candidates, key.Key)
		}
	}
	payload, err := (&oidc.StaticKeySet{PublicKeys: candidates}).VerifySignature(ctx, t.Text)
	return err == nil && bytes.Equal(payload, t.Payload)
}

var maxAgeForm = regexp.MustCompile(`(?:^|[ ,])max-age="?([0-9]{1,9})`)

// Life returns how long a document with a header may be kept: as its Cache-Control says, within bounds, or
// otherwise if that names no time.
func Life(h http.Header, otherwise, least, most time.Duration) time.Duration {
	age := maxAgeForm.FindStringSubmatch(strings.ToLower(h.Get("Cache-Control")))
	if age == nil {
		return otherwise
	}
	seconds, _ := strconv.Atoi(age[1]) // the form has digits only
	return min(max(time.Duration(seconds)*time.Second, least), most)
}
