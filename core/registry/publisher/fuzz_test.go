package publisher

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tollgate-dev/tollgate/core/fault"
)

// FuzzParseRecords: every key that is read is read again from its own record, no more than 16
// records are read, and every error is a fault.
func FuzzParseRecords(f *testing.F) {
	f.Fuzz(func(t *testing.T, page string) {
		keys, problems := ParseRecords(strings.Split(page, "\n"))
		if len(keys)+len(problems) > 16 {
			t.Fatalf("%d keys and %d problems", len(keys), len(problems))
		}
		for _, err := range problems {
			if !fault.Is(err, fault.Invalid) || !utf8.ValidString(err.Error()) {
				t.Fatalf("problem %q", err)
			}
		}
		for _, k := range keys {
			again, problems := ParseRecords([]string{recordOf(k)})
			if len(again) != 1 || len(problems) != 0 || again[0].String() != k.String() {
				t.Fatalf("%s read again is %v, %v", k, again, problems)
			}
			if fingerprint, err := ParseFingerprint(k.Fingerprint()); err != nil || !fingerprint.Matches(k) {
				t.Fatalf("the fingerprint of %s: %v", k, err)
			}
		}
	})
}

// FuzzParseDomain: a domain that is accepted is accepted again from its own text, has only the
// characters of host names, is its namespace in reverse order, and is covered by its patterns.
func FuzzParseDomain(f *testing.F) {
	f.Fuzz(func(t *testing.T, s string) {
		d, err := ParseDomain(s)
		if err != nil {
			if !fault.Is(err, fault.Invalid) || !utf8.ValidString(err.Error()) {
				t.Fatalf("ParseDomain(%q) = %q", s, err)
			}
			return
		}
		if again, err := ParseDomain(d.String()); err != nil || again != d || !strings.EqualFold(d.String(), s) ||
			len(d.String()) != len(s) {
			t.Fatalf("%q became %q, and that %q, %v", s, d, again, err)
		}
		if strings.Trim(d.String(), "abcdefghijklmnopqrstuvwxyz0123456789.-") != "" ||
			!strings.Contains(d.String(), ".") || len(s) > 253 {
			t.Fatalf("%q was accepted", s)
		}
		if back := (Domain{d.Namespace()}).Namespace(); back != d.String() {
			t.Fatalf("%q reversed twice is %q", d, back)
		}
		for _, p := range d.Patterns(DNS) {
			if text := strings.TrimSuffix(p.String(), "*"); text != d.Namespace()+"/" && text != d.Namespace()+"." {
				t.Fatalf("a pattern of %q is %q", d, p)
			}
		}
	})
}

// FuzzSubjectPattern compares patterns with regular expressions.
func FuzzSubjectPattern(f *testing.F) {
	f.Fuzz(func(t *testing.T, pattern, subject string) {
		p, err := ParseSubjectPattern(pattern)
		if err != nil || !utf8.ValidString(subject) {
			return
		}
		if got, want := p.Matches(subject), subjectExpression(pattern).MatchString(subject); got != want {
			t.Fatalf("%q matches %q: %t, want %t", pattern, subject, got, want)
		}
	})
}

// FuzzParseSignature: a signature that is accepted has the bytes of its digits, and its canonical
// form is its own canonical form.
func FuzzParseSignature(f *testing.F) {
	k := newEd25519(f, 1)
	f.Fuzz(func(t *testing.T, s string) {
		signature, err := ParseSignature(s)
		if err != nil {
			if !fault.Is(err, fault.Invalid) {
				t.Fatalf("ParseSignature(%q) = %v", s, err)
			}
			return
		}
		canonical := signature.Canonical()
		again, err := ParseSignature(hex.EncodeToString(canonical))
		if err != nil || !bytes.Equal(again.Canonical(), canonical) ||
			hex.EncodeToString(signature.bytes) != strings.ToLower(s) {
			t.Fatalf("the canonical form of %q is %x, and of that %x, %v", s, canonical, again.Canonical(), err)
		}
		if k.Verify([]byte("2026-01-31T12:00:00Z"), signature) {
			t.Fatalf("%q is a valid signature", s)
		}
	})
}
