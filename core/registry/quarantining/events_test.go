package quarantining_test

import (
	"slices"
	"testing"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/quarantining"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/eventdata/eventdatatest"
	"github.com/tollgate-dev/tollgate/test/fakedb"
)

// TestQuarantineIsAnEvent checks that each entry and each release is an event, by a person and by
// an operator, of a version and of a server; and that what is refused or not recorded is none
// (contract C-50).
func TestQuarantineIsAnEvent(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	eventdatatest.AddWebhook(t, fakedb.NewWebhooks(f.db))
	wantEvents := func(what string, err error, want ...string) {
		t.Helper()
		if got := eventdatatest.Take(t, fakedb.NewDeliveries(f.db)); !slices.Equal(got, want) ||
			(err == nil) != (len(want) > 0) {
			t.Errorf("%s: the events are %q with the error %v, want %q", what, got, err, want)
		}
	}
	_, err := f.add(t, "ada", serverA, "2.0.0", "it sends mail")
	wantEvents("a version", err, "quarantined "+serverA+"@2.0.0 it sends mail")
	_, err = f.add(t, "ada", serverA, "2.0.0", "it sends mail")
	wantEvents("a version that is there already", err)
	_, err = f.add(t, "bea", serverA, "1.0.0", "it sends mail")
	wantEvents("without the grant", err)
	_, err = f.hide(t, quarantining.Target{ServerName: serverB}, "all of it")
	wantEvents("a server, by an operator", err, "quarantined "+serverB+"@ all of it")
	wantEvents("a release that is not recorded",
		f.failing(func() error { return f.release(t, "ada", serverA, "2.0.0") }))
	wantEvents("a release", f.release(t, "ada", serverA, "2.0.0"), "released "+serverA+"@2.0.0 ")
	wantEvents("a second release", f.release(t, "ada", serverA, "2.0.0"))
	err = f.service.Release(t.Context(), authority.Operator(), quarantining.Target{ServerName: serverB})
	wantEvents("a release of a server, by an operator", err, "released "+serverB+"@ ")
}

// failing calls a function while the audit log cannot be written.
func (f *fixture) failing(do func() error) error {
	f.people.fails = fault.New(fault.Unavailable, "the audit log is away")
	defer func() { f.people.fails = nil }()
	return do()
}
