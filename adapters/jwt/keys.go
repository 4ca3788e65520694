package jwt

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/clock"
)

const (
	announceEvery = 10 * time.Minute // how often an instance says that it still has its keys
	minKeyLife    = time.Hour        // how long a key counts at least after it was last announced
	askingTime    = 2 * time.Second  // how long the published keys wait for the ring
	reloadEvery   = 2 * time.Second
	lookupEvery   = 100 * time.Millisecond // how often unknown key ids are looked up
	lookupsAtOnce = 10                     // and how many times without a rest between
)

// keys are the keys of this instance, from files, and those of the others, from the ring. They are safe for concurrent use.
type keySet struct {
	ring     authstore.KeyRing
	clock    clock.Clock
	dir      string
	own      bool
	life     time.Duration   // how long a key counts after it was last announced
	verified *verifiedTokens // forgotten when keys change

	unrenewed bool // the ring has only an earlier announcement of the files; of the goroutine that reloads

	mu      sync.RWMutex
	signing signingKey
	files   map[authstore.KeyID]ed25519.PublicKey
	shared  map[authstore.KeyID]ed25519.PublicKey
	retired map[authstore.KeyID]bool // once in a file here and taken away: the ring's word on them no longer counts
	leaving []authstore.KeyID        // those of them that the ring has not been told of yet

	lookup  sync.Mutex // held while the ring is asked
	lookups *rate.Limiter
}

// reload reads the files and, when they changed, announces the keys and puts them in force. Keys that were taken away are withdrawn
// from the ring, so that no other instance takes them, nor this one when it starts again.
func (k *keySet) reloadFiles(ctx context.Context) error {
	read, err := loadKeys(k.dir, k.own)
	if err != nil {
		return err
	}
	files := make(map[authstore.KeyID]ed25519.PublicKey, len(read))
	for _, key := range read {
		files[key.id] = key.publicKey()
	}
	last := read[len(read)-1]
	if !k.isUnchanged(files, last.id) {
		err := k.announceKeys(ctx, files)
		if err != nil && !(fault.Is(err, fault.Unavailable) && k.wasAnnouncedBefore(ctx, files)) {
			return err
		}
		k.unrenewed = err != nil
		k.replaceSigner(last, files)
		k.verified.forgetAll()
	} else if k.unrenewed {
		if err := k.renewAnnouncement(ctx); err != nil {
			return err
		}
		k.unrenewed = false
	}
	return k.followFiles(ctx)
}

// announcedBefore reports whether the ring has all keys of the files, however long ago they were announced. Then a ring that
// can be read and not written, as on a full disk, keeps nobody from verifying tokens and from making them.
func (k *keySet) wasAnnouncedBefore(ctx context.Context, files map[authstore.KeyID]ed25519.PublicKey) bool {
	list, err := k.ring.PublicKeys(ctx, time.Unix(0, 0))
	if err != nil {
		return false
	}
	known := 0
	for _, public := range list {
		if key, ours := files[public.ID]; ours && key.Equal(public.Key) {
			known++
		}
	}
	return known == len(files)
}

// follow tells the ring which keys were taken away here, and learns which were elsewhere.
func (k *keySet) followFiles(ctx context.Context) error {
	k.mu.RLock()
	leaving, learnt := k.leaving, len(k.shared) > 0
	k.mu.RUnlock()
	if len(leaving) > 0 {
		if err := k.ring.Withdraw(ctx, leaving...); err != nil {
			return fmt.Errorf("withdraw signing keys: %w", err)
		}
		k.mu.Lock()
		k.leaving = nil
		k.mu.Unlock()
	}
	if !learnt {
		return nil
	}
	return k.fetchAnnounced(ctx, k.clock.Now())
}

func (k *keySet) replaceSigner(last signingKey, files map[authstore.KeyID]ed25519.PublicKey) {
	k.mu.Lock()
	defer k.mu.Unlock()
	retired := make(map[authstore.KeyID]bool, len(k.retired)+len(k.files))
	for id := range k.retired {
		retired[id] = files[id] == nil
	}
	var leaving []authstore.KeyID
	for id := range k.files {
		if retired[id] = files[id] == nil; retired[id] {
			leaving = append(leaving, id)
		}
	}
	for _, id := range k.leaving {
		if files[id] == nil {
			leaving = append(leaving, id)
		}
	}
	k.signing, k.files, k.retired, k.leaving = last, files, retired, leaving
}

