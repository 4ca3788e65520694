package registrystoretest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/tools"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// ToolListStores are an empty store of tool lists, with its servers and transactions.
type ToolListStores struct {
	Lists    registrystore.ToolLists
	Writer   registrystore.ServerWriter
	Mirrored registrystore.MirroredVersions
	Runner   transaction.Runner
}

// RunToolLists runs the tests of the stores of tool lists. open is called for each test.
func RunToolLists(t *testing.T, open func(t *testing.T) ToolListStores) {
	t.Helper()
	parts := map[string]func(t *testing.T, s ToolListStores){
		"an empty store has no lists":                            hasNoLists,
		"a list is returned as it was stored":                    keepsLists,
		"a part has a list that is approved and one that is not": replacesLists,
		"lists are returned in order":                            ordersLists,
		"only a list that is not approved is withdrawn":          withdrawsLists,
		"a failed transaction stores no list":                    rollsListsBack,
		"lists go with their version":                            removesListsWithVersion,
		"one of many writers at once is the last":                putsListsInParallel,
		"a call with a cancelled context fails":                  refusesCanceledLists,
	}
	for name, part := range parts {
		t.Run(name, func(t *testing.T) { part(t, open(t)) })
	}
}

const ofLists = "com.example/lists"

// inServer makes a change in a transaction that has locked the server, whose version 1.0.0 exists.
func (s ToolListStores) inServer(ctx context.Context, t *testing.T, change func(ctx context.Context) error) error {
	t.Helper()
	return s.Runner.Atomically(ctx, func(ctx context.Context) error {
		releases, err := s.Writer.Lock(ctx, name(t, ofLists))
		if err != nil {
			return err
		}
		if len(releases) == 0 {
			if err := s.Writer.Save(ctx, []registrystore.Change{published(release(t, ofLists, "1.0.0", 0))}); err != nil {
				return err
			}
		}
		return change(ctx)
	})
}

