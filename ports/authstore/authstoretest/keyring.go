package authstoretest

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"errors"
	"fmt"
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/authstore/authstoretest/recordtest"
)

// runKeys tests the key ring.
func runKeys(t *testing.T, open func(t *testing.T) Stores) {
	t.Helper()
	for name, test := range map[string]func(t *testing.T, ring authstore.KeyRing){
		"any key is returned as it was announced":              keyRoundTrips,
		"an announcement renews the time a key was last seen":  renewsSeenTime,
		"keys of all algorithms are stored and found in order": storesAlgorithms,
		"another key with the same id is refused":              refusesOtherKey,
		"a key of no algorithm is refused":                     refusesStrangeKeys,
		"parallel announcements of one key store it once":      announcesInParallel,
		"a query returns the keys that were seen since a time": selectsBySeenTime,
		"a withdrawn key is not returned":                      withdrawsKeys,
		"a second root secret does not replace the first one":  keepsRootSecret,
		"parallel callers get the same root secret":            agreesOnRootSecret,
		"a returned key shares no memory with the stored one":  keySharesNoMemory,
		"a call with a cancelled context fails":                keyHeedsCancel,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t).Keys) })
	}
}

// sampleKey returns a sample with every field set. Greater numbers were seen later.
func sampleKey(n byte) authstore.PublicKey {
	return authstore.PublicKey{
		ID:     authstore.KeyID(fmt.Sprintf("key-%03d", n)),
		Key:    ed25519.PublicKey(bytes.Repeat([]byte{n, 0xff, 0, '\''}, ed25519.PublicKeySize/4)),
		SeenAt: recordtest.Epoch().Add(time.Duration(n) * time.Microsecond),
	}
}

func wantKeys(t *testing.T, ring authstore.KeyRing, since time.Time, want ...authstore.PublicKey) {
	t.Helper()
	got := recordtest.Must(ring.PublicKeys(t.Context(), since))(t)
	if len(got) == 0 && len(want) == 0 {
		return
	}
	recordtest.Equal(t, got, want)
}

func keyRoundTrips(t *testing.T, ring authstore.KeyRing) {
	recordtest.Whole(t, sampleKey(1))
	wantKeys(t, ring, time.Time{}.Add(time.Hour))
	n := 0
	rapid.Check(t, func(r *rapid.T) {
		n++
		k := authstore.PublicKey{
			ID:     authstore.KeyID(fmt.Sprintf("%05d %s", n, recordtest.Text().Draw(r, "id"))),
			Key:    ed25519.PublicKey(rapid.SliceOfN(rapid.Byte(), ed25519.PublicKeySize, ed25519.PublicKeySize).Draw(r, "key")),
			SeenAt: recordtest.Epoch().Add(time.Duration(n) * time.Second), // so that it is the newest
		}
		recordtest.OK(r, ring.Announce(t.Context(), k))
		recordtest.Equal(r, recordtest.Must(ring.PublicKeys(t.Context(), k.SeenAt))(r), []authstore.PublicKey{k})
	})
}

func renewsSeenTime(t *testing.T, ring authstore.KeyRing) {
	k, early := sampleKey(5), sampleKey(5)
	early.SeenAt = sampleKey(1).SeenAt
	recordtest.OK(t, ring.Announce(t.Context(), early))
	wantKeys(t, ring, early.SeenAt, early)
	recordtest.OK(t, ring.Announce(t.Context(), k))
	wantKeys(t, ring, early.SeenAt, k)
	recordtest.OK(t, ring.Announce(t.Context(), early)) // an instance whose clock is slow
	wantKeys(t, ring, early.SeenAt, k)
}

// rsaKey returns an RSA key with a number of bits. Its last byte makes it differ from others.
func rsaKey(bits uint, last int64) *rsa.PublicKey {
	n := new(big.Int).Lsh(big.NewInt(1), bits-1)
	return &rsa.PublicKey{N: n.Add(n, big.NewInt(last)), E: 65537}
}

// curveKey returns the public key of the private key n.
func curveKey(curve elliptic.Curve, n byte) *ecdsa.PublicKey {
	private, err := ecdsa.ParseRawPrivateKey(curve, append(make([]byte, curve.Params().BitSize/8-1), n))
	if err != nil {
		return nil // not for small numbers
	}
	return &private.PublicKey
}

// wideKeys returns samples of the other algorithms than EdDSA.
func wideKeys() []authstore.PublicKey {
	first, second, third := sampleKey(1), sampleKey(2), sampleKey(4)
	first.Key, second.Key, third.Key = curveKey(elliptic.P256(), 1), rsaKey(2048, 1), rsaKey(4096, 3)
	return []authstore.PublicKey{first, second, third}
}

func storesAlgorithms(t *testing.T, ring authstore.KeyRing) {
	wide := wideKeys()
	all := []authstore.PublicKey{sampleKey(0), wide[0], wide[1], sampleKey(3), wide[2]}
	for i, want := range []string{authstore.EdDSA, authstore.ES256, authstore.RS256, authstore.EdDSA, authstore.RS256} {
		recordtest.Equal(t, authstore.Algorithm(all[i].Key), want)
		recordtest.OK(t, ring.Announce(t.Context(), all[i]))
	}
	wantKeys(t, ring, all[0].SeenAt, all...)
	wantKeys(t, ring, all[2].SeenAt, all[2:]...)
	for i := range wide {
		later := wide[i]
		later.SeenAt = later.SeenAt.Add(time.Minute)
		recordtest.OK(t, ring.Announce(t.Context(), later))
		wide[i].Key = wide[(i+1)%len(wide)].Key
		wide[i].SeenAt = later.SeenAt
		if err := ring.Announce(t.Context(), wide[i]); !fault.Is(err, fault.Conflict) {
			t.Errorf("Announce of another key returned %v", err)
		}
		wantKeys(t, ring, later.SeenAt, later)
		recordtest.OK(t, ring.Withdraw(t.Context(), later.ID))
		wantKeys(t, ring, later.SeenAt)
	}
	wantKeys(t, ring, all[0].SeenAt, all[0], all[3])
}

