package jwt

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/secrets/secretstest"
	"github.com/tollgate-dev/tollgate/test/must"
)

// readOnlyRing is a key ring that can be read and, while full is true, not written.
type readOnlyRing struct {
	authstore.KeyRing
	full bool
}

func (r *readOnlyRing) Announce(ctx context.Context, key authstore.PublicKey) error {
	if r.full {
		return fault.New(fault.Unavailable, "the database cannot be written at present")
	}
	return r.KeyRing.Announce(ctx, key)
}

// TestStartWhileRingIsReadOnly starts with a new key while the key ring cannot be written: tokens
// of others are verified, none is signed, and all is well as soon as the key can be announced.
func TestStartWhileRingIsReadOnly(t *testing.T) {
	clk, shared := secretstest.NewClock(), newRing()
	other := openIssuer(t, Config{DataDir: t.TempDir()}, shared, clk)
	token, err := other.Sign(t.Context(), secretstest.SampleClaims(clk))
	must.Succeed(t, err)
	ring, dir := &readOnlyRing{KeyRing: shared, full: true}, t.TempDir()
	i := openIssuer(t, Config{DataDir: dir}, ring, clk)
	if _, err := i.Verify(t.Context(), token); err != nil {
		t.Errorf("a token of another instance: %v", err)
	}
	if _, err := i.Sign(t.Context(), secretstest.SampleClaims(clk)); !fault.Is(err, fault.Unavailable) {
		t.Errorf("Sign with a key that others do not know: %v", err)
	}
	if err := i.keys.reloadFiles(t.Context()); !fault.Is(err, fault.Unavailable) {
		t.Errorf("the announcement fails with %v", err)
	}
	ring.full = false
	must.Succeed(t, i.keys.reloadFiles(t.Context()))
	own, err := i.Sign(t.Context(), secretstest.SampleClaims(clk))
	must.Succeed(t, err)
	if _, err := other.Verify(t.Context(), own); err != nil {
		t.Errorf("the other instance does not accept the token: %v", err)
	}
}

// TestAccessToKeyFiles checks that a key that every user may write to is not used, and that there
// is a warning of one that every user may read.
func TestAccessToKeyFiles(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows does not have these permissions")
	}
	dir := t.TempDir()
	writeKey(t, dir, "1.pem")
	file := filepath.Join(dir, "1.pem")
	for mode, want := range map[os.FileMode]string{
		0o600: "", 0o440: "", 0o644: "other users may read", 0o666: "every user may write to it",
	} {
		must.Succeed(t, os.Chmod(file, mode))
		log, hook := logtest.NewNullLogger()
		_, end, err := Open(t.Context(), Config{KeysDir: dir, Issuer: "i", Audience: "a"}, newRing(),
			secretstest.NewClock(), logrus.NewEntry(log))
		if err == nil {
			end()
		}
		said := ""
		for _, e := range hook.AllEntries() {
			said += e.Message
		}
		if err != nil {
			said += err.Error()
		}
		if (err != nil) != (mode == 0o666) || !strings.Contains(said, want) || want == "" && said != "" ||
			want != "" && !strings.Contains(said, file) {
			t.Errorf("mode %#o: %q, error %v", mode, said, err)
		}
	}
}
