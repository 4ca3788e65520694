package oidc

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
)

// maxToken is the maximum length of a token in bytes. Those of GitHub have about 2,000.
const maxToken = 16 << 10

// idToken is an ID token in its parts: a JWT in compact form (RFC 7519, RFC 7515). Nothing in it is
// verified.
type idToken struct {
	text      string
	signed    string // the header and the payload as they were signed
	algorithm string
	keyID     string // empty if the token does not name its key
	kind      string // the header typ; empty without one
	payload   []byte
	claims    map[string]any
}

// parseToken returns the parts of a token. It returns fault.Unauthenticated if the token is
// malformed; the claims are set then if they could be read. The encoding must be exactly that of
// RFC 7515: otherwise one token would have several texts, each of which could be used once.
func parseToken(text string) (idToken, error) {
	if len(text) > maxToken {
		return idToken{}, refusef("the token is longer than %d bytes", maxToken)
	}
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return idToken{}, refusef("the token is not a signed JWT: it has %d parts, not 3", len(parts))
	}
	t := idToken{text: text, signed: parts[0] + "." + parts[1]}
	var err error
	if t.payload, t.claims, err = decodeObject(parts[1]); err != nil {
		return idToken{}, refusef("the payload of the token %v", err)
	}
	_, header, err := decodeObject(parts[0])
	if err != nil {
		return t, refusef("the header of the token %v", err)
	}
	if _, err := decodePart(parts[2]); err != nil {
		return t, refusef("the signature of the token %v", err)
	}
	t.algorithm, _ = header["alg"].(string) // a wrong type is refused as an unknown algorithm
	if kind, named := header["typ"]; named {
		if t.kind, _ = kind.(string); t.kind == "" {
			t.kind = "unknown"
		}
	}
	if kid, named := header["kid"]; named {
		var isText bool
		if t.keyID, isText = kid.(string); !isText {
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

// identity returns what the claims say. A claim that is neither a string, a number nor a boolean is
// left out; a number keeps its digits.
func (t idToken) identity() publisher.Identity {
	claims := make(map[string]string, len(t.claims))
	for name, value := range t.claims {
		switch v := value.(type) {
		case string:
			claims[name] = v
		case json.Number:
			claims[name] = v.String()
		case bool:
			claims[name] = strconv.FormatBool(v)
		}
	}
	return publisher.Identity{Issuer: t.textClaim("iss"), Subject: t.textClaim("sub"), Claims: claims}
}

// textClaim returns a claim that is a text; empty if it is missing or something else.
func (t idToken) textClaim(name string) string {
	text, _ := t.claims[name].(string)
	return text
}

// id returns the ID of a token among those of its issuer: jti, or a hash. The signature is not in
// the hash, because anybody can make a second valid signature from one by ECDSA.
func (t idToken) id() string {
	if id := t.textClaim("jti"); id != "" {
		return id
	}
	sum := sha256.Sum256([]byte(t.signed))
	return hex.EncodeToString(sum[:])
}

// refusef returns fault.Unauthenticated with a message from a format.
func refusef(format string, args ...any) error {
	return fault.Newf(fault.Unauthenticated, format, args...)
}
