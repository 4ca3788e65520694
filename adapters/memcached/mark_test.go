package memcached

import (
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/ports/counter"
)

// TestBucketIsCutOnlyAfterAChange: an instance whose clock is behind must not empty a bucket that
// another one has filled, or its hits would come back. Only another mark means that the limit or
// the burst was changed; a version without marks stored 0.
func TestBucketIsCutOnlyAfterAChange(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	h := &counter.Hit{Key: "k", Limit: 10, Burst: 5, Window: time.Second, Algorithm: ratelimit.TokenBucket}
	raised := *h
	raised.Burst = 6
	full := now.Add(time.Hour).UnixNano()
	for name, c := range map[string]struct {
		mark uint32
		cut  bool
	}{
		"the same":     {bucketMark(h), false},
		"none":         {0, false},
		"another mark": {bucketMark(&raised), true},
	} {
		s := admitState{hit: h, full: full, mark: c.mark}
		s.cutBucket(now)
		if s.changed != c.cut || (s.full == now.Add(500*time.Millisecond).UnixNano()) != c.cut {
			t.Errorf("%s: changed %v, full at %v", name, s.changed, time.Unix(0, s.full))
		}
	}
	turned := *h
	turned.Limit, turned.Burst = h.Burst, h.Limit
	if bucketMark(&turned) == bucketMark(h) || bucketMark(&raised) == bucketMark(h) {
		t.Error("different limits have one mark")
	}
}
