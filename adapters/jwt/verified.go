package jwt

import (
	"crypto/sha256"
	"sync"

	"github.com/tollgate-dev/tollgate/ports/secrets"
)

// maxVerified is the maximum number of tokens in a generation. Two generations are kept, about 10
// MB together.
const maxVerified = 1 << 15

// digest is the SHA-256 hash of a token. No token is kept in clear text.
type digest [sha256.Size]byte

// verifiedTokens remembers tokens with a valid signature, because verifying a signature costs far
// more than the rest of a request. It drops one generation at a time, so recently used tokens stay.
// It is safe for concurrent use.
type verifiedTokens struct {
	mu         sync.RWMutex
	young, old map[digest]secrets.TokenClaims
	forgotten  uint64 // number of calls of forgetAll
}

func newVerifiedTokens() *verifiedTokens {
	return &verifiedTokens{young: map[digest]secrets.TokenClaims{}}
}

// getClaims returns the claims of a token. If it is unknown, the caller may verify the token and
// pass seen to putClaims.
func (v *verifiedTokens) getClaims(d digest) (c secrets.TokenClaims, ok bool, seen uint64) {
	v.mu.RLock()
	seen = v.forgotten
	c, ok = v.young[d]
	if ok {
		v.mu.RUnlock()
		return c, true, seen
	}
	c, ok = v.old[d]
	v.mu.RUnlock()
	if ok {
		v.putClaims(d, c, seen)
	}
	return c, ok, seen
}

// putClaims stores the claims of a token, unless forgetAll was called since getClaims returned
// seen, because the key of the token may have been removed in between.
func (v *verifiedTokens) putClaims(d digest, c secrets.TokenClaims, seen uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if seen != v.forgotten {
		return
	}
	if len(v.young) >= maxVerified {
		v.young, v.old = make(map[digest]secrets.TokenClaims, maxVerified/4), v.young
	}
	v.young[d] = c
}

func (v *verifiedTokens) forgetAll() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.young, v.old = map[digest]secrets.TokenClaims{}, nil
	v.forgotten++
}
