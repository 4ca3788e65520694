package inprocess_test

import (
	"bytes"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/inprocess"
	"github.com/tollgate-dev/tollgate/core/auth"
)

// fixedEntropy counts, so that no two nonces are equal.
type fixedEntropy struct{ next byte }

func (e *fixedEntropy) Fill(p []byte) {
	for i := range p {
		e.next++
		p[i] = e.next
	}
}

// TestSealer: a sealed secret opens for what it is about only, with the same root secret, and does not
// show the secret.
func TestSealer(t *testing.T) {
	entropy := &fixedEntropy{}
	newSealer := func(b byte) *inprocess.Sealer {
		s, err := inprocess.NewSealer(auth.RootSecret(bytes.Repeat([]byte{b}, 32)), entropy)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s, secret := newSealer(1), []byte("whsec_something")
	sealed, err := s.Seal(secret, "webhook 1")
	again, errAgain := s.Seal(secret, "webhook 1")
	if err != nil || errAgain != nil || bytes.Contains(sealed, secret[:8]) || bytes.Equal(sealed, again) {
		t.Fatalf("sealed %x and %x, %v", sealed, again, err)
	}
	if got, err := newSealer(1).Open(sealed, "webhook 1"); err != nil || !bytes.Equal(got, secret) {
		t.Errorf("opened %q, %v", got, err)
	}
	changed := bytes.Clone(sealed)
	changed[len(changed)-1] ^= 1
	for name, open := range map[string]func() ([]byte, error){
		"about something else": func() ([]byte, error) { return s.Open(sealed, "webhook 2") },
		"another root secret":  func() ([]byte, error) { return newSealer(2).Open(sealed, "webhook 1") },
		"changed":              func() ([]byte, error) { return s.Open(changed, "webhook 1") },
		"cut":                  func() ([]byte, error) { return s.Open(sealed[:5], "webhook 1") },
		"empty":                func() ([]byte, error) { return s.Open(nil, "webhook 1") },
	} {
		if got, err := open(); err == nil {
			t.Errorf("%s: opened %q", name, got)
		}
	}
}
