package browsing

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/tollgate-dev/tollgate/core/fields"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/view"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/management"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/ports/report"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// Finder finds servers by what people write (console, tollgate server search). The search of the
// API, which looks at names only, is Browser.List. It is safe for concurrent use.
type Finder struct{ ports FinderPorts }

// FinderPorts are the dependencies of a Finder. All fields are required.
type FinderPorts struct {
	Catalogue registrystore.Catalogue
	Servers   registrystore.SnapshotReader
	Views     Views
	Grants    registrystore.Grants
	// Collections is nil without collections.
	Collections management.Store[view.CollectionName, view.Collection]
	Waiter      clock.Waiter
	Reporter    report.Reporter
}

// Views are the views of the registry. viewing.Gate implements it.
type Views interface {
	// Known returns the views whose names a caller may know.
	Known(ctx context.Context, who authority.Caller) ([]view.View, error)
}

// NewFinder returns a finder.
func NewFinder(p FinderPorts) *Finder { return &Finder{p} }

// IndexFailed means that the index of the catalogue could not be made. It is tried again later.
type IndexFailed struct{ Err error }

// indexEvery is the time between two looks for servers that changed. Searches look too, so that it
// matters after a start or an import only.
const indexEvery = 5 * time.Second

// Run makes the index of what changed until the context ends.
func (f *Finder) Run(ctx context.Context) {
	for {
		more, err := f.ports.Catalogue.Index(transaction.Long(ctx), indexedByRun)
		if err != nil && ctx.Err() == nil {
			f.ports.Reporter.Report(IndexFailed{err})
		}
		if more && err == nil {
			continue
		}
		if !f.ports.Waiter.Wait(ctx, indexEvery) {
			return
		}
	}
}

// Wanted has the parameters of a search, as they were sent. An empty one counts as absent.
type Wanted struct {
	Text       string // words; a server has all of them
	Status     string // of the latest version; without one, any but deleted
	Namespace  string
	Package    string // type of a package
	Transport  string
	Tools      string // what is known of its tools: a value of registry.FacetTools
	Remote     string // true or false
	Origin     string // a mirror, or registry.OwnOrigin
	Owner      string // none or known
	View       string
	Collection string // of servers, which come in its order unless another one is wanted
	Sort       string // a registrystore.Order
	Page       string // from 1
	Counted    bool   // Found.Facets is wanted
}

// The limits of a search.
const (
	PageSize  = 30  // servers of a page
	maxText   = 200 // bytes
	maxWords  = 8
	maxPage   = 100_000
	maxFilter = 300 // bytes of a filter
)

// Found is a page of a search.
type Found struct {
	Servers []registrystore.FoundServer
	Total   int  // of all pages
	More    bool // more than Total match; the pages have the best ones
	Page    int
	Pages   int
	// Making is what the catalogue lacks, or zero. Meanwhile the servers that it lacks are found as
	// the search of the API finds them: by their names.
	Making registrystore.Progress
	// Facets is how many of the servers of all pages have each facet. It is nil where that is not known.
	Facets map[registry.Facet]int
	// Collection is the one that was wanted, or nil. Own is how many of the servers of the page are those that
	// the caller may change, which are the first.
	Collection *view.Collection
	Own        int
	// Corrected has the words that were looked for in place of those that no server has; otherwise empty.
	Corrected string
}

// Find returns a page of the servers that somebody looks for: best match first, or all servers,
// those that the caller may change first (contract U-15). It returns fault.Invalid, with the name of
// the parameter, for one that breaks a rule.
func (f *Finder) Find(ctx context.Context, w Wanted, who authority.Caller) (Found, error) {
	s, page, err := w.parse()
	if err != nil {
		return Found{}, err
	}
	if err := f.restrict(ctx, &s, w.View, who); err != nil {
		return Found{}, err
	}
	s.Offset, s.Limit = (page-1)*PageSize, PageSize
	result := Found{Page: page}
	if result.Collection, err = f.collect(ctx, &s, w.Collection); err != nil {
		return Found{}, err
	}
	making, err := f.catchUp(ctx)
	if err != nil {
		return Found{}, err
	}
	found, err := f.find(ctx, s, w, who, making)
	if err != nil {
		return Found{}, err
	}
	result.Making, result.Own = making, found.Own
	if found.Total == 0 && making.Waiting == 0 {
		if result.Corrected, err = f.correct(ctx, &s); err != nil {
			return Found{}, err
		}
		if result.Corrected != "" {
			if found, err = f.search(ctx, s, making); err != nil {
				return Found{}, err
			}
		}
	}
	result.Servers, result.Total, result.More = found.Servers, found.Total, found.More
	if c := result.Collection; c != nil && isArranged(s) {
		all := arrange(c, found.Servers)
		begin := min((page-1)*PageSize, len(all))
		result.Servers = all[begin:min(begin+PageSize, len(all))]
	}
	result.Pages = (found.Total + PageSize - 1) / PageSize
	if w.Counted && making.Waiting == 0 {
		result.Facets, err = f.ports.Catalogue.Count(ctx, s)
	}
	return result, err
}

