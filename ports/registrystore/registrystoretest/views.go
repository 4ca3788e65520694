package registrystoretest

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/view"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// ViewStores are an empty store of views, and its transactions.
type ViewStores struct {
	Views  registrystore.Views
	Runner transaction.Runner
}

// RunViews runs the tests of the stores of views. open is called for each test.
func RunViews(t *testing.T, open func(t *testing.T) ViewStores) {
	t.Helper()
	parts := map[string]func(t *testing.T, s ViewStores){
		"an empty store has no views":                                        hasNoViews,
		"stored views have the values of all fields and are ordered by name": keepsViews,
		"a view replaces the one with its name, whose tokens stay":           replacesView,
		"the tokens of a view are listed by name":                            keepsViewTokens,
		"a second token with the same name is refused":                       refusesViewTokenTwice,
		"a token of a view that does not exist is refused":                   refusesTokenOfNoView,
		"a removed token is not found":                                       removesViewToken,
		"a removed view is not found, and its tokens are removed":            removesView,
		"one of several parallel tokens with the same name is stored":        addsViewTokensInParallel,
		"a token that is added while its view is removed does not remain":    removesViewsInParallel,
		"a failed transaction stores no view":                                rollsViewsBack,
		"a call with a cancelled context fails":                              refusesCanceledViews,
	}
	for name, part := range parts {
		t.Run(name, func(t *testing.T) { part(t, open(t)) })
	}
}

