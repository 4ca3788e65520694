package publishing_test

import (
	"testing"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/change"
	"github.com/tollgate-dev/tollgate/core/registry/publishing"
	"github.com/tollgate-dev/tollgate/core/registry/quarantining"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/test/must"
)

// putInQuarantine puts a version, or the whole server, in quarantine.
func (w *fixture) putInQuarantine(t *testing.T, version string) {
	t.Helper()
	o := quarantining.New(quarantining.Ports{
		Ports:  change.Ports{Transactions: w.runner.db, Writer: w.servers, Quarantine: w.held, Acts: &fakeAuthority{}},
		Clock:  w.clock,
		Events: w.events(),
	})
	draft := quarantining.Draft{
		Target: quarantining.Target{ServerName: serverName, Version: version}, Reason: "it sends mail",
	}
	if _, err := o.Add(t.Context(), authority.Operator(), draft); err != nil {
		t.Fatal(err)
	}
}

// TestWhatIsInQuarantineIsNotChanged checks each change of a version in quarantine and of a server
// in quarantine: the refusal comes after the permission and before everything else, and is
// recorded.
func TestWhatIsInQuarantineIsNotChanged(t *testing.T) {
	t.Parallel()
	broken := document("1.0.0", `"title":""`)
	calls := map[string]func(token string) func(*fixture) error{
		"publish":         func(token string) func(*fixture) error { return publishCall(token, document("1.0.0")) },
		"publish, broken": func(token string) func(*fixture) error { return publishCall(token, broken) },
		"replace": func(token string) func(*fixture) error {
			return replaceCall(token, document("1.0.0"), "1.0.0")
		},
		"replace, broken": func(token string) func(*fixture) error { return replaceCall(token, broken, "1.0.0") },
		"replace, another": func(token string) func(*fixture) error {
			return replaceCall(token, document("9.0.0"), "1.0.0")
		},
		"delete": func(token string) func(*fixture) error { return deleteCall(token, "1.0.0") },
		"status": func(token string) func(*fixture) error {
			return statusCall(token, `{"status":"active"}`, "1.0.0")
		},
		"status of all": func(token string) func(*fixture) error {
			return statusAllCall(token, `{"status":"active"}`)
		},
		"a new version": func(token string) func(*fixture) error { return publishCall(token, document("3.0.0")) },
		"replace a missing": func(token string) func(*fixture) error {
			return replaceCall(token, document("3.0.0"), "3.0.0")
		},
	}
	for name, call := range calls {
		for _, version := range []string{"1.0.0", ""} {
			if version != "" && (name == "status of all" || name == "a new version" || name == "replace a missing") {
				continue // these concern the whole server
			}
			w := newFixture(t, publishing.Config{}, registry.ActionPublish, registry.ActionEdit)
			w.publishAll(t, "1.0.0", "2.0.0")
			w.putInQuarantine(t, version)
			want := map[string]string{
				"":      "com.example/weather is in quarantine: it sends mail",
				"1.0.0": "com.example/weather 1.0.0 is in quarantine: it sends mail",
			}[version]
			if err := call(trustedToken)(w); !fault.Is(err, fault.Forbidden) || err.Error() != want {
				t.Errorf("%s of what is in quarantine by %q: %v, want %s", name, version, err, want)
			}
			if len(w.authority.acts) != 1 || w.authority.acts[0].Reason != want {
				t.Errorf("%s: the audit log has %+v", name, w.authority.acts)
			}
			if err := call("stranger")(w); !fault.Is(err, fault.Forbidden) || err.Error() == want {
				t.Errorf("%s by a stranger: %v, want the refusal without a grant", name, err)
			}
		}
	}
}

// TestQuarantineOfOneVersionLeavesTheOthers checks what a publisher may do with the other versions.
func TestQuarantineOfOneVersionLeavesTheOthers(t *testing.T) {
	t.Parallel()
	w := newFixture(t, publishing.Config{}, registry.ActionPublish, registry.ActionEdit)
	w.publishAll(t, "1.0.0", "2.0.0")
	w.putInQuarantine(t, "1.0.0")
	for name, call := range map[string]func(*fixture) error{
		"a new version": publishCall(trustedToken, document("3.0.0")),
		"replace":       replaceCall(trustedToken, document("2.0.0", `"title":"new"`), "2.0.0"),
		"status":        statusCall(trustedToken, `{"status":"deprecated"}`, "2.0.0"),
	} {
		if err := call(w); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	changed, err := w.SetStatusAll(t.Context(), newRequest(`{"status":"deprecated","statusMessage":"old"}`),
		serverName, nil)
	if err != nil || len(changed.Records) != 2 {
		t.Fatalf("SetStatusAll = %+v, %v, want the versions 3.0.0 and 2.0.0", changed.Records, err)
	}
	for _, r := range changed.Records {
		if r.Version.String() == "1.0.0" {
			t.Errorf("SetStatusAll changed %+v", r)
		}
	}
	if err := w.grants.Remove(t.Context(), registry.GrantRecord{Grant: registry.Grant{
		Holder: "ada", Action: registry.ActionEdit, Pattern: mustPattern(t, "com.example/*"),
	}}); err != nil {
		t.Fatal(err)
	}
	if err := replaceCall(trustedToken, document("1.0.0"), "1.0.0")(w); !fault.Is(err, fault.Forbidden) ||
		err.Error() != "you have no edit permission for com.example/weather" {
		t.Errorf("without the grant: %v", err)
	}
}

func mustPattern(t *testing.T, text string) registry.Pattern {
	t.Helper()
	p, err := registry.ParsePattern(text)
	must.Succeed(t, err)
	return p
}

// TestQuarantineWhilePackagesAreChecked checks that a document whose packages are checked while it
// is put in quarantine is refused: the transaction of the change decides.
func TestQuarantineWhilePackagesAreChecked(t *testing.T) {
	t.Parallel()
	const packages = `"packages":[{"registryType":"npm","identifier":"weather","version":"1.0.0","transport":{"type":"stdio"}}]`
	for name, call := range map[string]func(*fixture) error{
		"publish": publishCall(trustedToken, document("2.0.0", packages)),
		"replace": replaceCall(trustedToken, document("1.0.0", packages), "1.0.0"),
	} {
		w := newFixture(t, publishing.Config{}, registry.ActionPublish, registry.ActionEdit)
		w.publishAll(t, "1.0.0")
		ports := w.ports(publishing.Config{})
		ports.Ownership = slowChecker{func() { w.putInQuarantine(t, "") }}
		w.Publisher = publishing.New(publishing.Config{}, ports)
		if err := call(w); !fault.Is(err, fault.Forbidden) ||
			err.Error() != "com.example/weather is in quarantine: it sends mail" {
			t.Errorf("%s: %v, want the refusal by quarantine", name, err)
		}
	}
}
