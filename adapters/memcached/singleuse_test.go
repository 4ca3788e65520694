package memcached_test

import (
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/inprocess"
	"github.com/tollgate-dev/tollgate/ports/counter"
	"github.com/tollgate-dev/tollgate/ports/singleuse"
	"github.com/tollgate-dev/tollgate/ports/singleuse/singleusetest"
	"github.com/tollgate-dev/tollgate/test/instance"
)

func newSingleUse(t *testing.T, store counter.Store) singleuse.Store {
	t.Helper()
	s, err := inprocess.NewSingleUse(newKeys()(""), store)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSingleUseContract runs the suite of claims on counters in memcached.
func TestSingleUseContract(t *testing.T) {
	t.Parallel()
	store := openClient(t, newConfig(sharedServer(t)))
	singleusetest.Run(t, func(t *testing.T) singleusetest.Subject {
		return singleusetest.Subject{Store: newSingleUse(t, store)}
	})
}

func TestSingleUseWithUnreachableStore(t *testing.T) {
	cfg := newConfig("127.0.0.1:" + instance.FreePort())
	cfg.Timeout = 50 * time.Millisecond
	singleusetest.Unavailable(t, newSingleUse(t, openClient(t, cfg)))
}
