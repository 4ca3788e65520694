package argon

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/argon2"

	"github.com/tollgate-dev/tollgate/core/auth"
)

const (
	saltSize = 16 // bytes; RFC 9106, section 3.1
	keySize  = 32

	minSaltSize, maxSaltSize = 8, 64
	minKeySize, maxKeySize   = 16, 64

	maxEncoded = 256 // characters of an encoded hash
)

// encoded is a hash with everything that is needed to verify it. Its text is the PHC string format:
// $argon2id$v=19$m=19456,t=2,p=1$<salt>$<key>, in base64 without padding.
type encoded struct {
	parameters
	salt, key []byte
}

func (e encoded) String() string {
	b64 := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s",
		argon2.Version, e.memory, e.iterations, e.parallelism, b64.EncodeToString(e.salt), b64.EncodeToString(e.key))
}

func decodeHash(h auth.PasswordHash) (encoded, error) {
	var e encoded
	parts := strings.Split(string(h), "$")
	if len(h) > maxEncoded || len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" {
		return encoded{}, errors.New("the stored password hash is not an argon2id hash in the PHC string format")
	}
	if parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return encoded{}, errors.New("the stored password hash has an unknown version")
	}
	if _, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &e.memory, &e.iterations, &e.parallelism); err != nil {
		return encoded{}, errors.New("the stored password hash has unreadable parameters")
	}
	if e.validateCosts() != nil || parts[3] != fmt.Sprintf("m=%d,t=%d,p=%d", e.memory, e.iterations, e.parallelism) {
		return encoded{}, errors.New("the stored password hash has parameters out of range")
	}
	var saltErr, keyErr error
	e.salt, saltErr = base64.RawStdEncoding.Strict().DecodeString(parts[4])
	e.key, keyErr = base64.RawStdEncoding.Strict().DecodeString(parts[5])
	if saltErr != nil || keyErr != nil ||
		len(e.salt) < minSaltSize || len(e.salt) > maxSaltSize || len(e.key) < minKeySize || len(e.key) > maxKeySize {
		return encoded{}, errors.New("the stored password hash has an unreadable salt or key")
	}
	return e, nil
}
