package publishing_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/publishing"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/test/must"
)

func TestPublish(t *testing.T) {
	t.Parallel()
	w := newFixture(t, publishing.Config{}, registry.ActionPublish)
	w.runner.twice = true
	got, err := w.Publish(t.Context(), newRequest(" "+document("1.0.0", `"title": null`)))
	must.Succeed(t, err)
	if string(got.Document) != document("1.0.0", `"title":null`) || !got.Latest ||
		got.Status != registry.StatusActive || !got.PublishedAt.Equal(epoch) {
		t.Errorf("Publish = %+v with %s", got.Release, got.Document)
	}
	stored, err := w.servers.Version(t.Context(), got.Name, got.Version, false)
	if err != nil || stored.Release != got.Release || string(stored.Document) != string(got.Document) {
		t.Errorf("stored is %+v, %v, want what was answered", stored, err)
	}
	w.requireActs(t, authority.Act{Action: "publish", ServerName: serverName, Version: "1.0.0"})
	if _, err := w.Publish(t.Context(), newRequest(document("1.0.0"))); !fault.Is(err, fault.Conflict) {
		t.Errorf("the same version again: %v, want a conflict", err)
	}
	second, err := w.Publish(t.Context(), newRequest(document("2.0.0")))
	if err != nil || !second.Latest {
		t.Errorf("Publish = %+v, %v, want it latest", second.Release, err)
	}
	first, err := w.servers.Version(t.Context(), got.Name, got.Version, false)
	if err != nil || first.Latest || string(first.Document) != string(got.Document) {
		t.Errorf("the former latest is %+v, %v, want it without the flag and with its document", first, err)
	}
}

// TestOrderOfChecks sends requests that break the rule they are named after and all rules that are
// checked later (contract R-6).
func TestOrderOfChecks(t *testing.T) {
	t.Parallel()
	const name, version = `"name":"com.example/weather"`, `"version":"1.0.0"`
	broken := "{" + name + "," + version + "}" // no description
	on, off := publishing.Config{}, publishing.Config{WritesOff: true}
	publish, edit := []registry.Action{registry.ActionPublish}, []registry.Action{registry.ActionEdit}
	cases := []struct {
		defect string
		config publishing.Config
		grants []registry.Action
		call   func(w *fixture) error
		kind   fault.Kind
		code   fault.Code
	}{
		{"publish, writes off", off, nil, publishCall("none", "{"), fault.Unsupported, ""},
		{"publish, no token", on, nil, publishCall("none", "{"), fault.Unauthenticated, ""},
		{"publish, no JSON", on, nil, publishCall(untrustedToken, "{"), fault.Invalid, ""},
		{"publish, a NUL", on, nil, publishCall(untrustedToken, `{"name":"\u0000"}`), fault.Invalid, ""},
		{"publish, no grant", on, edit, publishCall(untrustedToken, broken), fault.Forbidden, ""},
		{"publish, no grant, no name", on, edit, publishCall(untrustedToken, "{}"), fault.Forbidden, ""},
		{"publish, no trust", on, publish, publishCall(untrustedToken, broken), fault.Forbidden, ""},
		{"publish, rules", on, publish, publishCall(trustedToken, broken), fault.Invalid, registry.CodeRules},
		{"publish, no name", on, publish, publishCall(trustedToken, "{}"), fault.Invalid, registry.CodeRules},
		{
			"publish, another's name", on, publish,
			publishCall(trustedToken, `{"name":"org.example/a"}`), fault.Forbidden, "",
		},

		{"replace, writes off", off, nil, replaceCall("none", "{", "9"), fault.Unsupported, ""},
		{"replace, no token", on, nil, replaceCall("none", "{", "9"), fault.Unauthenticated, ""},
		{"replace, no JSON", on, nil, replaceCall(untrustedToken, "[]", "9"), fault.Invalid, ""},
		{"replace, no grant", on, publish, replaceCall(untrustedToken, broken, "9"), fault.Forbidden, ""},
		{"replace, no trust", on, edit, replaceCall(untrustedToken, broken, "9"), fault.Forbidden, ""},
		{"replace, another version", on, edit, replaceCall(trustedToken, broken, "9"), fault.Invalid, ""},
		{"replace, no version", on, edit, replaceCall(trustedToken, "{"+name+"}", "1.0.0"), fault.Invalid, ""},
		{"replace, another name", on, edit, replaceCall(trustedToken, "{"+version+"}", "1.0.0"), fault.Invalid, ""},
		{"replace, missing", on, edit, replaceCall(trustedToken, broken, "1.0.0"), fault.NotFound, ""},
		{
			"replace, impossible version", on, edit,
			replaceCall(trustedToken, "{"+name+`,"version":"latest"}`, "latest"), fault.NotFound, "",
		},

		{"delete, writes off", off, nil, deleteCall("none", "9"), fault.Unsupported, ""},
		{"delete, no token", on, nil, deleteCall("none", "9"), fault.Unauthenticated, ""},
		{"delete, no grant", on, publish, deleteCall(untrustedToken, "9"), fault.Forbidden, ""},
		{"delete, no trust", on, edit, deleteCall(untrustedToken, "9"), fault.Forbidden, ""},
		{"delete, missing", on, edit, deleteCall(trustedToken, "9"), fault.NotFound, ""},
		{"delete, impossible version", on, edit, deleteCall(trustedToken, "latest"), fault.NotFound, ""},

		{"status, no token", off, nil, statusCall("none", "{", "9"), fault.Unauthenticated, ""},
		{"status, no JSON", off, nil, statusCall(untrustedToken, "{", "9"), fault.Invalid, ""},
		{"status, no grant", off, nil, statusCall(untrustedToken, "{}", "9"), fault.Forbidden, ""},
		{"status, no trust", off, edit, statusCall(untrustedToken, "{}", "9"), fault.Forbidden, ""},
		{"status, no status", off, edit, statusCall(trustedToken, "{}", "9"), fault.Invalid, ""},
		{
			"status, unknown property", on, edit,
			statusCall(trustedToken, `{"status":"deleted","x":1}`, "9"), fault.Invalid, "",
		},
		{"status, missing", on, edit, statusCall(trustedToken, `{"status":"deleted"}`, "9"), fault.NotFound, ""},
		{
			"status, by a publisher", on, publish,
			statusCall(trustedToken, `{"status":"deleted"}`, "9"), fault.NotFound, "",
		},
		{"all, no JSON", on, nil, statusAllCall(untrustedToken, "{"), fault.Invalid, ""},
		{"all, no grant", on, nil, statusAllCall(untrustedToken, "{}"), fault.Forbidden, ""},
		{"all, no status", on, edit, statusAllCall(trustedToken, "{}"), fault.Invalid, ""},
		{"all, missing", on, edit, statusAllCall(trustedToken, `{"status":"deleted"}`), fault.NotFound, ""},
	}
	for _, c := range cases {
		t.Run(c.defect, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, c.config, c.grants...)
			err := c.call(w)
			f, ok := fault.As(err)
			if !ok || f.Kind != c.kind || f.Code != c.code {
				t.Fatalf("got %v of kind %s, want kind %s with code %q", err, fault.KindOf(err), c.kind, c.code)
			}
			known := c.kind != fault.Unsupported && c.kind != fault.Unauthenticated
			if (len(w.authority.acts) == 1) != known || len(w.authority.acts) > 1 {
				t.Fatalf("the audit log holds %+v, want one act if the caller is known", w.authority.acts)
			}
			if known && w.authority.acts[0].Reason != f.Message {
				t.Errorf("the act's reason is %q, want %q", w.authority.acts[0].Reason, f.Message)
			}
		})
	}
}