// newView returns the view of a draft.
func newView(t *testing.T, d view.Draft) view.View {
	t.Helper()
	v, err := view.New(d)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// newViewToken returns a token whose hash has the byte n.
func newViewToken(v view.Name, name view.TokenName, n byte) view.Token {
	return view.Token{View: v, Name: name, Hash: view.Hash{0, n, 255}, CreatedAt: epoch}
}

func (s ViewStores) add(t *testing.T, views ...view.View) {
	t.Helper()
	for _, v := range views {
		if err := s.Views.Put(t.Context(), v); err != nil {
			t.Fatal(err)
		}
	}
}

func (s ViewStores) addTokens(t *testing.T, tokens ...view.Token) {
	t.Helper()
	for _, token := range tokens {
		if err := s.Views.AddToken(t.Context(), token); err != nil {
			t.Fatal(err)
		}
	}
}

func (s ViewStores) wantViews(t *testing.T, want ...view.View) {
	t.Helper()
	got, err := s.Views.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(want) {
		t.Fatalf("List = %+v, want %+v", got, want)
	}
	for i := range got {
		if !got[i].Equal(want[i]) {
			t.Errorf("view %d is %+v, want %+v", i, got[i], want[i])
		}
	}
}

func (s ViewStores) wantTokens(t *testing.T, want ...view.Token) {
	t.Helper()
	got, err := s.Views.Tokens(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(want) || len(got) > 0 && !reflect.DeepEqual(got, want) {
		t.Errorf("Tokens = %+v, want %+v", got, want)
	}
}

func hasNoViews(t *testing.T, s ViewStores) {
	t.Helper()
	s.wantViews(t)
	s.wantTokens(t)
	if err := s.Views.Remove(t.Context(), "team"); !fault.Is(err, fault.NotFound) {
		t.Errorf("Remove in an empty store: %v, want fault.NotFound", err)
	}
	if err := s.Views.RemoveToken(t.Context(), "team", "a"); !fault.Is(err, fault.NotFound) {
		t.Errorf("RemoveToken in an empty store: %v, want fault.NotFound", err)
	}
}

func keepsViews(t *testing.T, s ViewStores) {
	t.Helper()
	plain := newView(t, view.Draft{Name: "plain"})
	whole := newView(t, view.Draft{
		Name: "a-9", Include: []string{"com.example/*", "*", "org.example/a"}, Exclude: []string{"com.example/b*"},
		Deprecated: "hide", Access: "token",
	})
	people := newView(t, view.Draft{
		Name: "b", Access: "people", People: []string{"ada@example.com", "é@example.com"}, Groups: []string{"acme/a b: é\\n", "acme/x/y"},
	})
	everybody := newView(t, view.Draft{Name: "c", Access: "people"})
	s.add(t, plain, everybody, whole, people)
	s.wantViews(t, whole, people, everybody, plain)
	got, err := s.Views.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got[0].Include[0] = got[0].Exclude[0]
	s.wantViews(t, whole, people, everybody, plain)
	everybody.Access, people.Access, people.Members = view.WithToken, view.Public, view.Members{}
	s.add(t, everybody, people)
	s.wantViews(t, whole, people, everybody, plain)
}

func replacesView(t *testing.T, s ViewStores) {
	t.Helper()
	s.add(t, newView(t, view.Draft{Name: "team", Access: "token"}))
	token := newViewToken("team", "a", 1)
	s.addTokens(t, token)
	second := newView(t, view.Draft{
		Name: "team", Include: []string{"com.example/*"}, Exclude: []string{"com.example/a"}, Deprecated: "hide",
		ManagedBy: "platform",
	})
	s.add(t, second)
	s.wantViews(t, second)
	s.wantTokens(t, token)
}

func keepsViewTokens(t *testing.T, s ViewStores) {
	t.Helper()
	s.add(t, newView(t, view.Draft{Name: "team"}), newView(t, view.Draft{Name: "other"}))
	a, b, c := newViewToken("team", "a", 1), newViewToken("team", "b", 2), newViewToken("other", "b", 3)
	b.CreatedAt = epoch.Add(321).In(time.FixedZone("", 3*60*60))
	s.addTokens(t, b, a, c)
	b.CreatedAt = epoch
	s.wantTokens(t, c, a, b)
}

func refusesViewTokenTwice(t *testing.T, s ViewStores) {
	t.Helper()
	s.add(t, newView(t, view.Draft{Name: "team"}), newView(t, view.Draft{Name: "other"}))
	first := newViewToken("team", "a", 1)
	s.addTokens(t, first)
	for _, second := range []view.Token{
		newViewToken("team", "a", 2), newViewToken("team", "b", 1), newViewToken("other", "b", 1),
	} {
		if err := s.Views.AddToken(t.Context(), second); !fault.Is(err, fault.Conflict) {
			t.Errorf("AddToken %+v: %v, want fault.Conflict", second, err)
		}
	}
	s.wantTokens(t, first)
}

func refusesTokenOfNoView(t *testing.T, s ViewStores) {
	t.Helper()
	if err := s.Views.AddToken(t.Context(), newViewToken("team", "a", 1)); !fault.Is(err, fault.NotFound) {
		t.Errorf("AddToken of no view: %v, want fault.NotFound", err)
	}
	s.wantTokens(t)
}

func removesViewToken(t *testing.T, s ViewStores) {
	t.Helper()
	s.add(t, newView(t, view.Draft{Name: "team"}), newView(t, view.Draft{Name: "other"}))
	a, b := newViewToken("team", "a", 1), newViewToken("other", "a", 2)
	s.addTokens(t, a, b)
	if err := s.Views.RemoveToken(t.Context(), "team", "a"); err != nil {
		t.Fatal(err)
	}
	s.wantTokens(t, b)
	if err := s.Views.RemoveToken(t.Context(), "team", "a"); !fault.Is(err, fault.NotFound) {
		t.Errorf("RemoveToken again: %v, want fault.NotFound", err)
	}
	s.addTokens(t, a)
	s.wantTokens(t, b, a)
}

// removesView checks that a view that is added again does not have the tokens of the first.
func removesView(t *testing.T, s ViewStores) {
	t.Helper()
	team, other := newView(t, view.Draft{Name: "team"}), newView(t, view.Draft{Name: "other"})
	s.add(t, team, other)
	kept := newViewToken("other", "a", 2)
	s.addTokens(t, newViewToken("team", "a", 1), newViewToken("team", "b", 3), kept)
	if err := s.Views.Remove(t.Context(), "team"); err != nil {
		t.Fatal(err)
	}
	s.wantViews(t, other)
	s.wantTokens(t, kept)
	s.add(t, team)
	s.wantTokens(t, kept)
}

func addsViewTokensInParallel(t *testing.T, s ViewStores) {
	t.Helper()
	s.add(t, newView(t, view.Draft{Name: "team"}))
	var added atomic.Int32
	var all sync.WaitGroup
	for n := range byte(8) {
		all.Go(func() {
			switch err := s.Views.AddToken(t.Context(), newViewToken("team", "a", n)); {
			case err == nil:
				added.Add(1)
			case !fault.Is(err, fault.Conflict):
				t.Errorf("AddToken: %v", err)
			}
		})
	}
	all.Wait()
	if n := added.Load(); n != 1 {
		t.Errorf("%d of 8 parallel tokens of one name were added", n)
	}
}

// removesViewsInParallel adds tokens while the view is removed: no token outlives it.
func removesViewsInParallel(t *testing.T, s ViewStores) {
	t.Helper()
	for range 5 {
		s.add(t, newView(t, view.Draft{Name: "team"}))
		var all sync.WaitGroup
		for n := range byte(4) {
			all.Go(func() {
				if err := s.Views.AddToken(t.Context(),
					newViewToken("team", view.TokenName('a'+rune(n)), n)); err != nil &&
					!fault.Is(err, fault.NotFound) {
					t.Errorf("AddToken: %v", err)
				}
			})
		}
		all.Go(func() {
			if err := s.Views.Remove(t.Context(), "team"); err != nil {
				t.Errorf("Remove: %v", err)
			}
		})
		all.Wait()
		s.wantTokens(t)
	}
}

func rollsViewsBack(t *testing.T, s ViewStores) {
	t.Helper()
	errLater := errors.New("later")
	team, a := newView(t, view.Draft{Name: "team"}), newViewToken("team", "a", 1)
	s.add(t, team)
	s.addTokens(t, a)
	err := s.Runner.Atomically(t.Context(), func(ctx context.Context) error {
		return errors.Join(s.Views.Remove(ctx, "team"),
			s.Views.Put(ctx, newView(t, view.Draft{Name: "other"})), errLater)
	})
	if !errors.Is(err, errLater) {
		t.Fatal(err)
	}
	s.wantViews(t, team)
	s.wantTokens(t, a)
}

func refusesCanceledViews(t *testing.T, s ViewStores) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, listErr := s.Views.List(ctx)
	_, tokensErr := s.Views.Tokens(ctx)
	for method, err := range map[string]error{
		"Put": s.Views.Put(ctx, newView(t, view.Draft{Name: "team"})), "Remove": s.Views.Remove(ctx, "team"),
		"List": listErr, "Tokens": tokensErr,
		"AddToken":    s.Views.AddToken(ctx, newViewToken("team", "a", 1)),
		"RemoveToken": s.Views.RemoveToken(ctx, "team", "a"),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s with a canceled context: %v", method, err)
		}
	}
}
