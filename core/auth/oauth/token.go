package oauth

import (
	"encoding/base64"
	"strings"

	"github.com/tollgate-dev/tollgate/core/auth"
)

// TokenID returns the id (jti) of a token of a family: that of the family, a dot, and the random bytes.
func TokenID(f FamilyID, random [16]byte) string {
	return string(f) + "." + base64.RawURLEncoding.EncodeToString(random[:])
}

// FamilyOf returns the family of a token with an id. It reports false for an id that TokenID does not make.
func FamilyOf(id string) (FamilyID, bool) {
	family, random, _ := strings.Cut(id, ".")
	f, err := auth.ParseUUID[FamilyID]("jti", family)
	raw, decodeErr := base64.RawURLEncoding.DecodeString(random)
	return f, err == nil && decodeErr == nil && TokenID(f, [16]byte(append(raw, make([]byte, 16)...))) == id
}