func refusesStrangeKeys(t *testing.T, ring authstore.KeyRing) {
	for name, key := range map[string]crypto.PublicKey{
		"a short key of Ed25519": ed25519.PublicKey("short"), "a short key of RSA": rsaKey(2047, 1),
		"another curve": curveKey(elliptic.P384(), 1), "bytes": []byte("bytes"), "none": nil,
	} {
		k := sampleKey(1)
		k.Key = key
		if err := ring.Announce(t.Context(), k); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	wantKeys(t, ring, sampleKey(0).SeenAt)
}

func refusesOtherKey(t *testing.T, ring authstore.KeyRing) {
	k, other := sampleKey(1), sampleKey(2)
	other.ID = k.ID
	recordtest.OK(t, ring.Announce(t.Context(), k))
	if err := ring.Announce(t.Context(), other); !fault.Is(err, fault.Conflict) {
		t.Errorf("Announce of another key returned %v", err)
	}
	wantKeys(t, ring, k.SeenAt, k)
}

func announcesInParallel(t *testing.T, ring authstore.KeyRing) {
	const calls = 20
	recordtest.OK(t, errors.Join(recordtest.Parallel(calls, func(i int) error {
		k := sampleKey(byte(i % 2))
		k.SeenAt = sampleKey(byte(i)).SeenAt
		return ring.Announce(t.Context(), k)
	})...))
	even, odd := sampleKey(0), sampleKey(1)
	even.SeenAt, odd.SeenAt = sampleKey(calls-2).SeenAt, sampleKey(calls-1).SeenAt
	wantKeys(t, ring, sampleKey(0).SeenAt, even, odd)
}

func selectsBySeenTime(t *testing.T, ring authstore.KeyRing) {
	for _, n := range []byte{3, 1, 2} {
		recordtest.OK(t, ring.Announce(t.Context(), sampleKey(n)))
	}
	wantKeys(t, ring, sampleKey(1).SeenAt, sampleKey(1), sampleKey(2), sampleKey(3))
	wantKeys(t, ring, sampleKey(2).SeenAt, sampleKey(2), sampleKey(3)) // at the time counts
	wantKeys(t, ring, sampleKey(3).SeenAt.Add(time.Microsecond))
}

func withdrawsKeys(t *testing.T, ring authstore.KeyRing) {
	for n := range byte(4) {
		recordtest.OK(t, ring.Announce(t.Context(), sampleKey(n)))
	}
	recordtest.OK(t, ring.Withdraw(t.Context()))
	recordtest.OK(t, ring.Withdraw(t.Context(), sampleKey(0).ID, sampleKey(2).ID, sampleKey(9).ID))
	wantKeys(t, ring, sampleKey(0).SeenAt, sampleKey(1), sampleKey(3))
	recordtest.OK(t, ring.Announce(t.Context(), sampleKey(2)))
	wantKeys(t, ring, sampleKey(0).SeenAt, sampleKey(1), sampleKey(2), sampleKey(3))
}

func secret(n byte) []byte { return bytes.Repeat([]byte{n, 0, 0xff, '\''}, 8) }

func keepsRootSecret(t *testing.T, ring authstore.KeyRing) {
	for n := range byte(3) {
		recordtest.Equal(t, recordtest.Must(ring.RootSecret(t.Context(), secret(n)))(t), secret(0))
	}
}

func agreesOnRootSecret(t *testing.T, ring authstore.KeyRing) {
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

func keySharesNoMemory(t *testing.T, ring authstore.KeyRing) {
	k, candidate := sampleKey(1), secret(1)
	change := func(k authstore.PublicKey) {
		if raw, ok := k.Key.(ed25519.PublicKey); ok {
			raw[0] ^= 1
		}
	}
	recordtest.OK(t, ring.Announce(t.Context(), k))
	change(k)
	change(recordtest.Must(ring.PublicKeys(t.Context(), k.SeenAt))(t)[0])
	wantKeys(t, ring, k.SeenAt, sampleKey(1))
	recordtest.Must(ring.RootSecret(t.Context(), candidate))(t)[0] ^= 1
	candidate[0] ^= 1
	recordtest.Equal(t, recordtest.Must(ring.RootSecret(t.Context(), candidate))(t), secret(1))
}

func keyHeedsCancel(t *testing.T, ring authstore.KeyRing) {
	recordtest.WantCancelled(t, map[string]func(ctx context.Context) error{
		"Announce": func(ctx context.Context) error { return ring.Announce(ctx, sampleKey(1)) },
		"PublicKeys": func(ctx context.Context) error {
			_, err := ring.PublicKeys(ctx, sampleKey(1).SeenAt)
			return err
		},
		"Withdraw":   func(ctx context.Context) error { return ring.Withdraw(ctx, sampleKey(1).ID) },
		"RootSecret": func(ctx context.Context) error { _, err := ring.RootSecret(ctx, secret(1)); return err },
	})
	wantKeys(t, ring, sampleKey(1).SeenAt)
	recordtest.Equal(t, recordtest.Must(ring.RootSecret(t.Context(), secret(2)))(t), secret(2))
}