func publishCall(token, body string) func(*fixture) error {
	return func(w *fixture) error {
		_, err := w.Publish(context.Background(), requestBy(token, body))
		return err
	}
}

func replaceCall(token, body, version string) func(*fixture) error {
	return func(w *fixture) error {
		_, err := w.Replace(context.Background(), requestBy(token, body), newTarget(version))
		return err
	}
}

func deleteCall(token, version string) func(*fixture) error {
	return func(w *fixture) error {
		_, err := w.Delete(context.Background(), requestBy(token, ""), newTarget(version))
		return err
	}
}

func statusCall(token, body, version string) func(*fixture) error {
	return func(w *fixture) error {
		_, err := w.SetStatus(context.Background(), requestBy(token, body), newTarget(version))
		return err
	}
}

func statusAllCall(token, body string) func(*fixture) error {
	return func(w *fixture) error {
		_, err := w.SetStatusAll(context.Background(), requestBy(token, body), serverName, nil)
		return err
	}
}

func TestTrustIsCheckedAfterTheGrant(t *testing.T) {
	t.Parallel()
	w := newFixture(t, publishing.Config{}, registry.ActionPublish)
	_, err := w.Publish(t.Context(), requestBy(untrustedToken, document("1.0.0")))
	if f, ok := fault.As(err); !ok || f.Details["challenge"] == nil {
		t.Errorf("Publish = %v, want the authority's refusal with its challenge", err)
	}
	w.requireActs(t, authority.Act{
		Caller: person(untrustedToken), Action: "publish", ServerName: serverName, Version: "1.0.0",
		Reason: "step up first",
	})
	_, err = w.Publish(t.Context(), requestBy("stranger", document("1.0.0")))
	if f, ok := fault.As(err); !ok || f.Kind != fault.Forbidden || !strings.Contains(f.Message, serverName) {
		t.Errorf("Publish by a stranger = %v, want a refusal that names the server", err)
	}
}

