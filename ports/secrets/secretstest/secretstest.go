// Package secretstest has random bytes for tests. It has no contract tests, because randomness
// makes no promise that they could check.
package secretstest

import (
	"crypto/sha256"
	"encoding/binary"
	"sync/atomic"
)

// Entropy implements [secrets.Entropy] with bytes that never repeat and are the same in each run.
// The zero value can be used.
type Entropy struct{ n atomic.Uint64 }

// Fill overwrites p.
func (e *Entropy) Fill(p []byte) {
	for len(p) > 0 {
		sum := sha256.Sum256(binary.BigEndian.AppendUint64(nil, e.n.Add(1)))
		p = p[copy(p, sum[:]):]
	}
}
