package upstream

import (
	"bytes"
	"compress/gzip"
	_ "embed" // the documents
	"encoding/json"
	"io"
	"os"
	"testing"

	"github.com/tollgate-dev/tollgate/test/must"
)

//go:embed testdata/shapes.jsonl.gz
var shapes []byte

// RealDocuments returns documents in the shape of 353 real ones, with names, identifiers and values
// replaced: their packages, arguments, variables and remotes are those of the public registry in
// 2025. TEST_SERVER_DOCUMENTS may name a file with other documents, one JSON array.
func RealDocuments(t testing.TB) (documents []json.RawMessage) {
	t.Helper()
	if name := os.Getenv("TEST_SERVER_DOCUMENTS"); name != "" {
		text, err := os.ReadFile(name) //nolint:gosec // the tester names the file
		must.Succeed(t, err)
		must.Succeed(t, json.Unmarshal(text, &documents))
		return documents
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(shapes))
	must.Succeed(t, err)
	text, err := io.ReadAll(unpacked)
	must.Succeed(t, err)
	for line := range bytes.Lines(text) {
		documents = append(documents, line)
	}
	return documents
}
