package sdktest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"
	"unicode"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tollgate-dev/tollgate/plugins/sdk"
	"github.com/tollgate-dev/tollgate/plugins/sdk/handshake"
	pluginv1 "github.com/tollgate-dev/tollgate/plugins/sdk/proto/tollgate/plugin/v1"
)

// parallelChecks is the number of concurrent checks.
const parallelChecks = 8

// Ownership is an ownership plugin under test, with a package registry whose packages are known.
type Ownership struct {
	Plugin sdk.Ownership
	// Owned is a claim that the registry confirms.
	Owned sdk.Claim
	// Refused are claims that the registry does not confirm, by the reason. The plugin must refuse
	// each of them with a different sentence.
	Refused map[string]sdk.Claim
	// Transient is a claim whose check the registry cannot complete. Leave it nil if the test has
	// no such claim.
	Transient *sdk.Claim
	// RetryAfter is the delay that the registry requests in its response to Transient; 0 if it
	// requests no delay.
	RetryAfter time.Duration
}

// ownershipTest is an ownership plugin with the host that calls it.
type ownershipTest struct {
	host
	Ownership
}

// RunOwnership runs the contract tests for ownership plugins. open must return a new plugin and
// register its own cleanup.
func RunOwnership(t *testing.T, open func(t *testing.T) Ownership) {
	t.Helper()
	for name, run := range map[string]func(*testing.T, ownershipTest){
		"an owned package is confirmed":                         confirmOwned,
		"claims that the registry does not confirm are refused": refuseUnconfirmed,
		"a failure of the registry is transient":                reportTransient,
		"an incomplete claim is refused":                        refuseIncompleteClaim,
		"the registry types are listed":                         listTypes,
		"a call whose context has ended is not answered":        checkAfterCancel,
		"claims are checked in parallel":                        checkInParallel,
	} {
		t.Run(name, func(t *testing.T) {
			under := open(t)
			run(t, ownershipTest{
				connectPlugin(t, sdk.OwnershipPlugin(under.Plugin), pluginv1.Kind_KIND_OWNERSHIP), under,
			})
		})
	}
}

func confirmOwned(t *testing.T, o ownershipTest) {
	if err := o.check(t.Context(), o.Owned); err != nil {
		t.Errorf("Check(%+v) = %v, want no error", o.Owned, err)
	}
}

func refuseUnconfirmed(t *testing.T, o ownershipTest) {
	seen := map[string]string{}
	for reason, claim := range o.Refused {
		var refused *refusedError
		err := o.check(t.Context(), claim)
		if !errors.As(err, &refused) {
			t.Errorf("%s: Check = %v, want a refusal", reason, err)
			continue
		}
		if other, twice := seen[refused.sentence]; twice {
			t.Errorf("%s and %s have the same sentence %q, want different ones", reason, other, refused.sentence)
		}
		seen[refused.sentence] = reason
	}
}

func reportTransient(t *testing.T, o ownershipTest) {
	if o.Transient == nil {
		t.Skip("this registry has no transient failure")
	}
	err := o.check(t.Context(), *o.Transient)
	if !isTransient(err) {
		t.Errorf("Check = %v, want a failure that is not a refusal", err)
	}
	if got := retryDelay(err); got != o.RetryAfter {
		t.Errorf("the requested delay is %s, want %s as from the registry", got, o.RetryAfter)
	}
}

// isTransient reports whether the host treats the result of a check as one that a later try may
// change.
func isTransient(err error) bool {
	var refused *refusedError
	return err != nil && !errors.As(err, &refused) && status.Code(err) != codes.Unimplemented
}

func refuseIncompleteClaim(t *testing.T, o ownershipTest) {
	noName, noIdentifier := o.Owned, o.Owned
	noName.ServerName, noIdentifier.Identifier = "", ""
	for name, claim := range map[string]sdk.Claim{"no server name": noName, "no identifier": noIdentifier} {
		if err := o.check(t.Context(), claim); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: Check = %v, want the status InvalidArgument", name, err)
		}
	}
}

func listTypes(t *testing.T, o ownershipTest) {
	types := o.description.GetRegistryTypes()
	if len(types) == 0 || len(types) > handshake.MaxRegistryTypes {
		t.Errorf("the plugin lists %d registry types, it must list 1 to %d", len(types), handshake.MaxRegistryTypes)
	}
	for _, name := range types {
		isUnprintable := func(r rune) bool { return !unicode.IsPrint(r) }
		if name == "" || len(name) > handshake.MaxRegistryType || slices.ContainsFunc([]rune(name), isUnprintable) {
			t.Errorf("the registry type %q is empty, too long or not printable", name)
		}
	}
	if !slices.Contains(types, o.Owned.RegistryType) {
		t.Errorf("the plugin lists the registry types %q, want %q among them", types, o.Owned.RegistryType)
	}
	unknown := o.Owned
	unknown.RegistryType = "no-such-type"
	if err := o.check(t.Context(), unknown); status.Code(err) != codes.Unimplemented {
		t.Errorf("unknown type: Check = %v, want the status Unimplemented", err)
	}
}

func checkAfterCancel(t *testing.T, o ownershipTest) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := o.check(ctx, o.Owned); status.Code(err) != codes.Canceled {
		t.Errorf("Check under a cancelled context = %v, want the status Canceled", err)
	}
}

func checkInParallel(t *testing.T, o ownershipTest) {
	var group sync.WaitGroup
	for range parallelChecks {
		group.Go(func() {
			if err := o.check(t.Context(), o.Owned); err != nil {
				t.Errorf("Check(%+v) = %v, want no error", o.Owned, err)
			}
		})
	}
	group.Wait()
}
