package jwt

import (
	"cmp"
	"context"
	"crypto"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/clock"
)

const (
	announceEvery = 10 * time.Minute // time between two announcements of the keys of an instance
	minKeyLife    = time.Hour        // minimum time for which a key is valid after its last announcement
	askingTime    = 2 * time.Second  // how long listPublicKeys waits for the key ring
	reloadEvery   = 2 * time.Second
	lookupEvery   = 100 * time.Millisecond // time between two lookups of unknown key IDs
	lookupsAtOnce = 10                     // lookups that may follow each other without that time
)

// keySet contains the keys of this instance, from files, and the public keys of the other
// instances, from the key ring. It is safe for concurrent use.
type keySet struct {
	ring     authstore.KeyRing
	clock    clock.Clock
	folders  []keyFolder
	alg      string          // of tokens of grants; empty without them
	life     time.Duration   // how long a key is valid after its last announcement
	verified *verifiedTokens // cleared when keys change

	unrenewed bool // the last announcement of the files failed; used only by reloadFiles
	// unknown means that no other instance can know the keys yet, so that nothing is signed. It is
	// only set at the start, while the key ring cannot be written.
	unknown atomic.Bool

	mu       sync.RWMutex
	signing  signingKey // of sessions
	granting signingKey // of grants; zero without them
	files    map[authstore.KeyID]crypto.PublicKey
	shared   map[authstore.KeyID]crypto.PublicKey
	retired  map[authstore.KeyID]bool // keys whose files were removed here; announcements of them are ignored
	leaving  []authstore.KeyID        // retired keys that are not withdrawn from the key ring yet

	lookup  sync.Mutex // held during a lookup in the key ring
	lookups *rate.Limiter
}

// reloadFiles loads the files. If they changed, it announces the keys and starts to use them. It
// withdraws removed keys from the key ring, so that no instance accepts them, including this one
// after a restart.
func (k *keySet) reloadFiles(ctx context.Context) error {
	files, last := map[authstore.KeyID]crypto.PublicKey{}, map[string]signingKey{}
	for _, folder := range k.folders {
		read, err := folder.load()
		if err != nil {
			return err
		}
		for _, key := range read {
			files[key.id], last[key.algorithm] = key.private.Public(), key
		}
	}
	for _, needed := range []string{authstore.EdDSA, k.alg} {
		if needed != "" && last[needed].private == nil {
			return fmt.Errorf("SIGNING_KEYS_DIR: no file in %s has a key for %s", k.folders[0].dir, needed)
		}
	}
	signing, granting := last[authstore.EdDSA], last[k.alg]
	if !k.isUnchanged(files, signing.id, granting.id) {
		err := k.announceKeys(ctx, files)
		if err != nil && !k.canWait(ctx, err, files) {
			return err
		}
		k.unrenewed = err != nil
		k.replaceSigners(signing, granting, files)
		k.verified.forgetAll()
	} else if k.unrenewed {
		if err := k.renewAnnouncement(ctx); err != nil {
			return err
		}
		k.unrenewed = false
		k.unknown.Store(false)
	}
	return k.followFiles(ctx)
}

// canWait reports whether the keys may be used although their announcement failed: they were
// announced before, or the service starts while the database can only be read. Then it serves
// reads, and signs nothing until the keys are announced.
func (k *keySet) canWait(ctx context.Context, failure error, files map[authstore.KeyID]crypto.PublicKey) bool {
	switch {
	case !fault.Is(failure, fault.Unavailable):
		return false
	case k.wasAnnouncedBefore(ctx, files):
		return true
	case len(k.files) > 0: // only reloadFiles changes it
		return false
	}
	k.unknown.Store(true)
	return true
}

// wasAnnouncedBefore reports whether the key ring contains all keys of the files, whatever the time
// of the announcement. In that case a ring that can be read but not written, for example on a full
// disk, does not prevent the use of the keys.
func (k *keySet) wasAnnouncedBefore(ctx context.Context, files map[authstore.KeyID]crypto.PublicKey) bool {
	list, err := k.ring.PublicKeys(ctx, time.Unix(0, 0))
	if err != nil {
		return false
	}
	known := 0
	for _, public := range list {
		if key, ours := files[public.ID]; ours && public.Is(key) {
			known++
		}
	}
	return known == len(files)
}

// followFiles withdraws the keys that were removed here from the key ring, and drops the keys that
// other instances removed.
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

func (k *keySet) replaceSigners(signing, granting signingKey, files map[authstore.KeyID]crypto.PublicKey) {
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
	k.signing, k.granting, k.files, k.retired, k.leaving = signing, granting, files, retired, leaving
}

func (k *keySet) isUnchanged(files map[authstore.KeyID]crypto.PublicKey, signing, granting authstore.KeyID) bool {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if len(files) != len(k.files) || signing != k.signing.id || granting != k.granting.id {
		return false
	}
	for id := range files {
		if k.files[id] == nil {
			return false
		}
	}
	return true
}

// announceKeys announces the keys to the other instances, so that those with other files can verify
// our tokens.
func (k *keySet) announceKeys(ctx context.Context, files map[authstore.KeyID]crypto.PublicKey) error {
	now := k.clock.Now()
	for id, public := range files {
		if err := k.ring.Announce(ctx, authstore.PublicKey{ID: id, Key: public, SeenAt: now}); err != nil {
			return fmt.Errorf("announce signing key %s: %w", id, err)
		}
	}
	return nil
}

// renewAnnouncement announces the current keys again.
func (k *keySet) renewAnnouncement(ctx context.Context) error {
	k.mu.RLock()
	files := k.files
	k.mu.RUnlock()
	return k.announceKeys(ctx, files)
}

// currentSigners returns the keys that sign tokens of sessions and of grants.
func (k *keySet) currentSigners() (sessions, grants signingKey) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.signing, k.granting
}

func (k *keySet) findKnownKey(id authstore.KeyID) crypto.PublicKey {
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

// findKey returns the key with an ID. It looks up an unknown key in the key ring, and returns
// fault.NotFound if the key does not exist. It makes at most ten lookups a second, so that invented
// IDs do not overload the ring. Several lookups in a row are possible, because instances that start
// together may each have their own key.
func (k *keySet) findKey(ctx context.Context, id authstore.KeyID) (crypto.PublicKey, error) {
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
	return nil, fault.New(fault.NotFound, "unknown signing key")
}

func (k *keySet) fetchAnnounced(ctx context.Context, now time.Time) error {
	list, err := k.ring.PublicKeys(ctx, now.Add(-k.life))
	if err != nil {
		return err
	}
	shared := make(map[authstore.KeyID]crypto.PublicKey, len(list))
	for _, public := range list {
		shared[public.ID] = public.Key
	}
	if k.addAnnounced(shared) {
		k.verified.forgetAll()
	}
	return nil
}

// addAnnounced replaces the announced keys, and reports whether a key was removed.
func (k *keySet) addAnnounced(shared map[authstore.KeyID]crypto.PublicKey) (gone bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for id := range k.shared {
		gone = gone || shared[id] == nil
	}
	k.shared = shared
	return gone
}

// listPublicKeys returns all keys that can verify tokens, ordered by ID. If the key ring does not
// answer, it returns the keys that are known here.
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

// isUnavailable reports whether the error means that the key ring does not answer.
func isUnavailable(err error) bool {
	return fault.Is(err, fault.Unavailable) || errors.Is(err, context.DeadlineExceeded)
}
