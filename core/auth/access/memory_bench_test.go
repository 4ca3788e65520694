package access

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/ports/authorization"
)

// readFamilies reads families with strings of their own, as a database does.
type readFamilies struct{ authorization.Families }

func (readFamilies) Get(_ context.Context, id oauth.FamilyID) (oauth.Family, error) {
	long := func(s string) string { return strings.Clone(s + string(id)) }
	now := time.Now()
	return oauth.Family{
		ID: id, UserID: auth.UserID(strings.Clone(string(id))), SessionID: auth.SessionID(strings.Clone(string(id))),
		Client: oauth.ClientID(long("https://editor.example/client/")), ClientName: long("Editor"),
		RedirectURI: long("http://127.0.0.1/"), Challenge: long("1234567"), Resource: long("https://tools.example/"),
		Scopes: []string{strings.Clone("read"), strings.Clone("write")}, AuthTime: now, CreatedAt: now, UsedAt: now, ExpiresAt: now,
	}, nil
}

// BenchmarkFamilies measures the memory of 10,000 families whose tokens are all used within a second (contract T,
// cost: at most 10 MiB).
func BenchmarkFamilies(b *testing.B) {
	const families = 10_000
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for b.Loop() {
		i := NewIssued(IssuedPorts{Families: readFamilies{}, Changes: func() uint64 { return 1 }})
		now, before := time.Now(), heap()
		for n := range families {
			id := oauth.FamilyID(fmt.Sprintf("aaaaaaaa-2222-4333-8444-%012d", n))
			if _, err := i.families.Of(id, now, func() (oauth.Family, error) { return i.ports.Families.Get(b.Context(), id) }); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(heap()-before)/(1<<20), "MiB")
		runtime.KeepAlive(i)
	}
}