// listOf returns a list of one tool.
func listOf(t *testing.T, tool string) tools.List {
	t.Helper()
	l, err := tools.Parse(fmt.Appendf(nil, `{"tools":[{"name":%q,"description":"ä \u0000 <&>","inputSchema":{"maximum":1e3}}],
		"instructions":"i","prompts":[{"name":"p"}]}`, tool))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// stored returns a list of a part, which a digit names.
func stored(t *testing.T, part string, state tools.State, tool string) tools.Stored {
	t.Helper()
	return tools.Stored{
		Name: name(t, ofLists), Version: version(t, "1.0.0"), Part: tools.PartKey(strings.Repeat(part, 64)), Source: tools.Recorded,
		State: state, At: hour(2), By: tools.Sender{Key: "7b0c", Policy: "p1", Makers: []registry.Holder{"m", "n"}}, List: listOf(t, tool),
	}
}

func (s ToolListStores) put(t *testing.T, lists ...tools.Stored) {
	t.Helper()
	for _, l := range lists {
		if err := s.inServer(t.Context(), t, func(ctx context.Context) error { return s.Lists.Put(ctx, l) }); err != nil {
			t.Fatal(err)
		}
	}
}

func (s ToolListStores) require(t *testing.T, want ...tools.Stored) {
	t.Helper()
	got, err := s.Lists.OfVersion(t.Context(), name(t, ofLists), version(t, "1.0.0"))
	if err != nil || len(got) != len(want) || len(want) > 0 && !reflect.DeepEqual(got, want) {
		t.Errorf("OfVersion =\n%+v, %v, want\n%+v", got, err, want)
	}
}

func hasNoLists(t *testing.T, s ToolListStores) {
	t.Helper()
	s.require(t)
	err := s.inServer(t.Context(), t, func(ctx context.Context) error {
		return s.Lists.Withdraw(ctx, stored(t, "1", tools.Differs, "a"))
	})
	if !fault.Is(err, fault.NotFound) {
		t.Errorf("Withdraw of what is not there: %v", err)
	}
}

func keepsLists(t *testing.T, s ToolListStores) {
	t.Helper()
	l := stored(t, "1", tools.Pending, "a")
	late := l
	late.At = l.At.Add(999 * time.Nanosecond).In(time.FixedZone("east", 3600))
	s.put(t, late)
	s.require(t, l)
	other, err := s.Lists.OfVersion(t.Context(), name(t, ofLists), version(t, "1.0.1"))
	if err != nil || len(other) > 0 {
		t.Errorf("another version has %+v, %v", other, err)
	}
	l.By = tools.Sender{Key: "plain"}
	s.put(t, l)
	s.require(t, l)
}

func replacesLists(t *testing.T, s ToolListStores) {
	t.Helper()
	approved, differs := stored(t, "1", tools.Approved, "a"), stored(t, "1", tools.Differs, "b")
	s.put(t, approved, differs)
	s.require(t, approved, differs)
	differs.List, differs.By.Key, differs.At = listOf(t, "c"), "another", hour(3)
	approved.List = listOf(t, "d")
	s.put(t, differs, approved)
	s.require(t, approved, differs)
}

func ordersLists(t *testing.T, s ToolListStores) {
	t.Helper()
	a, b, c := stored(t, "1", tools.Approved, "a"), stored(t, "1", tools.Differs, "b"), stored(t, "2", tools.Pending, "c")
	s.put(t, c, b, a)
	s.require(t, a, b, c)
}

func withdrawsLists(t *testing.T, s ToolListStores) {
	t.Helper()
	approved, differs, other := stored(t, "1", tools.Approved, "a"), stored(t, "1", tools.Differs, "b"), stored(t, "2", tools.Pending, "c")
	s.put(t, approved, differs, other)
	withdraw := func() error {
		return s.inServer(t.Context(), t, func(ctx context.Context) error { return s.Lists.Withdraw(ctx, differs) })
	}
	if err := withdraw(); err != nil {
		t.Fatal(err)
	}
	s.require(t, approved, other)
	if err := withdraw(); !fault.Is(err, fault.NotFound) {
		t.Errorf("a second time: %v", err)
	}
}

func rollsListsBack(t *testing.T, s ToolListStores) {
	t.Helper()
	kept := stored(t, "1", tools.Pending, "a")
	s.put(t, kept)
	refused := errors.New("refused")
	err := s.inServer(t.Context(), t, func(ctx context.Context) error {
		err := s.Lists.Put(ctx, stored(t, "2", tools.Approved, "b"))
		if err == nil {
			err = s.Lists.Withdraw(ctx, kept)
		}
		return errors.Join(err, refused)
	})
	if !errors.Is(err, refused) {
		t.Fatalf("the transaction ended with %v", err)
	}
	s.require(t, kept)
}

func removesListsWithVersion(t *testing.T, s ToolListStores) {
	t.Helper()
	s.put(t, stored(t, "1", tools.Approved, "a"), stored(t, "1", tools.Differs, "b"))
	err := s.inServer(t.Context(), t, func(ctx context.Context) error {
		return s.Mirrored.Purge(ctx, []registry.Name{name(t, ofLists)})
	})
	if err != nil {
		t.Fatal(err)
	}
	s.require(t)
}

func putsListsInParallel(t *testing.T, s ToolListStores) {
	t.Helper()
	s.put(t, stored(t, "1", tools.Approved, "a"))
	var group sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		l := stored(t, "1", tools.Differs, fmt.Sprintf("t%d", i))
		group.Go(func() {
			errs[i] = s.inServer(t.Context(), t, func(ctx context.Context) error { return s.Lists.Put(ctx, l) })
		})
	}
	group.Wait()
	got, err := s.Lists.OfVersion(t.Context(), name(t, ofLists), version(t, "1.0.0"))
	if err := errors.Join(append(errs, err)...); err != nil || len(got) != 2 || got[1].State != tools.Differs {
		t.Errorf("after all writers there are %+v, %v", got, err)
	}
}

func refusesCanceledLists(t *testing.T, s ToolListStores) {
	t.Helper()
	s.put(t, stored(t, "1", tools.Approved, "a"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Lists.OfVersion(ctx, name(t, ofLists), version(t, "1.0.0")); !errors.Is(err, context.Canceled) {
		t.Errorf("OfVersion = %v", err)
	}
	if err := s.Lists.Put(ctx, stored(t, "1", tools.Approved, "b")); !errors.Is(err, context.Canceled) {
		t.Errorf("Put = %v", err)
	}
	if err := s.Lists.Withdraw(ctx, stored(t, "1", tools.Differs, "b")); !errors.Is(err, context.Canceled) {
		t.Errorf("Withdraw = %v", err)
	}
}
