package page_test

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/page"
	"github.com/tollgate-dev/tollgate/test/must"
)

var key = []byte("0123456789abcdef0123456789abcdef")

func TestSealAndOpen(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		content := rapid.SliceOfN(rapid.Byte(), 0, 2000).Draw(t, "content")
		cursor := page.NewSealer(key).Seal(content)
		if strings.Trim(cursor, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			t.Fatalf("cursor %q is not base64url without padding", cursor)
		}
		got, err := page.NewSealer(key).Open(cursor) // another instance with the same key
		if err != nil || !bytes.Equal(got, content) {
			t.Fatalf("Open = %q, %v, want %q", got, err, content)
		}
	})
}

func TestChangedCursorsDoNotOpen(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		sealer := page.NewSealer(key)
		cursor := sealer.Seal(rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(t, "content"))
		sealed, err := base64.RawURLEncoding.DecodeString(cursor)
		must.Succeed(t, err)
		bit := rapid.IntRange(0, 8*len(sealed)-1).Draw(t, "bit")
		sealed[bit/8] ^= 1 << (bit % 8)
		requireRefused(t, sealer, base64.RawURLEncoding.EncodeToString(sealed))
	})
}

func TestWhatIsNoCursor(t *testing.T) {
	t.Parallel()
	sealer := page.NewSealer(key)
	cursor := sealer.Seal([]byte("content"))
	for name, s := range map[string]string{
		"empty":             "",
		"not base64":        "!!!!",
		"too short":         "AAAA",
		"padded":            sealer.Seal([]byte("a")) + "=",
		"cut":               cursor[:len(cursor)-2],
		"with a line break": cursor[:4] + "\n" + cursor[4:],
		"another key's":     page.NewSealer([]byte("another")).Seal([]byte("content")),
		"without seal":      base64.RawURLEncoding.EncodeToString([]byte("content of more than sixteen bytes")),
		"too long":          sealer.Seal(make([]byte, page.MaxCursor)),
	} {
		t.Run(name, func(t *testing.T) { requireRefused(t, sealer, s) })
	}
}

func TestTheKeyIsCopied(t *testing.T) {
	t.Parallel()
	mine := bytes.Clone(key)
	sealer := page.NewSealer(mine)
	cursor := sealer.Seal([]byte("content"))
	clear(mine)
	if _, err := sealer.Open(cursor); err != nil {
		t.Errorf("Open after the caller cleared its key = %v, want none", err)
	}
}

// fataler is *testing.T or *rapid.T.
type fataler interface{ Fatalf(string, ...any) }

func requireRefused(t fataler, s *page.Sealer, cursor string) {
	if content, err := s.Open(cursor); !fault.Is(err, fault.Invalid) || !strings.HasPrefix(err.Error(), "cursor ") {
		t.Fatalf("Open(%.80q) = %q, %v, want a fault that names the cursor", cursor, content, err)
	}
}

func FuzzOpen(f *testing.F) {
	f.Add("")
	f.Add(page.NewSealer(key).Seal([]byte("content")))
	f.Fuzz(func(t *testing.T, cursor string) {
		s := page.NewSealer(key)
		if content, err := s.Open(cursor); err == nil && s.Seal(content) != cursor {
			t.Fatalf("%q opens, and %q is what its content seals to", cursor, s.Seal(content))
		}
	})
}