// find returns a page: the servers of the caller first, in the usual order.
func (f *Finder) find(
	ctx context.Context, s registrystore.Search, w Wanted, who authority.Caller, making registrystore.Progress,
) (registrystore.Finding, error) {
	own, err := f.own(ctx, w, who)
	if err != nil || own == nil {
		if err != nil {
			return registrystore.Finding{}, err
		}
		return f.search(ctx, s, making)
	}
	first, rest := s, s
	first.Names, rest.Except = own, own
	mine, err := f.search(ctx, first, making)
	if err != nil {
		return registrystore.Finding{}, err
	}
	rest.Offset, rest.Limit = max(0, s.Offset-mine.Total), s.Limit-len(mine.Servers)
	others, err := f.search(ctx, rest, making)
	others.Servers = append(mine.Servers, others.Servers...)[:min(s.Limit, len(mine.Servers)+len(others.Servers))]
	others.Total, others.More, others.Own = others.Total+mine.Total, others.More || mine.More, len(mine.Servers)
	return others, err
}

// own returns the names of the servers that a person may change, or nil if the search is not for
// all servers in their usual order, or the person may change all of them or not one.
func (f *Finder) own(ctx context.Context, w Wanted, who authority.Caller) ([]registry.NameRange, error) {
	w.Page, w.Counted = "", false
	person, err := who.Person()
	if err != nil || w != (Wanted{}) {
		return nil, nil //nolint:nilerr // others have no servers of their own
	}
	grants, err := f.ports.Grants.Of(ctx, person)
	of := registry.Selection{Include: changeable(grants)}
	if err != nil || len(of.Include) == 0 {
		return nil, err
	}
	return of.Names(), nil
}

// restrict restricts a search to a view that the caller may read without a token of it. Of a view
// that hides deprecated versions, it finds the servers whose latest version is active.
func (f *Finder) restrict(ctx context.Context, s *registrystore.Search, name string, who authority.Caller) error {
	if name == "" || name == view.All {
		return nil
	}
	n, err := view.ParseName(name)
	if err != nil {
		return invalidParameter("view", "must be the name of a view")
	}
	all, err := f.ports.Views.Known(ctx, who)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(v view.View) bool { return v.Name == n && v.Access != view.WithToken })
	if i < 0 {
		return invalidParameter("view", "must be the name of a view that you may read without a token")
	}
	restrictTo(s, all[i])
	return nil
}

func restrictTo(s *registrystore.Search, v view.View) {
	s.Names = v.Names()
	if v.Deprecated == view.Hide {
		s.Facets = append(s.Facets, registry.NewFacet(registry.FacetStatus, string(registry.StatusActive)))
	}
}

// FindIn returns, from an offset, at most so many of the servers of a view that have the words, best
// match first. nil is the view of all servers; whether the caller may read the view is not checked.
// It returns fault.Invalid for a text that breaks a rule.
func (f *Finder) FindIn(ctx context.Context, v *view.View, text string, offset, limit int) (registrystore.Finding, error) {
	s, _, err := Wanted{Text: text}.parse()
	if err != nil {
		return registrystore.Finding{}, err
	}
	if v != nil {
		restrictTo(&s, *v)
	}
	s.Offset, s.Limit = offset, limit
	making, err := f.catchUp(ctx)
	if err != nil {
		return registrystore.Finding{}, err
	}
	found, err := f.search(ctx, s, making)
	if err != nil || found.Total > 0 || making.Waiting > 0 {
		return found, err
	}
	if corrected, err := f.correct(ctx, &s); err != nil || corrected == "" {
		return found, err
	}
	return f.search(ctx, s, making)
}

