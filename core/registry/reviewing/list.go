package reviewing

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/page"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// pageBytes limits the documents of a page, with those that they are compared with: it ends early,
// with the review that reaches this number of bytes.
const pageBytes = 4 << 20

// Query has the parameters of a list, as they were sent. An empty parameter counts as absent.
type Query struct {
	State  string // pending by default
	Server string // name of the server; all servers by default
	Cursor string
	Limit  string // 1 to 100, 30 by default

	Filter
}

// Filter narrows a list. It is no part of cursors: it must be the same for every page.
type Filter struct {
	Own       bool   // only what the caller has submitted
	Brief     bool   // without documents and differences
	Decided   bool   // what is not pending, the newest submission first; State is not used
	Submitter string // key of a submitter
	Namespace string // the part of the names before the slash
	Kind      string
	Until     time.Time // submitted before it
}

// apply narrows a selection.
func (f Filter) apply(to *registrystore.ReviewQuery) error {
	to.By, to.Kind, to.Until, to.Brief = f.Submitter, review.Kind(f.Kind), f.Until, f.Brief
	if f.Decided {
		to.State, to.Decided, to.Newest = "", true, true
	}
	if f.Namespace == "" {
		return nil
	}
	within, err := registry.ParsePattern(f.Namespace + "/*")
	if err != nil {
		return fault.New(fault.Invalid, "namespace must be the part of a name before the slash, such as com.example")
	}
	to.Within = within
	return nil
}

// Page is a page of reviews, the oldest submission first.
type Page struct {
	Reviews    []review.Shown
	NextCursor string // empty on the last page
}

// position is the end of a page. It is the content of a cursor.
type position struct {
	state  review.State
	server registry.Name // zero for all
	at     time.Time
	id     registry.ReviewID
}

// cursorKind begins the content of cursors of reviews, so that no other listing accepts them.
const cursorKind = "reviews"

func (p position) encode() []byte {
	return []byte(strings.Join([]string{
		cursorKind, string(p.state), strconv.FormatInt(p.at.UnixMicro(), 10), string(p.id), p.server.String(),
	}, "\n"))
}

// parsePosition returns the position in the content of a cursor, or page.UnknownCursor.
func parsePosition(content []byte) (position, error) {
	parts := strings.Split(string(content), "\n")
	if len(parts) == 4 { // of a version before the filter by server
		parts = append(parts, "")
	}
	if len(parts) != 5 || parts[0] != cursorKind {
		return position{}, page.UnknownCursor()
	}
	micros, err := strconv.ParseInt(parts[2], 10, 64)
	if err != nil {
		return position{}, page.UnknownCursor()
	}
	p := position{state: review.State(parts[1]), at: time.UnixMicro(micros).UTC(), id: registry.ReviewID(parts[3])}
	if parts[4] != "" {
		if p.server, err = registry.ParseName(parts[4]); err != nil {
			return position{}, page.UnknownCursor()
		}
	}
	return p, nil
}

// startPosition returns where the page of a query begins. A filter that the query omits is that of
// its cursor.
func (s *Service) startPosition(q Query) (position, error) {
	state := review.Pending
	if q.State != "" {
		var err error
		if state, err = review.ParseState(q.State); err != nil {
			return position{}, err
		}
	}
	var server registry.Name
	if q.Server != "" {
		var err error
		if server, err = registry.ParseName(q.Server); err != nil {
			return position{}, fault.New(fault.Invalid,
				"server must be the name of a server: "+fault.PublicMessage(err))
		}
	}
	if q.Cursor == "" {
		return position{state: state, server: server}, nil
	}
	content, err := s.ports.Cursors.Open(q.Cursor)
	if err != nil {
		return position{}, err
	}
	p, err := parsePosition(content)
	const problem = " must be the one that the cursor was made with; leave it out, or start without a cursor"
	switch {
	case err != nil:
	case q.State != "" && p.state != state:
		err = fault.New(fault.Invalid, "state"+problem)
	case q.Server != "" && p.server != server:
		err = fault.New(fault.Invalid, "server"+problem)
	}
	return p, err
}

// listNarrowed returns a page of the reviews that a query selects. narrow restricts it to those
// that the caller may see.
func (s *Service) listNarrowed(ctx context.Context, q Query, narrow func(*registrystore.ReviewQuery)) (Page, error) {
	limit, err := page.ParseLimit(q.Limit)
	if err != nil {
		return Page{}, err
	}
	from, err := s.startPosition(q)
	if err != nil {
		return Page{}, err
	}
	selection := registrystore.ReviewQuery{
		State: from.state, Name: from.server, After: from.at, AfterID: from.id, Limit: limit, Bytes: pageBytes,
	}
	narrow(&selection)
	if err := q.apply(&selection); err != nil {
		return Page{}, err
	}
	found, err := s.ports.Reviews.List(ctx, selection)
	if err != nil {
		return Page{}, err
	}
	p := Page{Reviews: make([]review.Shown, 0, len(found.Reviews))}
	more, err := s.showAll(ctx, found.Reviews, q.Brief, &p)
	if err != nil {
		return Page{}, err
	}
	if more || found.More {
		last := p.Reviews[len(p.Reviews)-1]
		p.NextCursor = s.ports.Cursors.Seal(position{from.state, from.server, last.SubmittedAt, last.ID}.encode())
	}
	return p, nil
}

// showAll adds reviews to a page with what they are compared with, until the page has pageBytes; brief
// ones as they are. It reports whether some were left out.
func (s *Service) showAll(ctx context.Context, all []review.Review, brief bool, p *Page) (more bool, err error) {
	if brief {
		for _, r := range all {
			p.Reviews = append(p.Reviews, review.Shown{Review: r})
		}
		return false, nil
	}
	size := 0
	for part := range slices.Chunk(all, registrystore.MaxCompared) {
		replaces, err := s.comparedOf(ctx, part)
		if err != nil {
			return false, err
		}
		for i, r := range part {
			if size >= pageBytes {
				return true, nil
			}
			shown, err := r.Show(replaces[i])
			if err == nil {
				err = s.addLists(ctx, &shown)
			}
			if err != nil {
				return false, err
			}
			p.Reviews = append(p.Reviews, shown)
			size += len(shown.Document) + len(shown.Replaces)
			for _, l := range shown.Lists {
				size += len(l.List.Canonical())
			}
		}
	}
	return false, nil
}

// Show returns pending reviews with what they change, until they have pageBytes.
func (s *Service) Show(ctx context.Context, pending []review.Review) ([]review.Shown, error) {
	var p Page
	_, err := s.showAll(ctx, pending, false, &p)
	return p.Reviews, err
}

// comparedOf returns the documents that reviews are compared with, in their order: what is served
// now, or what was when they were decided. Either all are pending, or all are decided.
func (s *Service) comparedOf(ctx context.Context, part []review.Review) ([][]byte, error) {
	if part[0].State == review.Pending {
		return s.ports.Reviews.Compared(ctx, part)
	}
	replaces := make([][]byte, len(part))
	for i, r := range part {
		replaces[i] = r.Replaced
	}
	return replaces, nil
}
