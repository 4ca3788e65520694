package inprocess_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/tollgate-dev/tollgate/adapters/inprocess"
	"github.com/tollgate-dev/tollgate/adapters/memcached"
	"github.com/tollgate-dev/tollgate/adapters/valkey"
	"github.com/tollgate-dev/tollgate/core/ratelimit/lease"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/counter"
	"github.com/tollgate-dev/tollgate/ports/singleuse/singleusetest"
	"github.com/tollgate-dev/tollgate/ports/throttle"
	"github.com/tollgate-dev/tollgate/ports/throttle/throttletest"
	"github.com/tollgate-dev/tollgate/test/instance"
	"github.com/tollgate-dev/tollgate/test/must"
)

// sharedStore opens connections to a counter store that instances share.
type sharedStore struct {
	name, variable string // the variable has the address of a server
	open           func(t testing.TB, address string, timeout time.Duration) counter.Store
}

// address returns the address of a server, and skips the test without one.
func (s sharedStore) address(t testing.TB) string {
	t.Helper()
	address := os.Getenv(s.variable)
	if address == "" {
		t.Skip(s.variable + " is not set")
	}
	return address
}

// sharedStores returns the stores that instances share.
func sharedStores() []sharedStore {
	return []sharedStore{
		{"valkey", "TEST_VALKEY_URL", func(t testing.TB, address string, timeout time.Duration) counter.Store {
			t.Helper()
			c := valkey.Config{URL: address, SocketType: "tcp", Type: valkey.Single, Timeout: timeout, PoolSize: 10}
			store, cleanup, err := valkey.Open(t.Context(), c, nullLog())
			return opened(t, store, cleanup, err)
		}},
		{"memcached", "TEST_MEMCACHED_ADDR", func(t testing.TB, address string, timeout time.Duration) counter.Store {
			t.Helper()
			c := memcached.Config{HostPort: []string{address}, MaxIdleConns: 2, Timeout: timeout}
			store, cleanup, err := memcached.Open(t.Context(), c, nullLog())
			return opened(t, store, cleanup, err)
		}},
	}
}

func nullLog() *logrus.Entry {
	log, _ := logtest.NewNullLogger()
	return logrus.NewEntry(log)
}

func opened(t testing.TB, store counter.Store, cleanup func(), err error) counter.Store {
	t.Helper()
	must.Succeed(t, err)
	t.Cleanup(cleanup)
	return store
}

// newPrefix returns a prefix of keys that no other run uses.
func newPrefix() string { return fmt.Sprintf("test|%d|%d|", os.Getpid(), time.Now().UnixNano()) }

// TestSingleUseContractOnSharedStores runs the suite of claims on counters of each store.
func TestSingleUseContractOnSharedStores(t *testing.T) {
	for _, shared := range sharedStores() {
		t.Run(shared.name, func(t *testing.T) {
			t.Parallel()
			store := shared.open(t, shared.address(t), 5*time.Second)
			singleusetest.Run(t, func(t *testing.T) singleusetest.Subject {
				return singleusetest.Subject{Store: newSingleUse(t, newPrefix(), store)}
			})
		})
		t.Run(shared.name+" unreachable", func(t *testing.T) {
			store := shared.open(t, "127.0.0.1:"+instance.FreePort(), 50*time.Millisecond)
			singleusetest.Unavailable(t, newSingleUse(t, newPrefix(), store))
		})
	}
}

// newSharedThrottle returns a throttle with one limit, which it counts with leases. Throttles with
// the same prefix count together, always in the same window.
func newSharedThrottle(t testing.TB, store counter.Store, prefix string, limit uint64) *inprocess.Throttle {
	t.Helper()
	now := clocktest.NewManual(time.Unix(1_000_000, 0))
	exact, err := inprocess.NewThrottle(inprocess.ThrottleConfig{Prefix: prefix,
		Limits: map[throttle.Scope]inprocess.Limit{
			throttle.RegistryAddress: {Requests: limit, Window: 15 * time.Minute},
		}}, store, now)
	must.Succeed(t, err)
	return inprocess.NewLeasedThrottle(exact, lease.New(store, now, nil), throttle.RegistryAddress)
}

// TestInstancesOnSharedStoresAdmitTheLimitTogether checks that eight instances, each with its own
// connections, never admit more than the limit, and not much less.
func TestInstancesOnSharedStoresAdmitTheLimitTogether(t *testing.T) {
	const limit = 20_000
	for _, shared := range sharedStores() {
		t.Run(shared.name, func(t *testing.T) {
			address, prefix := shared.address(t), newPrefix()
			all := throttletest.Instances{Scope: throttle.RegistryAddress, Limit: limit, AtLeast: limit * 9 / 10}
			for range 8 {
				all.Throttles = append(all.Throttles,
					newSharedThrottle(t, shared.open(t, address, 5*time.Second), prefix, limit))
			}
			throttletest.AdmitTogether(t, all)
		})
	}
}

// BenchmarkThrottle measures one decision about a request to the registry of a hot address.
func BenchmarkThrottle(b *testing.B) {
	valkey := sharedStores()[0]
	th := newSharedThrottle(b, valkey.open(b, valkey.address(b), 5*time.Second), newPrefix(), 1<<40)
	throttletest.BenchmarkTry(b, th, throttle.RegistryAddress)
}
