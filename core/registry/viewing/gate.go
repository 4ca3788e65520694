// Package viewing holds the use cases of views: operators add, list and remove them and their
// tokens, and a Gate decides who may read one. Package view has the rules, and package viewreader reads
// the servers of a view.
package viewing

import (
	"cmp"
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/view"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// Config holds the settings of reading.
type Config struct {
	// Private is true if reading the registry needs a caller (contract C-40). Public views are
	// public all the same.
	Private bool
}

// GatePorts are the dependencies of a Gate. All fields are required.
type GatePorts struct {
	Views   registrystore.Views
	Members authority.Memberships
	Changes registrystore.Changes
	Clock   clock.Clock
}

// Gate decides who may read which view. It keeps the views and the hashes of their tokens in
// memory, and reads them again after a change, at the latest a second later (contract C-35). It is
// safe for concurrent use.
type Gate struct {
	config Config
	ports  GatePorts
	all    *view.View
	known  atomic.Pointer[known]
	// reading has a value while a caller reads the views.
	reading chan struct{}
}

// NewGate returns a gate.
func NewGate(c Config, p GatePorts) *Gate {
	all := view.OfAll()
	return &Gate{config: c, ports: p, all: &all, reading: make(chan struct{}, 1)}
}

// known is what a Gate knows of the views. It never changes.
type known struct {
	views    map[view.Name]*view.View
	tokens   map[view.Hash]view.Name
	revision int64     // registrystore.Revision.Views
	read     time.Time // when the read of the revision began; zero before the first one
	hint     uint64    // before the read
	failure  error     // why the last read failed; nil if it did not
	failed   time.Time
}

// retryGap is how long the database counts as away after a failure. Callers do not wait for it in
// this time.
const retryGap = 250 * time.Millisecond

// Find returns the passage to a view, or to the registry itself for an empty name. The secret is
// what the request has in its path or header, and may be a token of the view. Unless only callers
// may learn which views there are, Find returns fault.NotFound if there is no view with the name,
// and fault.Unauthenticated for a view that needs one of its tokens. It returns fault.Unavailable
// while the database is away, except for a view that was public when the database was last read.
func (g *Gate) Find(ctx context.Context, name string, secret view.Secret) (Passage, error) {
	switch name {
	case "":
		return Passage{open: !g.config.Private, known: true, private: g.config.Private}, nil
	case view.All:
		return Passage{open: !g.config.Private, known: true, private: g.config.Private, view: g.all}, nil
	}
	k, err := g.current(ctx)
	v, ok := k.views[view.Name(name)]
	switch {
	case ok && v.Access == view.Public:
		return Passage{open: true, known: true, view: v}, nil
	case err != nil:
		return Passage{}, err
	case !ok && !g.config.Private:
		return Passage{}, errNoView()
	case !ok:
		return Passage{private: true}, nil
	}
	// The time of the lookup says nothing about the tokens: a caller who chooses a secret cannot
	// choose its hash.
	of, ok := k.tokens[secret.Hash()]
	if open := ok && of == v.Name; open || g.config.Private || v.Access != view.WithToken {
		return Passage{open: open, known: true, private: true, view: v, members: g.ports.Members}, nil
	}
	return Passage{}, fault.New(fault.Unauthenticated,
		"this view needs one of its tokens, in the Authorization header or in the path")
}

// Passage is the way to a view for one request. Gate.Find returns one.
type Passage struct {
	view    *view.View // nil for the registry itself
	known   bool       // there is what the request names
	open    bool       // the request may have it, from any sender
	private bool
	members authority.Memberships // of the callers of a view
}

// NeedsCaller reports whether it matters who sent the request.
func (p Passage) NeedsCaller() bool { return !p.open }

// IsPrivate reports whether others may not have what the request gets.
func (p Passage) IsPrivate() bool { return p.private }

// Enter returns the view, or nil for the registry itself. The same view is returned until an
// operator changes it. If the passage needs no caller, who may be zero. Else Enter returns the error
// of Caller.MayRead, and fault.NotFound for a view that the caller may not see.
func (p Passage) Enter(ctx context.Context, who authority.Caller) (*view.View, error) {
	if p.open {
		return p.view, nil
	}
	if err := who.MayRead(); err != nil {
		return nil, err
	}
	if !p.known {
		return nil, errNoView()
	}
	if p.view == nil { // the registry itself
		return p.view, nil
	}
	switch ok, err := admits(ctx, p.members, p.view, who); {
	case err != nil:
		return nil, err
	case !ok:
		return nil, errNoView()
	}
	return p.view, nil
}

// admits reports whether a caller who may read the registry may read a view without a token of it.
func admits(ctx context.Context, known authority.Memberships, v *view.View, who authority.Caller) (bool, error) {
	if v.Access != view.People || v.Members.Any() {
		return v.Access != view.WithToken, nil
	}
	m, err := membershipOf(ctx, known, who)
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	return v.Members.Has(m.Email, m.Groups), err
}

// membershipOf returns by what operators name a caller, or fault.NotFound. The owner of a foreign token
// who is not linked has the groups of the token.
func membershipOf(ctx context.Context, known authority.Memberships, who authority.Caller) (authority.Membership, error) {
	f := who.Foreign()
	if f != nil && f.Holder == "" {
		return authority.Membership{Groups: f.Groups}, nil
	}
	if f != nil {
		return known.MembershipOf(ctx, registry.Holder(f.Holder))
	}
	person, err := who.Person()
	if err != nil {
		return authority.Membership{}, fault.New(fault.NotFound, "a publisher is no member")
	}
	return known.MembershipOf(ctx, person)
}

func errNoView() error { return fault.New(fault.NotFound, "registry view not found") }

// current returns the views, and the error of the database if they may be outdated. They are never
// nil.
func (g *Gate) current(ctx context.Context) (*known, error) {
	if k, ok, err := g.valid(); ok {
		return k, err
	}
	select {
	case g.reading <- struct{}{}:
		defer func() { <-g.reading }()
	case <-ctx.Done():
		return &known{}, ctx.Err()
	}
	if k, ok, err := g.valid(); ok { // another caller has read it
		return k, err
	}
	return g.read(context.WithoutCancel(ctx)) // for the callers that wait, too
}

// valid returns the views, and true if they need no other read now.
func (g *Gate) valid() (*known, bool, error) {
	k, now := g.known.Load(), g.ports.Clock.Now()
	switch {
	case k == nil:
		return nil, false, nil
	case k.failure != nil:
		since := now.Sub(k.failed)
		return k, since >= 0 && since < retryGap, k.failure
	}
	age := now.Sub(k.read)
	return k, k.hint == g.ports.Changes.Hint() && age >= 0 && age < g.ports.Changes.ValidFor(), nil
}

// read reads the views if they have changed.
func (g *Gate) read(ctx context.Context) (*known, error) {
	ctx, cancel := context.WithTimeout(ctx, g.ports.Changes.AwayAfter())
	defer cancel()
	before := g.known.Load()
	if before == nil {
		before = &known{}
	}
	next := *before
	next.read, next.hint, next.failure = g.ports.Clock.Now(), g.ports.Changes.Hint(), nil
	revision, err := g.ports.Changes.Revision(ctx)
	if err == nil && (before.read.IsZero() || revision.Views != before.revision) {
		// A change that is committed between both reads is read too. The revision is then older,
		// and the next call reads it again.
		next.revision = revision.Views
		err = g.load(ctx, &next, before)
	}
	if err != nil {
		if !fault.Is(err, fault.Unavailable) {
			err = fault.Wrap(fault.Unavailable, "the database is not available", err)
		}
		next = *before
		next.failure, next.failed = err, g.ports.Clock.Now()
	}
	g.known.Store(&next)
	return &next, err
}

// load reads all views and tokens. A view that has not changed stays the same one.
func (g *Gate) load(ctx context.Context, next, before *known) error {
	views, err := g.ports.Views.List(ctx)
	if err != nil {
		return err
	}
	tokens, err := g.ports.Views.Tokens(ctx)
	if err != nil {
		return err
	}
	next.views, next.tokens = make(map[view.Name]*view.View, len(views)), make(map[view.Hash]view.Name, len(tokens))
	for _, v := range views {
		if same, ok := before.views[v.Name]; ok && same.Equal(v) {
			next.views[v.Name] = same
		} else {
			next.views[v.Name] = &v
		}
	}
	for _, t := range tokens {
		next.tokens[t.Hash] = t.View
	}
	return nil
}

// Known returns the views whose names a caller may know, ordered by name: everybody those that
// everybody may read, and who may read the registry the others, except for those of other people. It
// returns fault.Unavailable when the database fails.
func (g *Gate) Known(ctx context.Context, who authority.Caller) ([]view.View, error) {
	k, err := g.current(ctx)
	if err != nil {
		return nil, err
	}
	reader := who.MayRead() == nil
	var views []view.View
	for _, v := range k.views {
		known := v.Access == view.Public || reader
		if known && v.Access == view.People {
			if known, err = admits(ctx, g.ports.Members, v, who); err != nil {
				return nil, err
			}
		}
		if known {
			views = append(views, *v)
		}
	}
	slices.SortFunc(views, func(a, b view.View) int { return cmp.Compare(a.Name, b.Name) })
	return views, nil
}
