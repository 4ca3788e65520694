package inprocess

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strconv"
	"time"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/ports/counter"
	"github.com/tollgate-dev/tollgate/ports/singleuse"
)

// claimTag follows the prefix in the keys of claims. A digit or a "#" follows it in the keys of
// limits (ratelimit.AppendKey).
const claimTag = "once:"

// SingleUse remembers claims in the counter store of the rate limit service, for all instances
// together: a claim adds one to a counter that no other key has, and is the first if the count is
// one. The counter expires by its TTL. It is safe for concurrent use.
//
// SingleUse never accepts a key twice while the store keeps its counters. If a store repeats a call
// because it got no answer, it may count one claim twice, and no claim of the key is the first.
type SingleUse struct {
	prefix string
	store  counter.Store
}

var _ singleuse.Store = (*SingleUse)(nil)

// NewSingleUse returns a store of claims on a counter store. The prefix is the start of all keys
// (CACHE_KEY_PREFIX); NewSingleUse returns an error if a store could refuse it.
func NewSingleUse(prefix string, store counter.Store) (*SingleUse, error) {
	if !ratelimit.ValidPrefix(prefix) {
		return nil, fmt.Errorf("prefix %q must have only characters that every counter store accepts", prefix)
	}
	return &SingleUse{prefix: prefix, store: store}, nil
}

// Claim implements singleuse.Store.
func (s *SingleUse) Claim(ctx context.Context, key string, ttl time.Duration) (first bool, err error) {
	count, err := s.add(ctx, key, 1, ttl)
	return err == nil && count == 1, err
}

// Release implements singleuse.Store.
func (s *SingleUse) Release(ctx context.Context, key string) error {
	_, err := s.add(ctx, key, -1, time.Second)
	return err
}

func (s *SingleUse) add(ctx context.Context, key string, n int64, ttl time.Duration) (uint64, error) {
	kept := roundUpToSeconds(ttl)
	return counter.Add(ctx, s.store, counter.Hit{
		Key: s.counterKey(key), Addend: n,
		Limit: 0, // a full store in the process removes counters that are over their limit last
		// Window is never one second, because counters of a second may be in another store than
		// those of a longer claim of the same key (KVSTORE_PERSECOND).
		Window: kept + time.Second, TTL: kept, Left: max(ttl, time.Second),
	})
}

// counterKey returns the key of a counter. It ends with the length of the prefix, as the keys of
// limits do, so that no prefix of another deployment leads to the same key.
func (s *SingleUse) counterKey(key string) string {
	sum := sha256.Sum256([]byte(key))
	return s.prefix + claimTag + base64.RawURLEncoding.EncodeToString(sum[:]) + "/" + strconv.Itoa(len(s.prefix))
}

// roundUpToSeconds returns d as a whole number of seconds, at least one.
func roundUpToSeconds(d time.Duration) time.Duration {
	return max(d+time.Second-1, time.Second).Truncate(time.Second)
}
