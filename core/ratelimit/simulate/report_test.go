package simulate

import (
	"strconv"
	"testing"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestKeysAreBounded: when there is no room for more keys, those without a difference make room
// first, and the report says that keys are missing only if there was no room.
func TestKeysAreBounded(t *testing.T) {
	empty, err := ruleset.Compile(nil, ruleset.Options{})
	must.Succeed(t, err)
	tally := newTally(Rules{Old: empty, New: empty})
	add := func(n int, before, after bool) {
		for i := range n {
			entries := []ratelimit.Entry{{Key: "k", Value: strconv.Itoa(len(tally.keys)) + "-" + strconv.Itoa(i)}}
			tally.addDescriptor("shop", entries, result{refused: before}, result{refused: after})
		}
	}
	add(maxKnownKeys, true, true)
	if r := tally.report(0); r.KeysLost || len(r.Keys) != 0 {
		t.Fatalf("a full table has lost keys: %v, %d", r.KeysLost, len(r.Keys))
	}
	add(10, false, true)
	if r := tally.report(0); !r.KeysLost || len(r.Keys) != 10 || len(tally.keys) != 10 {
		t.Errorf("lost %v, %d keys of %d", r.KeysLost, len(r.Keys), len(tally.keys))
	}
	add(2*maxKnownKeys, false, true)
	if r := tally.report(0); len(tally.keys) != maxKnownKeys || len(r.Keys) != MaxKeys {
		t.Errorf("%d keys of %d", len(r.Keys), len(tally.keys))
	}
}
