package permit_test

import (
	"context"
	"testing"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/permit"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/authority/authoritytest"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
)

// acts keeps what is recorded.
type acts []authority.Act

func (l *acts) Record(_ context.Context, a authority.Act) error {
	*l = append(*l, a)
	return nil
}

// as returns the caller with a token: the name of a person at FULL_TRUST, or "low" or "publisher".
func as(token string) authority.Caller {
	switch token {
	case "publisher":
		return authority.NewPublisher(authority.Publisher{Method: publisher.DNS}, authoritytest.Address())
	case "low":
		token = "ada low"
	}
	return authoritytest.Person(token)
}

// TestAuthorize: only a person with the grant and full trust may operate, and a refusal for the
// grant is recorded with the address.
func TestAuthorize(t *testing.T) {
	grants := fakedb.NewGrants(fakedb.New())
	for _, g := range [][3]string{
		{"ada", "operate", ""}, {"bea", "publish", "*"}, {"bea", "edit", "*"}, {"bea", "review", "*"},
	} {
		grant, err := registry.ParseGrant(registry.Holder(g[0]), g[1], g[2])
		if err == nil {
			err = grants.Add(t.Context(), registry.GrantRecord{Grant: grant})
		}
		must.Succeed(t, err)
	}
	for token, want := range map[string]struct {
		kind     fault.Kind
		recorded int
		stepUp   bool
	}{
		"ada": {}, "": {kind: fault.Unauthenticated}, "publisher": {kind: fault.Forbidden}, "bea": {
			kind: fault.Forbidden, recorded: 1,
		},
		"low": {kind: fault.Forbidden, stepUp: true},
	} {
		var recorded acts
		holder, err := permit.NewOperators(grants, &recorded).Authorize(t.Context(), as(token))
		f, refused := fault.As(err)
		if refused != (token != "ada") || refused && f.Kind != want.kind || len(recorded) != want.recorded ||
			!refused && holder != "ada" {
			t.Errorf("%q: %q, %v, recorded %v", token, holder, err, recorded)
		}
		if refused && (f.Details["challenge"] != nil) != want.stepUp {
			t.Errorf("%q: the details are %v", token, f.Details)
		}
		if len(recorded) == 1 && (recorded[0].Caller.Address() != authoritytest.Address() || recorded[0].Reason == "") {
			t.Errorf("%q: recorded %+v", token, recorded[0])
		}
	}
}
