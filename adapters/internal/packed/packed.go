// Package packed keeps large texts compressed in memory. It is not for what is sent as it is kept:
// the form has no checksum and may change.
package packed

import (
	"bytes"
	"fmt"
	"io"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/flate"
)

// pieceSize is the size of the pieces in which a text is kept, so that it never has to be copied to
// a larger place.
const pieceSize = 64 << 10

// Pack is a text that is kept compressed. It never changes and is safe for concurrent use.
type Pack struct {
	pieces [][]byte
	kept   int
	size   int
	hash   uint64
}

// Size returns the size of the text in bytes.
func (p *Pack) Size() int { return p.size }

// Kept returns the memory of the pack in bytes.
func (p *Pack) Kept() int { return p.kept }

// Hash returns the hash of the text.
func (p *Pack) Hash() uint64 { return p.hash }

// NewReader returns a reader of the text.
func (p *Pack) NewReader() io.Reader {
	readers := make([]io.Reader, len(p.pieces))
	for i, piece := range p.pieces {
		readers[i] = bytes.NewReader(piece)
	}
	return flate.NewReader(io.MultiReader(readers...))
}

// Writer makes a pack. It is not safe for concurrent use.
type Writer struct {
	pack Pack
	hash *xxhash.Digest
	out  *flate.Writer
	done bool
}

// NewWriter returns a writer of a pack.
func NewWriter() *Writer {
	w := &Writer{hash: xxhash.New()}
	w.out, _ = flate.NewWriter((*pieces)(w), flate.BestSpeed) // it fails for an unknown level only
	return w
}

// Write implements io.Writer.
func (w *Writer) Write(text []byte) (int, error) {
	w.pack.size += len(text)
	_, _ = w.hash.Write(text) // it never fails
	n, err := w.out.Write(text)
	if err != nil {
		return n, fmt.Errorf("compress a text: %w", err)
	}
	return n, nil
}

// Close returns the pack. The writer must not be written to afterwards; a second call returns the
// same pack.
func (w *Writer) Close() (*Pack, error) {
	if !w.done {
		if err := w.out.Close(); err != nil {
			return nil, fmt.Errorf("compress a text: %w", err)
		}
		w.pack.hash, w.out, w.done = w.hash.Sum64(), nil, true
	}
	return &w.pack, nil
}

// pieces is a Writer as the destination of its compressor.
type pieces Writer

func (w *pieces) Write(b []byte) (int, error) {
	for rest := b; len(rest) > 0; {
		last := len(w.pack.pieces) - 1
		if last < 0 || len(w.pack.pieces[last]) == pieceSize {
			w.pack.pieces = append(w.pack.pieces, make([]byte, 0, pieceSize))
			w.pack.kept += pieceSize
			last++
		}
		to := w.pack.pieces[last]
		n := min(len(rest), pieceSize-len(to))
		w.pack.pieces[last] = append(to, rest[:n]...)
		rest = rest[n:]
	}
	return len(b), nil
}
