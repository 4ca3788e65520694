package prometheus

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tollgate-dev/tollgate/adapters/memory"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/ports/authstore/authstoretest"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/counter/countertest"
	"github.com/tollgate-dev/tollgate/ports/sessioncache/sessioncachetest"
	"github.com/tollgate-dev/tollgate/ports/transaction/transactiontest"
	"github.com/tollgate-dev/tollgate/test/fakedb"
)

// The tests in this file check that each decorator keeps the contract of its port.

func TestCountersContract(t *testing.T) {
	countertest.Run(t, func(*testing.T) countertest.Subject {
		clock := clocktest.NewManual(time.Unix(1_900_000_000, 0))
		store := memory.NewCounters(clock, memory.Config{MaxCounters: 100_000})
		return countertest.Subject{
			Store: NewCounters(store, prometheus.NewRegistry()), Advance: clock.Advance, Now: clock.Now,
			Key: func(name string) string { return name },
		}
	})
}

func TestSessionCacheContract(t *testing.T) {
	sessioncachetest.Run(t, func(*testing.T) sessioncachetest.Subject {
		clock := clocktest.NewManual(time.Unix(1_900_000_000, 0))
		cache := memory.NewSessions(clock, memory.Config{MaxSessions: 10_000})
		var last atomic.Int64
		return sessioncachetest.Subject{
			Cache: NewSessionCache(cache, prometheus.NewRegistry()), Now: clock.Now, Advance: clock.Advance,
			ID: func() auth.SessionID { return auth.SessionID(fmt.Sprint("session-", last.Add(1))) },
		}
	})
}

func TestAuditLogContract(t *testing.T) {
	authstoretest.RunAuditLog(t, func(*testing.T) authstoretest.Stores {
		db, a := fakedb.New(), NewAudit(everywhere(prometheus.NewRegistry()))
		return authstoretest.Stores{AuditLog: a.Log(fakedb.NewAuditLog(db)), Runner: a.Transactions(db)}
	})
}

func TestTransactionsContract(t *testing.T) {
	transactiontest.Run(t, func(*testing.T) transactiontest.Opened {
		db := fakedb.New()
		return transactiontest.Opened{
			Runner: NewAudit(everywhere(prometheus.NewRegistry())).Transactions(db), Grants: fakedb.NewGrants(db),
		}
	})
}
