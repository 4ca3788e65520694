package registrystoretest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

const address registry.RemoteURL = "https://one.example/mcp"

// refuses checks that the store returns fault.Conflict for changes and stores nothing.
func (o opened) refuses(t *testing.T, changes ...registrystore.Change) {
	t.Helper()
	before := o.list(t, registrystore.Query{Deleted: true})
	if err := o.save(t.Context(), changes...); !fault.Is(err, fault.Conflict) {
		t.Errorf("saving %+v: %v, want a conflict", changes, err)
	}
	if after := o.list(t, registrystore.Query{Deleted: true}); len(after) != len(before) {
		t.Errorf("refused changes left %q, before there were %q", keys(after), keys(before))
	}
}

func refusesVersionTwice(t *testing.T, o opened) {
	t.Helper()
	o.saved(t, published(release(t, "com.example/a", "1.0.0", 0)))
	o.refuses(t, published(release(t, "com.example/a", "1.0.0", 1)))
	o.saved(t, state(status(release(t, "com.example/a", "1.0.0", 0), registry.StatusDeleted, "", 2)))
	o.refuses(t, published(release(t, "com.example/a", "1.0.0", 3)))
	o.saved(t, published(release(t, "com.example/A", "1.0.0", 1)))
	o.refuses(t, published(release(t, "com.example/a", "2.0.0", 0))) // at the time of the other version
}

func refusesSecondLatest(t *testing.T, o opened) {
	t.Helper()
	first, second := release(t, "com.example/a", "1.0.0", 0), release(t, "com.example/a", "2.0.0", 1)
	o.saved(t, published(latest(first)))
	o.refuses(t, published(latest(second)))
	o.saved(t, published(latest(second)), state(first))
	o.saved(t, state(latest(first)), state(second)) // and back, the other way round
	if got, err := o.Reader.Latest(t.Context(), first.Name, false); err != nil || got.Version != first.Version {
		t.Errorf("latest is %v (%v)", got.Version, err)
	}
	if err := o.save(t.Context(), state(latest(second))); !fault.Is(err, fault.Conflict) {
		t.Errorf("a second latest: %v", err)
	}
}

func refusedStoresNothing(t *testing.T, o opened) {
	t.Helper()
	o.saved(t, published(release(t, "com.example/a", "1.0.0", 0)))
	o.refuses(t, published(release(t, "com.example/a", "2.0.0", 1)), published(release(t, "com.example/a", "1.0.0", 2)))
}

func refusesTakenURL(t *testing.T, o opened) {
	t.Helper()
	o.saved(t, published(release(t, "com.example/a", "1.0.0", 0), address, "https://two.example/mcp"))
	o.refuses(t, published(release(t, "com.example/b", "1.0.0", 1), "https://two.example/mcp"))
	o.refuses(t, published(release(t, "com.example/A", "1.0.0", 1), "https://three.example/mcp", address))
	o.saved(t, published(release(t, "com.example/b", "1.0.0", 1), "https://one.example/MCP"))
	replaced := published(release(t, "com.example/b", "1.0.0", 1), address)
	o.refuses(t, replaced)
	if got := o.version(t, replaced.Release); got.UpdatedAt != replaced.Release.UpdatedAt {
		t.Errorf("a refused document was stored: %+v", got)
	}
}

// checksTakenURL checks remote URLs before they are stored: with the answer that Save would give.
func checksTakenURL(t *testing.T, o opened) {
	t.Helper()
	first, gone := release(t, "com.example/a", "1.0.0", 0), release(t, "com.example/c", "1.0.0", 1)
	o.saved(t, published(first, address))
	o.saved(t, published(gone, "https://gone.example/mcp"))
	o.saved(t, state(status(gone, registry.StatusDeleted, "", 2)))
	check := func(w registrystore.ServerWriter, server string, remotes ...registry.RemoteURL) error {
		return o.Runner.Atomically(t.Context(), func(ctx context.Context) error {
			if _, err := w.Lock(ctx, name(t, server)); err != nil {
				return err
			}
			return w.CheckRemotes(ctx, name(t, server), remotes)
		})
	}
	if err := check(o.Writer, "com.example/b", "https://two.example/mcp", address); !fault.Is(err, fault.Conflict) ||
		!strings.Contains(err.Error(), string(address)) {
		t.Errorf("a remote URL of another server: %v, want fault.Conflict with the URL", err)
	}
	for _, free := range []error{
		check(o.Writer, "com.example/a", address),
		check(o.Writer, "com.example/b", "https://two.example/mcp", "https://gone.example/mcp"),
		check(o.Writer, "com.example/b"), check(o.Free, "com.example/b", address),
	} {
		if free != nil {
			t.Errorf("a remote URL that is free: %v", free)
		}
	}
}