func (k *keySet) isUnchanged(files map[authstore.KeyID]ed25519.PublicKey, signing authstore.KeyID) bool {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if len(files) != len(k.files) || signing != k.signing.id {
		return false
	}
	for id := range files {
		if k.files[id] == nil {
			return false
		}
	}
	return true
}

// announce tells the other instances of the keys, so that those with other files verify our tokens.
func (k *keySet) announceKeys(ctx context.Context, files map[authstore.KeyID]ed25519.PublicKey) error {
	now := k.clock.Now()
	for id, public := range files {
		if err := k.ring.Announce(ctx, authstore.PublicKey{ID: id, Key: public, SeenAt: now}); err != nil {
			return fmt.Errorf("announce signing key %s: %w", id, err)
		}
	}
	return nil
}

// renew announces the present keys again.
func (k *keySet) renewAnnouncement(ctx context.Context) error {
	k.mu.RLock()
	files := k.files
	k.mu.RUnlock()
	return k.announceKeys(ctx, files)
}

func (k *keySet) currentSigner() signingKey {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.signing
}

func (k *keySet) findKnownKey(id authstore.KeyID) ed25519.PublicKey {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if public := k.files[id]; public != nil {
		return public
	}
	if k.retired[id] {
		return nil
	}
	return k.shared[id]
}

// find returns the key of an id, and asks the ring for one that is not known yet; fault.NotFound when there is none. The ring
// is asked ten times a second at most, so that invented ids do not become a load on it, and not once only: of instances that
// start together with keys of their own, each may be the next that a token is from.
func (k *keySet) findKey(ctx context.Context, id authstore.KeyID) (ed25519.PublicKey, error) {
	if public := k.findKnownKey(id); public != nil {
		return public, nil
	}
	k.lookup.Lock()
	defer k.lookup.Unlock()
	now := k.clock.Now()
	if k.findKnownKey(id) == nil && k.lookups.AllowN(now, 1) {
		if err := k.fetchAnnounced(ctx, now); err != nil {
			return nil, err
		}
	}
	if public := k.findKnownKey(id); public != nil {
		return public, nil
	}
	return nil, fault.New(fault.NotFound, "", "unknown signing key")
}

func (k *keySet) fetchAnnounced(ctx context.Context, now time.Time) error {
	list, err := k.ring.PublicKeys(ctx, now.Add(-k.life))
	if err != nil {
		return err
	}
	shared := make(map[authstore.KeyID]ed25519.PublicKey, len(list))
	for _, public := range list {
		shared[public.ID] = public.Key
	}
	if k.addAnnounced(shared) {
		k.verified.forgetAll()
	}
	return nil
}

// learn puts what the ring says in force and reports whether a key is gone.
func (k *keySet) addAnnounced(shared map[authstore.KeyID]ed25519.PublicKey) (gone bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for id := range k.shared {
		gone = gone || shared[id] == nil
	}
	k.shared = shared
	return gone
}

// all returns every key with which tokens can be verified, ordered by id. While the ring is away these are the keys that are known
// here.
func (k *keySet) listPublicKeys(ctx context.Context) ([]authstore.PublicKey, error) {
	now := k.clock.Now()
	asking, stop := context.WithTimeout(ctx, askingTime)
	defer stop()
	if err := k.fetchAnnounced(asking, now); err != nil && (ctx.Err() != nil || !isUnavailable(err)) {
		return nil, err
	}
	k.mu.RLock()
	defer k.mu.RUnlock()
	list := make([]authstore.PublicKey, 0, len(k.files)+len(k.shared))
	for id, public := range k.files {
		list = append(list, authstore.PublicKey{ID: id, Key: public, SeenAt: now})
	}
	for id, public := range k.shared {
		if k.files[id] == nil && !k.retired[id] {
			list = append(list, authstore.PublicKey{ID: id, Key: public, SeenAt: now})
		}
	}
	slices.SortFunc(list, func(a, b authstore.PublicKey) int { return cmp.Compare(a.ID, b.ID) })
	return list, nil
}

// away reports whether an error means that the ring does not answer.
func isUnavailable(err error) bool {
	return fault.Is(err, fault.Unavailable) || errors.Is(err, context.DeadlineExceeded)
}