func TestGrantCountsAtOnce(t *testing.T) {
	t.Parallel()
	w := newFixture(t, publishing.Config{})
	if _, err := w.Publish(t.Context(), newRequest(document("1.0.0"))); !fault.Is(err, fault.Forbidden) {
		t.Fatalf("Publish = %v, want it forbidden", err)
	}
	w.grant(t, registry.ActionPublish, serverName)
	if _, err := w.Publish(t.Context(), newRequest(document("1.0.0"))); err != nil {
		t.Errorf("Publish with a grant = %v, want none", err)
	}
}

func TestReplace(t *testing.T) {
	t.Parallel()
	w := newFixture(t, publishing.Config{}, registry.ActionPublish, registry.ActionEdit)
	w.publishAll(t, "1.0.0", "2.0.0")
	w.clock.Advance(58 * time.Minute) // an hour after epoch
	body := document("1.0.0", `"title":"Weather"`)
	got, err := w.Replace(t.Context(), newRequest(body), newTarget("1.0.0"))
	if err != nil || string(got.Document) != body || got.Latest {
		t.Fatalf("Replace = %+v with %s, %v", got.Release, got.Document, err)
	}
	if !got.PublishedAt.Equal(epoch.Add(time.Minute)) || !got.StatusChangedAt.Equal(got.PublishedAt) ||
		!got.UpdatedAt.Equal(epoch.Add(time.Hour)) {
		t.Errorf("the times are %+v, want the update time moved alone", got.Release)
	}
	stored, err := w.servers.Version(t.Context(), got.Name, got.Version, false)
	if err != nil || string(stored.Document) != body {
		t.Errorf("stored is %s, %v, want the new document", stored.Document, err)
	}
	w.requireActs(t, authority.Act{Action: "edit", ServerName: serverName, Version: "1.0.0"})
	_, err = w.Replace(t.Context(), newRequest(`{"name":"com.example/weather","version":"1.0.0"}`), newTarget("1.0.0"))
	if f, ok := fault.As(err); !ok || f.Code != registry.CodeRules {
		t.Errorf("a broken document = %v, want code %s", err, registry.CodeRules)
	}
}

func TestDelete(t *testing.T) {
	t.Parallel()
	w := newFixture(t, publishing.Config{}, registry.ActionPublish, registry.ActionEdit)
	w.publishAll(t, "1.0.0", "2.0.0")
	got, err := w.Delete(t.Context(), newRequest(""), newTarget("2.0.0"))
	if err != nil || got.Status != registry.StatusDeleted || got.Latest || string(got.Document) != document("2.0.0") {
		t.Fatalf("Delete = %+v with %s, %v", got.Release, got.Document, err)
	}
	latest, err := w.servers.Latest(t.Context(), got.Name, false)
	if err != nil || latest.Version.String() != "1.0.0" {
		t.Errorf("latest is %s, %v, want 1.0.0", latest.Version, err)
	}
	for name, call := range map[string]func(*fixture) error{
		"delete":  deleteCall(trustedToken, "2.0.0"),
		"replace": replaceCall(trustedToken, document("2.0.0"), "2.0.0"),
	} {
		wantFault(t, call(w), fault.NotFound, "%s of a deleted version", name)
	}
	wantFault(t, publishCall(trustedToken, document("2.0.0"))(w), fault.Conflict, "publish of a deleted version")
}

func TestSetStatus(t *testing.T) {
	t.Parallel()
	w := newFixture(t, publishing.Config{}, registry.ActionPublish)
	w.publishAll(t, "1.0.0")
	got, err := w.SetStatus(t.Context(), newRequest(`{"status":"deprecated","statusMessage":"use 2"}`),
		newTarget("1.0.0"))
	if err != nil || got.Status != registry.StatusDeprecated || got.StatusMessage != "use 2" ||
		string(got.Document) != document("1.0.0") {
		t.Fatalf("SetStatus = %+v with %s, %v", got.Release, got.Document, err)
	}
	w.requireActs(t, authority.Act{
		Action: "status", ServerName: serverName, Version: "1.0.0", Status: "deprecated", StatusMessage: "use 2",
		Changed: registry.StatusChange{Status: "active", NewStatus: "deprecated", NewMessage: "use 2"},
	})
	err = statusCall(trustedToken, `{"status":"deprecated","statusMessage":"use 2"}`, "1.0.0")(w)
	if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "no changes to apply") {
		t.Errorf("SetStatus again = %v, want no changes to apply", err)
	}
}

