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
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/core/registry/tools"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// ToolListStores are an empty store of tool lists, with its servers, reviews and transactions.
type ToolListStores struct {
	Lists     registrystore.ToolLists
	Writer    registrystore.ServerWriter
	Mirrored  registrystore.MirroredVersions
	Reviews   registrystore.Reviews
	Backlog   registrystore.ReviewBacklog
	Catalogue registrystore.Catalogue // nil if nothing has to be indexed
	Runner    transaction.Runner
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
		"lists that wait with a review go with its decision":     keepsListsOfReview,
		"a list that waits has one review":                       reviewsLists,
		"names of other servers and of their tools are found":    findsNames,
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
			first := release(t, ofLists, "1.0.0", 0)
			first.Latest = true
			if err := s.Writer.Save(ctx, []registrystore.Change{published(first)}); err != nil {
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
	if got, err := s.Lists.Servers(t.Context()); err != nil || len(got) != 1 || got[0] != l.Name {
		t.Errorf("Servers = %v, %v", got, err)
	}
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

func keepsListsOfReview(t *testing.T, s ToolListStores) {
	t.Helper()
	r := newReview(t, 1, ofLists, "ada")
	err := s.Runner.Atomically(t.Context(), func(ctx context.Context) error { return s.Reviews.Add(ctx, r, noLimit) })
	if err != nil {
		t.Fatal(err)
	}
	l := stored(t, "1", tools.Pending, "a")
	l.Version, l.Review = r.Version, r.ID
	other := l
	other.Source, other.List = tools.Asked, listOf(t, "b")
	s.put(t, other, l, stored(t, "1", tools.Approved, "c"))
	l.List = listOf(t, "d")
	s.put(t, l)
	want := []tools.Stored{other, l}
	if got, err := s.Lists.OfReview(t.Context(), r.ID); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("OfReview =\n%+v, %v, want\n%+v", got, err, want)
	}
	s.require(t, stored(t, "1", tools.Approved, "c"))
	if got, err := s.Lists.OfReview(t.Context(), reviewID(2)); err != nil || len(got) > 0 {
		t.Errorf("another review has %+v, %v", got, err)
	}
	if err := s.Reviews.Decide(t.Context(), approved(r)); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Lists.OfReview(t.Context(), r.ID); err != nil || len(got) > 0 {
		t.Errorf("after the decision there are %+v, %v", got, err)
	}
	s.require(t, stored(t, "1", tools.Approved, "c"))
}

func reviewsLists(t *testing.T, s ToolListStores) {
	t.Helper()
	l := stored(t, "1", tools.Differs, "b")
	s.put(t, stored(t, "1", tools.Approved, "a"), l)
	r := newReview(t, 0, ofLists, "ada")
	r.Kind, r.Document, r.Part, r.Source = review.Tools, l.List.Canonical(), l.Part, l.Source
	asked, document, second := newReview(t, 0, ofLists, "ada"), newReview(t, 0, ofLists, "ada"), r
	asked.ID, asked.Kind, asked.Part, asked.Source = reviewID(2), review.Tools, l.Part, tools.Asked
	document.ID, document.Kind, second.ID = reviewID(3), review.Replacement, reviewID(4)
	add := func(r review.Review) error { // tool lists have no limit of a submitter
		return s.Runner.Atomically(t.Context(), func(ctx context.Context) error { return s.Reviews.Add(ctx, r, 1) })
	}
	for _, one := range []review.Review{r, asked, document} {
		if err := add(one); err != nil {
			t.Fatal(err)
		}
	}
	if err := add(second); !fault.Is(err, fault.Conflict) {
		t.Errorf("a second review of a list: %v", err)
	}
	if got, err := s.Backlog.PendingTools(t.Context(), l); err != nil || !reflect.DeepEqual(got, r) {
		t.Errorf("PendingTools = %+v, %v, want %+v", got, err, r)
	}
	if got, err := s.Reviews.PendingOf(t.Context(), r.Name, r.Version); err != nil || got.ID != document.ID {
		t.Errorf("PendingOf = %+v, %v, want the document", got, err)
	}
	compared, err := s.Reviews.Compared(t.Context(), []review.Review{asked, r})
	if want := listOf(t, "a").Canonical(); err != nil || compared[0] != nil || string(compared[1]) != string(want) {
		t.Errorf("Compared = %s, %v, want nothing, and %s", compared, err, want)
	}
	if err := s.Reviews.Decide(t.Context(), approved(r)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Backlog.PendingTools(t.Context(), l); !fault.Is(err, fault.NotFound) {
		t.Errorf("PendingTools of a decided one: %v", err)
	}
}

func findsNames(t *testing.T, s ToolListStores) {
	t.Helper()
	s.put(t, stored(t, "1", tools.Approved, "search_mail"), stored(t, "2", tools.Pending, "waiting_tool"))
	s.index(t)
	want := func(other string, words []string, want tools.Listed) {
		t.Helper()
		got, err := s.Lists.Named(t.Context(), name(t, other), words)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("Named(%s) of %d words = %+v, %v, want %+v", other, len(words), got, err, want)
		}
	}
	words := []string{ofLists, "com.example/none", "search_mail", "waiting_tool", "search"}
	for i := range 600 {
		words = append(words, fmt.Sprintf("word_%d", i))
	}
	none := tools.Listed{Servers: map[string]bool{}, Tools: map[string]string{}}
	want("com.example/other", words, tools.Listed{Servers: map[string]bool{ofLists: true}, Tools: map[string]string{"search_mail": ofLists}})
	want(ofLists, words, none)
	want("com.example/other", nil, none)
	if s.Catalogue != nil {
		for text, total := range map[string]int{"search_mail": 1, "waiting_tool": 0} {
			found, err := s.Catalogue.Find(t.Context(), registrystore.Search{Words: []string{text}, Limit: 10})
			if err != nil || found.Total != total {
				t.Errorf("the catalogue finds %+v, %v by %s, want %d", found, err, text, total)
			}
		}
	}
	s.put(t, stored(t, "1", tools.Approved, "other_tool"))
	s.index(t)
	want("com.example/other", words, tools.Listed{Servers: map[string]bool{ofLists: true}, Tools: map[string]string{}})
}

// index makes the catalogue up to date.
func (s ToolListStores) index(t *testing.T) {
	t.Helper()
	for more := s.Catalogue != nil; more; {
		var err error
		if more, err = s.Catalogue.Index(t.Context(), indexed); err != nil {
			t.Fatal(err)
		}
	}
}