func freesURLOfDeleted(t *testing.T, o opened) {
	t.Helper()
	first := release(t, "com.example/a", "1.0.0", 0)
	o.saved(t, published(first, address))
	o.saved(t, state(status(first, registry.StatusDeleted, "", 2)))
	other := release(t, "com.example/b", "1.0.0", 1)
	o.saved(t, published(other, address))
	o.refuses(t, state(status(first, registry.StatusActive, "", 3))) // it comes back to an address that is taken
	o.saved(t, state(status(other, registry.StatusDeleted, "", 4)))
	o.saved(t, state(status(first, registry.StatusDeprecated, "", 5)))
	o.refuses(t, state(status(other, registry.StatusActive, "", 6)))
}

func freesURLOfReplaced(t *testing.T, o opened) {
	t.Helper()
	first := release(t, "com.example/a", "1.0.0", 0)
	o.saved(t, published(first, address))
	o.saved(t, published(first, "https://two.example/mcp"))
	o.saved(t, published(release(t, "com.example/b", "1.0.0", 1), address))
	o.refuses(t, published(first, address))
}

func sharesURLWithinServer(t *testing.T, o opened) {
	t.Helper()
	first, second := release(t, "com.example/a", "1.0.0", 0), release(t, "com.example/a", "2.0.0", 1)
	o.saved(t, published(first, address, address))
	o.saved(t, published(second, address))
	o.saved(t, state(status(first, registry.StatusDeleted, "", 2)))
	o.refuses(t, published(release(t, "com.example/b", "1.0.0", 3), address)) // the second version still has it
	o.saved(t, state(status(second, registry.StatusDeleted, "", 4)))
	o.saved(t, published(release(t, "com.example/b", "1.0.0", 3), address))
}

// storesLongURL takes addresses of any length, also ones that no index could
// hold and that differ at their end only.
func storesLongURL(t *testing.T, o opened) {
	t.Helper()
	long := "https://one.example/"
	for sum := sha256.Sum256(nil); len(long) < 20_000; sum = sha256.Sum256(sum[:]) {
		long += hex.EncodeToString(sum[:])
	}
	first, second := registry.RemoteURL(long+"/1"), registry.RemoteURL(long+"/2")
	o.saved(t, published(release(t, "com.example/a", "1.0.0", 0), first))
	o.refuses(t, published(release(t, "com.example/b", "1.0.0", 1), first))
	o.saved(t, published(release(t, "com.example/b", "1.0.0", 1), second))
}

// enforcesUniqueURLsLater turns the rule on over two servers that share an address. No one else
// gets it, and neither of the two is kept from changes that do not request it.
func enforcesUniqueURLsLater(t *testing.T, o opened) {
	t.Helper()
	first, other := latest(release(t, "com.example/a", "1.0.0", 0)), latest(release(t, "com.example/b", "1.0.0", 1))
	for _, r := range []registry.Release{first, other} {
		if err := o.saveBy(t.Context(), o.Free, published(r, address)); err != nil {
			t.Fatal(err)
		}
	}
	o.refuses(t, published(release(t, "com.example/c", "1.0.0", 2), address))
	o.refuses(t, published(first, address))
	o.saved(t, state(status(first, registry.StatusDeprecated, "", 3)))
	beaten := first
	beaten.Latest = false
	o.saved(t, state(beaten), published(latest(release(t, "com.example/a", "2.0.0", 4)), "https://two.example/mcp"))
	o.saved(t, state(status(beaten, registry.StatusDeleted, "", 5)))
	o.refuses(t, state(status(beaten, registry.StatusActive, "", 6))) // it comes back to an address that the other has
	o.saved(t, state(status(other, registry.StatusDeleted, "", 7)))
	o.saved(t, state(status(beaten, registry.StatusActive, "", 8)))
	o.refuses(t, state(status(other, registry.StatusActive, "", 9)))
}
