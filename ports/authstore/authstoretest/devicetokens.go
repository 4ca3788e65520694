package authstoretest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore/authstoretest/recordtest"
)

// deviceToken returns a token of a device; greater numbers are newer.
func deviceToken(d auth.Device, n byte) auth.DeviceToken {
	return auth.DeviceToken{
		Hash: auth.TokenHash{0xff, 0, '\'', 31: 255 - n}, DeviceID: d.ID,
		IssuedAt: recordtest.Epoch().Add(time.Duration(n) * time.Microsecond),
	}
}

func tokensAreFound(t *testing.T, s Stores) {
	d := current(0, 1)
	ensure(t, s, d)
	want := deviceToken(d, 1)
	recordtest.Whole(t, want)
	recordtest.OK(t, s.DeviceTokens.Add(t.Context(), want, 5))
	recordtest.Equal(t, recordtest.Must(s.DeviceTokens.Find(t.Context(), want.Hash))(t), want)
}

func keepsNewestTokens(t *testing.T, s Stores) {
	d, other := current(0, 1), current(0, 2)
	ensure(t, s, d, other)
	others := deviceToken(other, 100)
	recordtest.OK(t, s.DeviceTokens.Add(t.Context(), others, 1))
	for n := byte(1); n <= 7; n++ {
		recordtest.OK(t, s.DeviceTokens.Add(t.Context(), deviceToken(d, n), 3))
		for old := byte(1); old <= n; old++ {
			_, err := s.DeviceTokens.Find(t.Context(), deviceToken(d, old).Hash)
			if kept := old+3 > n; kept != (err == nil) || !kept && !fault.Is(err, fault.NotFound) {
				t.Errorf("after %d tokens Find of number %d returned %v", n, old, err)
			}
		}
	}
	recordtest.Equal(t, recordtest.Must(s.DeviceTokens.Find(t.Context(), others.Hash))(t), others)
}

func keepsNewestInParallel(t *testing.T, s Stores) {
	const rounds, calls, keep = 15, 4, 3
	d := current(0, 1)
	ensure(t, s, d)
	for round := range rounds {
		recordtest.OK(t, errors.Join(recordtest.Parallel(calls, func(i int) error {
			return s.DeviceTokens.Add(t.Context(), deviceToken(d, byte(round*calls+i)), keep)
		})...))
		kept := 0
		for i := range (round + 1) * calls {
			if _, err := s.DeviceTokens.Find(t.Context(), deviceToken(d, byte(i)).Hash); err == nil {
				kept++
			}
		}
		if kept != keep {
			t.Fatalf("%d tokens are kept, want %d", kept, keep)
		}
	}
}

func removesTokens(t *testing.T, s Stores) {
	d, other := current(0, 1), current(0, 2)
	ensure(t, s, d, other)
	for _, of := range []auth.DeviceToken{deviceToken(d, 1), deviceToken(d, 2), deviceToken(other, 3)} {
		recordtest.OK(t, s.DeviceTokens.Add(t.Context(), of, 5))
	}
	recordtest.OK(t, s.DeviceTokens.Remove(t.Context(), d.ID))
	for n := byte(1); n <= 2; n++ {
		if _, err := s.DeviceTokens.Find(t.Context(), deviceToken(d, n).Hash); !fault.Is(err, fault.NotFound) {
			t.Errorf("Find of a removed token returned %v", err)
		}
	}
	recordtest.Equal(t, recordtest.Must(s.DeviceTokens.Find(t.Context(), deviceToken(other, 3).Hash))(t),
		deviceToken(other, 3))
}

func deviceTokensRollBack(t *testing.T, s Stores) {
	d := current(0, 1)
	ensure(t, s, d)
	recordtest.OK(t, s.DeviceTokens.Add(t.Context(), deviceToken(d, 1), 1))
	recordtest.RollBack(t, s.Runner, func(ctx context.Context) error {
		if err := s.DeviceTokens.Remove(ctx, d.ID); err != nil {
			return err
		}
		return s.DeviceTokens.Add(ctx, deviceToken(d, 2), 1)
	})
	recordtest.Equal(t, recordtest.Must(s.DeviceTokens.Find(t.Context(), deviceToken(d, 1).Hash))(t), deviceToken(d, 1))
	if _, err := s.DeviceTokens.Find(t.Context(), deviceToken(d, 2).Hash); !fault.Is(err, fault.NotFound) {
		t.Errorf("Find of a token that was rolled back returned %v", err)
	}
}
