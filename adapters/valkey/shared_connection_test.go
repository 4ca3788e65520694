package valkey

import (
	"context"
	"testing"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/tollgate-dev/tollgate/adapters/internal/deadline"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/counter"
)

// TestEndOfAnotherCallIsNotMine gives a call the error of a context while its own context lives, as
// when the caller that was making the connection gave up. The call is repeated; a call that may
// have subtracted hits already is not.
func TestEndOfAnotherCallIsNotMine(t *testing.T) {
	var client valkey.Client
	for name, c := range map[string]struct {
		hits     []counter.Hit
		failures []error // of the first attempts
		attempts int
		fails    bool
	}{
		"another caller gave up": {[]counter.Hit{{Key: "a", Addend: 1}}, []error{context.Canceled}, 2, false},
		"another caller's time was up": {
			[]counter.Hit{{Key: "a", Addend: 1}}, []error{context.DeadlineExceeded, context.Canceled}, 3, false,
		},
		"one hit is subtracted": {[]counter.Hit{{Key: "a", Addend: -1}}, []error{context.Canceled}, 2, false},
		"a hit may be subtracted twice": {
			[]counter.Hit{{Key: "a", Addend: -1}, {Key: "b", Addend: -1}}, []error{context.Canceled}, 1, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := &managedClient{deadlines: deadline.NewSource(time.Minute)}
			m.current.Store(&client)
			attempts := 0
			err := m.call(t.Context(), newRoute(newNode(), c.hits), func(context.Context, valkey.Client) error {
				attempts++
				if attempts <= len(c.failures) {
					return c.failures[attempts-1]
				}
				return nil
			})
			if attempts != c.attempts || (err != nil) != c.fails || err != nil && !fault.Is(err, fault.Unavailable) {
				t.Errorf("%d attempts and %v, want %d and failure %v", attempts, err, c.attempts, c.fails)
			}
		})
	}
}
