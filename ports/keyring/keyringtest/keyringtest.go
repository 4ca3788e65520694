// Package keyringtest is the contract suite of the ring of shared keys. It
// tests what every ring promises, not what is signed.
package keyringtest

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/accountstore/recordtest"
	"github.com/tollgate-dev/tollgate/ports/keyring"
)

// Run runs the suite. open returns an empty ring and registers its own
// cleanup.
func Run(t *testing.T, open func(t *testing.T) keyring.Ring) {
	t.Helper()
	for name, test := range map[string]func(t *testing.T, ring keyring.Ring){
		"gives back what was announced":   roundTrips,
		"renews when a key was seen":      renews,
		"one id is one key":               refusesOtherKey,
		"parallel announcements":          announcesInParallel,
		"selects by time":                 selects,
		"forgets what is withdrawn":       withdraws,
		"the first root secret stays":     keepsRootSecret,
		"parallel callers get one secret": agreesOnRootSecret,
		"shares no memory":                sharesNoMemory,
		"heeds a cancelled context":       heedsCancel,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

// key returns a sample with every field set. Greater numbers were seen later.
func key(n byte) keyring.PublicKey {
	return keyring.PublicKey{
		ID: keyring.KeyID(fmt.Sprintf("key-%03d", n)), Key: bytes.Repeat(ed25519.PublicKey{n, 0xff, 0, '\''}, ed25519.PublicKeySize/4),
		SeenAt: recordtest.Epoch().Add(time.Duration(n) * time.Microsecond),
	}
}

func wantKeys(t *testing.T, ring keyring.Ring, since time.Time, want ...keyring.PublicKey) {
	t.Helper()
	got := recordtest.Must(ring.PublicKeys(t.Context(), since))(t)
	if len(got) == 0 && len(want) == 0 {
		return
	}
	recordtest.Equal(t, got, want)
}

func roundTrips(t *testing.T, ring keyring.Ring) {
	recordtest.Whole(t, key(1))
	wantKeys(t, ring, time.Time{}.Add(time.Hour))
	n := 0
	rapid.Check(t, func(r *rapid.T) {
		n++
		k := keyring.PublicKey{
			ID:     keyring.KeyID(fmt.Sprintf("%05d %s", n, recordtest.Text().Draw(r, "id"))),
			Key:    rapid.SliceOfN(rapid.Byte(), ed25519.PublicKeySize, ed25519.PublicKeySize).Draw(r, "key"),
			SeenAt: recordtest.Epoch().Add(time.Duration(n) * time.Second), // so that it is the newest
		}
		recordtest.OK(r, ring.Announce(t.Context(), k))
		recordtest.Equal(r, recordtest.Must(ring.PublicKeys(t.Context(), k.SeenAt))(r), []keyring.PublicKey{k})
	})
}

func renews(t *testing.T, ring keyring.Ring) {
	k, early := key(5), key(5)
	early.SeenAt = key(1).SeenAt
	recordtest.OK(t, ring.Announce(t.Context(), early))
	wantKeys(t, ring, early.SeenAt, early)
	recordtest.OK(t, ring.Announce(t.Context(), k))
	wantKeys(t, ring, early.SeenAt, k)
	recordtest.OK(t, ring.Announce(t.Context(), early)) // an instance whose clock is slow
	wantKeys(t, ring, early.SeenAt, k)
}

func refusesOtherKey(t *testing.T, ring keyring.Ring) {
	k, other := key(1), key(2)
	other.ID = k.ID
	recordtest.OK(t, ring.Announce(t.Context(), k))
	if err := ring.Announce(t.Context(), other); !fault.Is(err, fault.Conflict) {
		t.Errorf("Announce of another key returned %v", err)
	}
	wantKeys(t, ring, k.SeenAt, k)
}

func announcesInParallel(t *testing.T, ring keyring.Ring) {
	const calls = 20
	recordtest.OK(t, errors.Join(recordtest.Parallel(calls, func(i int) error {
		k := key(byte(i % 2))
		k.SeenAt = key(byte(i)).SeenAt
		return ring.Announce(t.Context(), k)
	})...))
	even, odd := key(0), key(1)
	even.SeenAt, odd.SeenAt = key(calls-2).SeenAt, key(calls-1).SeenAt
	wantKeys(t, ring, key(0).SeenAt, even, odd)
}

func selects(t *testing.T, ring keyring.Ring) {
	for _, n := range []byte{3, 1, 2} {
		recordtest.OK(t, ring.Announce(t.Context(), key(n)))
	}
	wantKeys(t, ring, key(1).SeenAt, key(1), key(2), key(3))
	wantKeys(t, ring, key(2).SeenAt, key(2), key(3)) // at the time counts
	wantKeys(t, ring, key(3).SeenAt.Add(time.Microsecond))
}

func withdraws(t *testing.T, ring keyring.Ring) {
	for n := range byte(4) {
		recordtest.OK(t, ring.Announce(t.Context(), key(n)))
	}
	recordtest.OK(t, ring.Withdraw(t.Context()))
	recordtest.OK(t, ring.Withdraw(t.Context(), key(0).ID, key(2).ID, key(9).ID))
	wantKeys(t, ring, key(0).SeenAt, key(1), key(3))
	recordtest.OK(t, ring.Announce(t.Context(), key(2)))
	wantKeys(t, ring, key(0).SeenAt, key(1), key(2), key(3))
}

func secret(n byte) []byte { return bytes.Repeat([]byte{n, 0, 0xff, '\''}, 8) }

func keepsRootSecret(t *testing.T, ring keyring.Ring) {
	for n := range byte(3) {
		recordtest.Equal(t, recordtest.Must(ring.RootSecret(t.Context(), secret(n)))(t), secret(0))
	}
}

func agreesOnRootSecret(t *testing.T, ring keyring.Ring) {
	const calls = 20
	got := make([][]byte, calls)
	recordtest.OK(t, errors.Join(recordtest.Parallel(calls, func(i int) (err error) {
		got[i], err = ring.RootSecret(t.Context(), secret(byte(i)))
		return err
	})...))
	for i := range got {
		recordtest.Equal(t, got[i], got[0])
	}
	recordtest.Equal(t, recordtest.Must(ring.RootSecret(t.Context(), secret(calls)))(t), got[0])
}

func sharesNoMemory(t *testing.T, ring keyring.Ring) {
	k, candidate := key(1), secret(1)
	recordtest.OK(t, ring.Announce(t.Context(), k))
	k.Key[0] ^= 1
	recordtest.Must(ring.PublicKeys(t.Context(), k.SeenAt))(t)[0].Key[0] ^= 1
	wantKeys(t, ring, k.SeenAt, key(1))
	recordtest.Must(ring.RootSecret(t.Context(), candidate))(t)[0] ^= 1
	candidate[0] ^= 1
	recordtest.Equal(t, recordtest.Must(ring.RootSecret(t.Context(), candidate))(t), secret(1))
}

func heedsCancel(t *testing.T, ring keyring.Ring) {
	recordtest.WantCancelled(t, map[string]func(ctx context.Context) error{
		"Announce":   func(ctx context.Context) error { return ring.Announce(ctx, key(1)) },
		"PublicKeys": func(ctx context.Context) error { _, err := ring.PublicKeys(ctx, key(1).SeenAt); return err },
		"Withdraw":   func(ctx context.Context) error { return ring.Withdraw(ctx, key(1).ID) },
		"RootSecret": func(ctx context.Context) error { _, err := ring.RootSecret(ctx, secret(1)); return err },
	})
	wantKeys(t, ring, key(1).SeenAt)
	recordtest.Equal(t, recordtest.Must(ring.RootSecret(t.Context(), secret(2)))(t), secret(2))
}