// parse validates the parameters, except for the view.
func (w Wanted) parse() (s registrystore.Search, page int, err error) {
	s.Words = strings.Fields(strings.ToLower(w.Text))
	if !registry.IsText(w.Text) {
		return s, 0, invalidParameter("q", "must be text in UTF-8, without the character NUL")
	}
	if len(w.Text) > maxText || len(s.Words) > maxWords {
		return s, 0, invalidParameter("q", "must have at most "+strconv.Itoa(maxWords)+" words and "+
			strconv.Itoa(maxText)+" bytes")
	}
	if w.Status != "" {
		status, err := registry.ParseStatus(w.Status)
		if err != nil {
			return s, 0, invalidParameter("status", "must be active, deprecated or deleted")
		}
		s.Deleted = status == registry.StatusDeleted
	}
	if w.Remote != "" && w.Remote != "true" && w.Remote != "false" {
		return s, 0, invalidParameter("remote", "must be true or false")
	}
	for _, filter := range []struct{ kind, value string }{
		{registry.FacetStatus, w.Status}, {registry.FacetNamespace, w.Namespace}, {registry.FacetPackage, w.Package},
		{registry.FacetTransport, w.Transport}, {registry.FacetTools, w.Tools}, {registry.FacetRemote, w.Remote}, {registry.FacetOrigin, w.Origin}, {registry.FacetOwner, w.Owner},
	} {
		switch {
		case !registry.IsText(filter.value):
			return s, 0, invalidParameter(filter.kind, "must be text in UTF-8, without the character NUL")
		case len(filter.value) > maxFilter:
			return s, 0, invalidParameter(filter.kind, "must have at most "+strconv.Itoa(maxFilter)+" bytes")
		case filter.value != "":
			s.Facets = append(s.Facets, registry.NewFacet(filter.kind, filter.value))
		}
	}
	if s.Order, err = parseOrder(w.Sort); err != nil {
		return s, 0, err
	}
	page, err = parsePage(w.Page)
	return s, page, err
}

func parseOrder(text string) (registrystore.Order, error) {
	o := registrystore.Order(text)
	orders := []registrystore.Order{
		"", registrystore.ByFit, registrystore.ByName, registrystore.ByUpdated, registrystore.ByNewest,
	}
	if !slices.Contains(orders, o) {
		return "", invalidParameter("sort", "must be fit, name, updated or newest")
	}
	if o == "" {
		o = registrystore.ByFit
	}
	return o, nil
}

func parsePage(text string) (int, error) {
	if text == "" {
		return 1, nil
	}
	page, err := strconv.Atoi(text)
	if err != nil || page < 1 || page > maxPage {
		return 0, invalidParameter("page", "must be a whole number from 1 to "+strconv.Itoa(maxPage))
	}
	return page, nil
}

// How a search that finds nothing forgives one wrong letter in one of its words.
const (
	minForgiven = 5   // letters of a word; of a shorter one, half says too little
	maxForgiven = 4   // words that are tried
	maxCompared = 200 // servers whose words are compared with a wrong one
)

// correct replaces a word of a search that finds nothing by a word that differs in one letter and that
// servers with the other words have, and returns the new words; empty if there is none. A name has some words.
func (f *Finder) correct(ctx context.Context, s *registrystore.Search) (string, error) {
	if words := strings.FieldsFunc(strings.Join(s.Words, " "), parts); len(words) <= maxWords {
		s.Words = words
	}
	for i, word := range s.Words {
		if i == maxForgiven {
			break
		}
		right, err := f.correctWord(ctx, *s, i)
		if err != nil {
			return "", err
		}
		if right != "" && right != word {
			s.Words = slices.Clone(s.Words)
			s.Words[i] = right
			return strings.Join(s.Words, " "), nil
		}
	}
	return "", nil
}

// correctWord returns the word for the one at an index. Of a word with one wrong letter, one half is
// right, so servers that have a half are compared.
func (f *Finder) correctWord(ctx context.Context, s registrystore.Search, at int) (string, error) {
	word := []rune(s.Words[at])
	if len(word) < minForgiven {
		return "", nil
	}
	frequent := map[string]int{}
	s.Words, s.Offset, s.Limit = slices.Clone(s.Words), 0, maxCompared
	for _, half := range []string{string(word[:len(word)/2]), string(word[len(word)/2:])} {
		s.Words[at] = half
		found, err := f.ports.Catalogue.Find(ctx, s)
		if err != nil {
			return "", err
		}
		for _, server := range found.Servers {
			countNear(frequent, server, string(word))
		}
	}
	best := ""
	for near, times := range frequent {
		if best == "" || cmp.Or(cmp.Compare(frequent[best], times), strings.Compare(near, best)) < 0 {
			best = near
		}
	}
	return best, nil
}

// parts reports whether a character is between words.
func parts(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }

// countNear counts the words of a server that differ in one letter from another word.
func countNear(frequent map[string]int, server registrystore.FoundServer, word string) {
	text := strings.ToLower(server.Name.String() + " " + server.Title + " " + server.Description)
	for near := range strings.FieldsFuncSeq(text, parts) {
		if max(len(near), len(word))-min(len(near), len(word)) < 2 && fields.EditDistance(near, word) == 1 {
			frequent[near]++
		}
	}
}
