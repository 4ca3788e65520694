package jwt

import (
	"crypto/sha256"
	"sync"

	"github.com/tollgate-dev/tollgate/ports/tokens"
)

// maxVerified is how many tokens a generation of the memory holds; two generations are kept, some 10 MB together.
const maxVerified = 1 << 15

// digest is the SHA-256 of a token. The memory holds no token in clear.
type digest [sha256.Size]byte

// verified remembers tokens whose signature was found good, since checking one again costs far more than all else in a request.
// It forgets a generation at a time, those not asked for lately first. It is safe for concurrent use.
type verified struct {
	mu         sync.RWMutex
	young, old map[digest]tokens.Claims
}

func newVerified() *verified { return &verified{young: map[digest]tokens.Claims{}} }

func (v *verified) get(d digest) (tokens.Claims, bool) {
	v.mu.RLock()
	c, ok := v.young[d]
	if ok {
		v.mu.RUnlock()
		return c, true
	}
	c, ok = v.old[d]
	v.mu.RUnlock()
	if ok {
		v.put(d, c)
	}
	return c, ok
}

func (v *verified) put(d digest, c tokens.Claims) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.young) >= maxVerified {
		v.young, v.old = make(map[digest]tokens.Claims, maxVerified/4), v.young
	}
	v.young[d] = c
}

func (v *verified) forget() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.young, v.old = map[digest]tokens.Claims{}, nil
}
