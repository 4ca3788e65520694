package jwt

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/time/rate"

	"github.com/tollgate-dev/tollgate/adapters/internal/files"
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
	dir      string
	own      bool
	life     time.Duration   // how long a key is valid after its last announcement
	verified *verifiedTokens // cleared when keys change

	unrenewed bool // the last announcement of the files failed; used only by reloadFiles
	// unknown means that no other instance can know the keys yet, so that nothing is signed. It is
	// only set at the start, while the key ring cannot be written.
	unknown atomic.Bool

	mu      sync.RWMutex
	signing signingKey
	files   map[authstore.KeyID]ed25519.PublicKey
	shared  map[authstore.KeyID]ed25519.PublicKey
	retired map[authstore.KeyID]bool // keys whose files were removed here; announcements of them are ignored
	leaving []authstore.KeyID        // retired keys that are not withdrawn from the key ring yet

	lookup  sync.Mutex // held during a lookup in the key ring
	lookups *rate.Limiter
}

// reloadFiles loads the files. If they changed, it announces the keys and starts to use them. It
// withdraws removed keys from the key ring, so that no instance accepts them, including this one
// after a restart.
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
		if err != nil && !k.canWait(ctx, err, files) {
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
		k.unknown.Store(false)
	}
	return k.followFiles(ctx)
}

// canWait reports whether the keys may be used although their announcement failed: they were
// announced before, or the service starts while the database can only be read. Then it serves
// reads, and signs nothing until the keys are announced.
func (k *keySet) canWait(ctx context.Context, failure error, files map[authstore.KeyID]ed25519.PublicKey) bool {
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

// announceKeys announces the keys to the other instances, so that those with other files can verify
// our tokens.
func (k *keySet) announceKeys(ctx context.Context, files map[authstore.KeyID]ed25519.PublicKey) error {
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

// findKey returns the key with an ID. It looks up an unknown key in the key ring, and returns
// fault.NotFound if the key does not exist. It makes at most ten lookups a second, so that invented
// IDs do not overload the ring. Several lookups in a row are possible, because instances that start
// together may each have their own key.
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
	return nil, fault.New(fault.NotFound, "unknown signing key")
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

// addAnnounced replaces the announced keys, and reports whether a key was removed.
func (k *keySet) addAnnounced(shared map[authstore.KeyID]ed25519.PublicKey) (gone bool) {
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

const (
	madeKeyName = "signing-0001.pem"
	maxKeyFile  = 64 << 10 // bytes
	maxKeyFiles = 100
)

// signingKey is a key pair from a file.
type signingKey struct {
	id      authstore.KeyID
	private ed25519.PrivateKey
}

// publicKey returns the public key, the last part of a private key of RFC 8032.
func (k signingKey) publicKey() ed25519.PublicKey {
	return ed25519.PublicKey(k.private[ed25519.SeedSize:])
}

// loadKeys loads the keys of a folder, ordered by file name. If own is true, the folder belongs to
// the service, and loadKeys creates the first key.
func loadKeys(dir string, own bool) ([]signingKey, error) {
	names, err := listKeyFiles(dir)
	if own && (errors.Is(err, fs.ErrNotExist) || err == nil && len(names) == 0) {
		if err := createKeyFile(dir); err != nil {
			return nil, fmt.Errorf("create a signing key in %s: %w", dir, err)
		}
		names, err = listKeyFiles(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("signing keys in %s: %w", dir, err)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("SIGNING_KEYS_DIR: no file in %s ends in .pem", dir)
	}
	keys := make([]signingKey, len(names))
	for i, name := range names {
		if keys[i], err = readKeyFile(filepath.Join(dir, name)); err != nil {
			return nil, err
		}
	}
	return keys, nil
}

func listKeyFiles(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if !e.IsDir() && strings.HasSuffix(e.Name(), ".pem") && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	if len(names) > maxKeyFiles {
		return nil, fmt.Errorf("found %d key files; the maximum is %d", len(names), maxKeyFiles)
	}
	slices.Sort(names)
	return names, nil
}

// warnOfAccess logs a warning for each key file that other users may use.
func warnOfAccess(dir string, log *logrus.Entry) {
	names, _ := listKeyFiles(dir) // loadKeys has returned the error
	for _, name := range names {
		if warning, err := files.CheckSecret(filepath.Join(dir, name)); err == nil && warning != "" {
			log.Warn("a signing key is not secret: " + warning)
		}
	}
}

// readKeyFile loads a PKCS#8 PEM file. It refuses a file that every user may write to. Its errors
// never quote the content.
func readKeyFile(path string) (signingKey, error) {
	if _, err := files.CheckSecret(path); err != nil {
		return signingKey{}, fmt.Errorf("signing key: %w", err)
	}
	text, err := files.Read(path, maxKeyFile)
	if err != nil {
		return signingKey{}, fmt.Errorf("signing key: %w", err)
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "PRIVATE KEY" {
		return signingKey{}, fmt.Errorf("signing key %s contains no PEM block PRIVATE KEY (PKCS#8)", path)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return signingKey{}, fmt.Errorf("signing key %s is not in PKCS#8 form", path)
	}
	private, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return signingKey{}, fmt.Errorf("signing key %s is not an Ed25519 key", path)
	}
	k := signingKey{private: private}
	k.id = thumbprint(k.publicKey())
	return k, nil
}

// thumbprint returns the kid of a key: its JWK thumbprint (RFC 7638; RFC 8037, appendix A.3).
func thumbprint(public ed25519.PublicKey) authstore.KeyID {
	sum := sha256.Sum256(
		[]byte(`{"crv":"Ed25519","kty":"OKP","x":"` + base64.RawURLEncoding.EncodeToString(public) + `"}`))
	return authstore.KeyID(base64.RawURLEncoding.EncodeToString(sum[:]))
}

// createKeyFile creates a key file that only its owner may read. The file gets its name when it is
// complete. If several instances start at the same time, one of them creates the key and the others
// use it.
func createKeyFile(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return fmt.Errorf("key pair: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return fmt.Errorf("PKCS#8: %w", err)
	}
	draft, err := os.CreateTemp(dir, ".signing-*") // mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(draft.Name()) }() // a remaining file begins with a dot, so it is not read as a key
	if err := writeAndSync(draft, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})); err != nil {
		return err
	}
	err = os.Link(draft.Name(), filepath.Join(dir, madeKeyName))
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

func writeAndSync(f *os.File, text []byte) error {
	_, err := f.Write(text)
	return errors.Join(err, f.Sync(), f.Close())
}
