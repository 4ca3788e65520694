package registryjson

import (
	"errors"
	"io"

	"github.com/tollgate-dev/tollgate/adapters/internal/files"
)

// ReadDocument returns the server document in a file, without a byte order mark. A file may begin
// with the mark (RFC 8259, 8.1), but a request may not.
func ReadDocument(r io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxRecord+1))
	if err != nil {
		return nil, err // the error names the file
	}
	if len(text) > maxRecord {
		return nil, errors.New("the document is larger than 1 MiB")
	}
	return files.TrimByteOrderMark(text), nil
}
