package reviewing_test

import (
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/change"
	"github.com/tollgate-dev/tollgate/core/registry/quarantining"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestNothingInQuarantineIsApproved checks that what waits for review stays unserved while its
// version or its server is in quarantine, that it can be rejected, and that it can be approved
// after the release.
func TestNothingInQuarantineIsApproved(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{
		"":      serverName + " is in quarantine: it sends mail; release it first",
		"1.0.0": serverName + " 1.0.0 is in quarantine: it sends mail; release it first",
	} {
		fx := newFixture(t)
		hidden := quarantining.New(quarantining.Ports{
			Ports:  change.Ports{Transactions: fx.db, Writer: fx.servers, Quarantine: fx.held, Acts: fx.people},
			Clock:  fx.clock,
			Events: fx.events,
		})
		target := quarantining.Target{ServerName: serverName, Version: version}
		first := fx.submit(t, "ada", document(serverName, "1.0.0"))
		if _, err := hidden.Add(t.Context(), authority.Operator(), quarantining.Draft{
			Target: target, Reason: "it sends mail",
		}); !fault.Is(err, fault.NotFound) {
			t.Errorf("quarantine of a server that only waits: %v, want fault.NotFound", err)
		}
		if _, err := fx.service.Approve(t.Context(), authority.Operator(), first.Pending, ""); err != nil {
			t.Fatal(err)
		}
		replacement, err := fx.replace(t, "ada", document(serverName, "1.0.0", `"title":"new"`), "1.0.0")
		must.Succeed(t, err)
		next := fx.submit(t, "ada", document(serverName, "2.0.0"))
		if _, err := hidden.Add(t.Context(), authority.Operator(), quarantining.Draft{
			Target: target, Reason: "it sends mail",
		}); err != nil {
			t.Fatal(err)
		}
		if _, err := fx.service.Approve(t.Context(), request("bea"), replacement.Pending,
			""); !fault.Is(err, fault.Conflict) || err.Error() != want {
			t.Errorf("a replacement in quarantine: %v, want %s", err, want)
		}
		_, err = fx.service.Approve(t.Context(), request("bea"), next.Pending, "")
		if version == "" && (!fault.Is(err, fault.Conflict) || err.Error() != want) || version != "" && err != nil {
			t.Errorf("another version, with %q in quarantine: %v", version, err)
		}
		if body, _ := fx.served(t, serverName, "1.0.0"); strings.Contains(body, "new") {
			t.Errorf("%s is served", body)
		}
		if version != "" {
			if _, err := fx.service.Reject(t.Context(), request("bea"), replacement.Pending, "no"); err != nil {
				t.Errorf("rejecting: %v", err)
			}
			continue
		}
		must.Succeed(t, hidden.Release(t.Context(), authority.Operator(), target))
		if _, err := fx.service.Approve(t.Context(), request("bea"), replacement.Pending, ""); err != nil {
			t.Errorf("after the release: %v", err)
		}
	}
}
