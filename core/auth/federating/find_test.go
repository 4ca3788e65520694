package federating

import (
	"context"
	"testing"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
)

// lateIdentities are identities that another sign-in adds after this one has looked for its own.
type lateIdentities struct{ authstore.Identities }

func (lateIdentities) Find(context.Context, string, string) (company.Identity, error) {
	return company.Identity{}, auth.NotFound("identity")
}

// TestPersonOfParallelSignIn checks that a sign-in finds its own identity also if a sign-in at the same
// time has added it since: it is not one of somebody else.
func TestPersonOfParallelSignIn(t *testing.T) {
	ctx, db := t.Context(), fakedb.New()
	accounts, identities := fakedb.NewAccounts(db), fakedb.NewIdentities(db)
	must.Succeed(t, accounts.Create(ctx, auth.Account{ID: "ada", Email: "ada@example.com", State: auth.AccountActive}))
	own := company.Identity{ID: "1", UserID: "ada", Issuer: "https://login.example", Subject: "u1"}
	must.Succeed(t, identities.Add(ctx, own))
	s := &Service{ports: Ports{Accounts: accounts, Identities: lateIdentities{identities}, Grants: &operators{}}}
	for subject, linked := range map[string]bool{"u1": true, "u2": false} {
		p := &person{
			service: s, provider: &company.Provider{Issuer: own.Issuer},
			claims: &company.Claims{Issuer: own.Issuer, Subject: subject, Email: "ada@example.com"},
		}
		known, found, err := p.find(ctx)
		if err != nil || known.Linked != linked || known.HasOther == linked || (found.ID == own.ID) != linked {
			t.Errorf("%s: %+v, %+v, error %v", subject, known, found, err)
		}
	}
}