func TestSetStatusAll(t *testing.T) {
	t.Parallel()
	w := newFixture(t, publishing.Config{}, registry.ActionPublish)
	w.publishAll(t, "1.0.0", "2.0.0", "3.0.0")
	must.Succeed(t, statusCall(trustedToken, `{"status":"deprecated"}`, "2.0.0")(w))
	w.authority.acts = nil
	got, err := w.SetStatusAll(t.Context(), newRequest(`{"status":"deprecated"}`), serverName, nil)
	if err != nil || len(got.Records) != 2 || string(got.Records[0].Document) != document("3.0.0") ||
		string(got.Records[1].Document) != document("1.0.0") {
		t.Fatalf("SetStatusAll = %+v, %v, want 3.0.0 and 1.0.0", got, err)
	}
	w.requireActs(t, authority.Act{
		Action: "status", ServerName: serverName, Status: "deprecated",
		Changed: registry.StatusChange{Status: "active", NewStatus: "deprecated"},
	})
	wantFault(t, statusAllCall(trustedToken, `{"status":"deprecated"}`)(w), fault.Invalid, "SetStatusAll again")
	one, err := w.SetStatusAll(t.Context(), newRequest(`{"status":"deleted","statusMessage":"gone"}`), serverName, nil)
	if err != nil || len(one.Records) != 3 || !one.Records[0].Latest {
		t.Errorf("SetStatusAll = %+v, %v, want all three, 3.0.0 latest", one, err)
	}
}

func TestRemoteURLBelongsToOneServer(t *testing.T) {
	t.Parallel()
	w := newFixture(t, publishing.Config{}, registry.ActionPublish, registry.ActionEdit)
	remote := `"remotes":[{"type":"sse","url":"https://example.com/mcp"}]`
	other := strings.Replace(document("1.0.0", `"remotes":[{"type":"sse","url":"HTTPS://EXAMPLE.com:443/mcp"}]`),
		serverName, "com.example/other", 1)
	must.Succeed(t, publishCall(trustedToken, document("1.0.0", remote))(w))
	wantFault(t, publishCall(trustedToken, other)(w), fault.Conflict, "another server's address")
	must.Succeed(t, deleteCall(trustedToken, "1.0.0")(w))
	if err := publishCall(trustedToken, other)(w); err != nil {
		t.Errorf("an address that was given up: %v, want none", err)
	}
	wantFault(t, statusCall(trustedToken, `{"status":"active"}`, "1.0.0")(w), fault.Conflict,
		"leaving deleted with a taken address")
	if n := len(w.authority.acts); n != 5 {
		t.Errorf("the audit log holds %d acts, want one for each of five attempts", n)
	}
}

func TestAuditAndChangeGoTogether(t *testing.T) {
	t.Parallel()
	w := newFixture(t, publishing.Config{}, registry.ActionPublish)
	away := fault.New(fault.Unavailable, "the database is away")
	w.runner.atEnd = away
	if _, err := w.Publish(t.Context(), newRequest(document("1.0.0"))); !errors.Is(err, away) {
		t.Errorf("a commit that fails = %v, want its error", err)
	}
	w.requireActs(t, authority.Act{
		Action: "publish", ServerName: serverName, Version: "1.0.0", Reason: "the database is away",
	})
	w.runner.atEnd, w.authority.acts = nil, nil
	w.authority.fails = errors.New("disk full")
	if _, err := w.Publish(t.Context(), newRequest(document("1.0.0"))); !errors.Is(err, w.authority.fails) {
		t.Errorf("a record that fails = %v, want its error", err)
	}
	if _, err := w.Publish(t.Context(), newRequest("{}")); !errors.Is(err, w.authority.fails) {
		t.Errorf("a refusal that cannot be recorded = %v, want the record's error", err)
	}
	w.authority.fails = nil
	if _, err := w.Publish(t.Context(), newRequest(document("1.0.0"))); err != nil {
		t.Errorf("Publish = %v, want nothing left of the attempts before", err)
	}
}

func TestRefusalIsRecordedAfterCancellation(t *testing.T) {
	t.Parallel()
	w := newFixture(t, publishing.Config{}, registry.ActionPublish)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Publish(ctx, newRequest(document("1.0.0"))); !errors.Is(err, context.Canceled) {
		t.Errorf("Publish = %v, want the context's error", err)
	}
	w.requireActs(t, authority.Act{
		Action: "publish", ServerName: serverName, Version: "1.0.0", Reason: "internal error",
	})
}

func TestNamesInTheAuditLogAreBounded(t *testing.T) {
	t.Parallel()
	w := newFixture(t, publishing.Config{}, registry.ActionPublish)
	long := strings.Repeat("x", 100_000)
	if err := publishCall(trustedToken, `{"name":"`+long+`","`+long+`":1}`)(w); !fault.Is(err, fault.Invalid) {
		t.Fatalf("Publish = %v, want a fault of kind Invalid", err)
	}
	if a := w.authority.acts[0]; len(a.ServerName) > 300 || len(a.Reason) > 1100 {
		t.Errorf("the act holds %d and %d bytes, want them bounded", len(a.ServerName), len(a.Reason))
	}
}
