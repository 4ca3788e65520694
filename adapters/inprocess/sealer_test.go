package inprocess_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/inprocess"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/test/must"
)

func newSealer(t *testing.T, root string) *inprocess.Sealer {
	t.Helper()
	s, err := inprocess.NewSealer(auth.RootSecret(strings.Repeat(root, 32)), randomSource{})
	must.Succeed(t, err)
	return s
}

// TestSealer checks that a secret opens on every instance of a deployment, for what it was sealed
// about and no other, and only unchanged.
func TestSealer(t *testing.T) {
	t.Parallel()
	secret := []byte("the secret of a webhook")
	one, same, other := newSealer(t, "a"), newSealer(t, "a"), newSealer(t, "b")
	sealed, err := one.Seal(secret, "webhook 1")
	if err != nil || bytes.Contains(sealed, secret) {
		t.Fatalf("Seal = %q, %v", sealed, err)
	}
	if opened, err := same.Open(sealed, "webhook 1"); err != nil || !bytes.Equal(opened, secret) {
		t.Errorf("Open on another instance = %q, %v", opened, err)
	}
	if again, err := one.Seal(secret, "webhook 1"); err != nil || bytes.Equal(again, sealed) {
		t.Errorf("a secret that is sealed twice is %q and %q, %v", sealed, again, err)
	}
	if opened, err := one.Open(sealed, "webhook 2"); err == nil {
		t.Errorf("Open about another webhook = %q", opened)
	}
	if opened, err := other.Open(sealed, "webhook 1"); err == nil {
		t.Errorf("Open with another root secret = %q", opened)
	}
	for i := range sealed {
		changed := slices.Clone(sealed)
		changed[i] ^= 1
		if opened, err := one.Open(changed, "webhook 1"); err == nil {
			t.Errorf("Open with byte %d changed = %q", i, opened)
		}
		if opened, err := one.Open(sealed[:i], "webhook 1"); err == nil {
			t.Errorf("Open of the first %d bytes = %q", i, opened)
		}
	}
}

// TestSealerHasAKeyOfItsOwn checks that what the sealer seals does not open with the keys of other
// purposes.
func TestSealerHasAKeyOfItsOwn(t *testing.T) {
	t.Parallel()
	root := auth.RootSecret(strings.Repeat("a", 32))
	sealed, err := newSealer(t, "a").Seal([]byte("secret"), "webhook 1")
	must.Succeed(t, err)
	for purpose, opens := range map[string]bool{
		"webhook secrets": true, "authenticator secrets": false, "page cursors": false,
	} {
		key, err := root.Derive(purpose)
		must.Succeed(t, err)
		if _, err := key.Open(sealed, "webhook 1"); (err == nil) != opens {
			t.Errorf("Open with the key of %s: %v, want success: %t", purpose, err, opens)
		}
	}
}

func TestSealerNeedsARootSecret(t *testing.T) {
	t.Parallel()
	if _, err := inprocess.NewSealer(auth.RootSecret(strings.Repeat("x", 31)), randomSource{}); err == nil {
		t.Error("a root secret of 31 bytes was accepted")
	}
}
