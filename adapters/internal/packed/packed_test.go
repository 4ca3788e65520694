package packed_test

import (
	"bytes"
	"io"
	"testing"

	"github.com/cespare/xxhash/v2"
	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/adapters/internal/packed"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestRoundTrip packs texts of any content in parts, and reads each twice.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := packed.NewWriter()
		var text []byte
		for _, part := range rapid.SliceOf(rapid.SliceOf(rapid.Byte())).Draw(t, "parts") {
			part = bytes.Repeat(part, rapid.IntRange(1, 2000).Draw(t, "times"))
			text = append(text, part...)
			if n, err := w.Write(part); n != len(part) || err != nil {
				t.Fatalf("Write: %d, %v", n, err)
			}
		}
		pack, err := w.Close()
		must.Succeed(t, err)
		if again, err := w.Close(); again != pack || err != nil {
			t.Fatalf("the second Close: %v", err)
		}
		for range 2 {
			if got, err := io.ReadAll(pack.NewReader()); err != nil || !bytes.Equal(got, text) {
				t.Fatalf("%d bytes instead of %d, %v", len(got), len(text), err)
			}
		}
		if pack.Size() != len(text) || pack.Hash() != xxhash.Sum64(text) {
			t.Fatalf("size %d and hash %d of %d bytes", pack.Size(), pack.Hash(), len(text))
		}
	})
}

// TestMemory wants that a repetitive text needs a fraction of its size.
func TestMemory(t *testing.T) {
	t.Parallel()
	w := packed.NewWriter()
	for range 10_000 {
		if _, err := io.WriteString(w, `{"serverUrl":"https://example.com/mcp"},`); err != nil {
			t.Fatal(err)
		}
	}
	if pack, err := w.Close(); err != nil || pack.Kept() > pack.Size()/4 {
		t.Errorf("%d bytes are kept in %d, %v", pack.Size(), pack.Kept(), err)
	}
}
