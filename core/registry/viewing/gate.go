package viewing

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/view"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// GatePorts are the dependencies of a Gate. All fields are required.
type GatePorts struct {
	Views   registrystore.Views
	Changes registrystore.Changes
	Clock   clock.Clock
}

// Gate decides who may read which view. It keeps the views and the hashes of their tokens in
// memory, and reads them again after a change, at the latest a second later (contract C-35). It is
// safe for concurrent use.
type Gate struct {
	ports GatePorts
	all   *view.View
	known atomic.Pointer[known]
	// reading has a value while a caller reads the views.
	reading chan struct{}
}

// NewGate returns a gate.
func NewGate(p GatePorts) *Gate {
	all := view.OfAll()
	return &Gate{ports: p, all: &all, reading: make(chan struct{}, 1)}
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

const (
	// readTimeout limits the wait for the database.
	readTimeout = time.Second
	// retryGap is how long the database counts as away after a failure. Callers do not wait for it
	// in this time.
	retryGap = 250 * time.Millisecond
)

// Enter returns a view if the caller may read it. The same view is returned until an operator
// changes it. It returns fault.NotFound if there is no view with the name,
// fault.Unauthenticated if the view needs a token and the secret is not one of its tokens, and
// fault.Unavailable while the database is away, except for a view that was public when the database
// was last read.
func (g *Gate) Enter(ctx context.Context, name string, secret view.Secret) (*view.View, error) {
	if name == view.All {
		return g.all, nil
	}
	k, err := g.current(ctx)
	v, ok := k.views[view.Name(name)]
	switch {
	case err != nil && ok && v.Access == view.Public:
		return v, nil
	case err != nil:
		return nil, err
	case !ok:
		return nil, errNoView()
	case v.Access == view.Public:
		return v, nil
	}
	// The time of the lookup says nothing about the tokens: a caller who chooses a secret cannot
	// choose its hash.
	if of, ok := k.tokens[secret.Hash()]; !ok || of != v.Name {
		return nil, fault.New(fault.Unauthenticated,
			"this view needs one of its tokens, in the Authorization header or in the path")
	}
	return v, nil
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
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
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
