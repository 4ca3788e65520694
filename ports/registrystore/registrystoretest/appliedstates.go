package registrystoretest

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// AppliedStores are an empty store of the states of files, and its transactions.
type AppliedStores struct {
	States registrystore.AppliedStates
	Runner transaction.Runner
}

// RunAppliedStates runs the tests of the stores of the states of files. open is called for each
// test.
func RunAppliedStates(t *testing.T, open func(t *testing.T) AppliedStores) {
	t.Helper()
	parts := map[string]func(t *testing.T, s AppliedStores){
		"states have the values of all fields and are ordered by owner": keepsAppliedStates,
		"a failed transaction stores no state":                          rollsAppliedStatesBack,
	}
	for name, part := range parts {
		t.Run(name, func(t *testing.T) { part(t, open(t)) })
	}
}

func (s AppliedStores) want(t *testing.T, want ...registry.AppliedState) {
	t.Helper()
	got, err := s.States.List(t.Context())
	if err != nil || len(got) != len(want) || len(got) > 0 && !reflect.DeepEqual(got, want) {
		t.Errorf("List = %+v, %v, want %+v", got, err, want)
	}
}

func keepsAppliedStates(t *testing.T, s AppliedStores) {
	t.Helper()
	s.want(t)
	first := registry.AppliedState{Owner: "b", ApplyID: "1", By: "person:p", At: epoch, Objects: []audit.Object{{
		Kind: "view", Key: "data", Fields: audit.Details{
			"include": audit.Texts([]string{"com.example/*"}), "claims": audit.Details{"a": audit.Text("b")},
			"lenient": audit.Flag(true),
		},
	}}}
	second := registry.AppliedState{Owner: "a", ApplyID: "2", At: epoch}
	third := first
	third.ApplyID, third.Objects = "3", nil
	for _, a := range []registry.AppliedState{first, second} {
		if err := s.States.Save(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	s.want(t, second, first)
	if err := s.States.Save(t.Context(), third); err != nil {
		t.Fatal(err)
	}
	s.want(t, second, third)
}

func rollsAppliedStatesBack(t *testing.T, s AppliedStores) {
	t.Helper()
	failed := errors.New("failed")
	err := s.Runner.Atomically(t.Context(), func(ctx context.Context) error {
		return errors.Join(failed, s.States.Save(ctx, registry.AppliedState{Owner: "a", At: epoch}))
	})
	if !errors.Is(err, failed) {
		t.Errorf("Atomically = %v", err)
	}
	s.want(t)
}
