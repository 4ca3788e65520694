package jwt

import (
	"crypto/sha256"
	"sync"

	"github.com/tollgate-dev/tollgate/ports/secrets"
)

// maxVerified is how many tokens a generation of the memory holds; two generations are kept, some 10 MB together.
const maxVerified = 1 << 15

// digest is the SHA-256 of a token. The memory holds no token in clear.
type digest [sha256.Size]byte

// verified remembers tokens whose signature was found good, since checking one again costs far more than all else in a request.
// It forgets a generation at a time, those not asked for lately first. It is safe for concurrent use.
type verifiedTokens struct {
	mu         sync.RWMutex
	young, old map[digest]secrets.TokenClaims
	forgotten  uint64 // how often everything was forgotten
}

func newVerifiedTokens() *verifiedTokens {
	return &verifiedTokens{young: map[digest]secrets.TokenClaims{}}
}

// get returns the claims of a token. When it holds none, the caller may verify the token and put the claims with the same seen.
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

// put keeps the claims of a token, unless everything was forgotten since seen was got: the key that found the token good may be
// among those that were taken away meanwhile.
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
