package registryjson

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/internal/files"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/plugins/sdk/publicdial"
	"github.com/tollgate-dev/tollgate/ports/recordsource"
)

// Limits of one document. Its server is not trusted.
const (
	maxDocumentBytes = 1 << 20
	maxDocumentTime  = 10 * time.Second // from the DNS lookup to the end
)

// documentSource reads single documents for people. It implements recordsource.Documents.
type documentSource struct {
	chosen, public *client
}

// NewDocuments returns a source that uses the proxies of the environment.
func NewDocuments() recordsource.Documents { //nolint:ireturn // the adapter of the port
	return newDocumentSource(publicdial.Config{Timeout: maxDial})
}

func newDocumentSource(public publicdial.Config) *documentSource {
	s := &documentSource{chosen: newClient(newRedirectGuard()), public: newClient(newPublicGuard(public))}
	for _, c := range [...]*client{s.chosen, s.public} {
		c.tries, c.maxPage = 1, maxDocumentTime
	}
	return s
}

func (s *documentSource) Read(ctx context.Context, r recordsource.DocumentRequest) ([]byte, error) {
	c := s.public
	if r.Chosen {
		c = s.chosen
	}
	raw, err := readDocument(ctx, c, r.Address)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	var refused *publicdial.RefusedError
	var unresolved *net.DNSError
	switch {
	case errors.As(err, &refused), !r.Chosen && errors.As(err, &unresolved):
		// One sentence for both: another would show which inner names there are.
		return nil, fault.New(fault.Unavailable, "the address, or one that it redirects to, is not public, or its name cannot be resolved")
	case err != nil:
		return nil, fault.New(fault.Unavailable, explain(err))
	}
	e := newEntry("", raw)
	if e.Unreadable != nil {
		return nil, fault.New(fault.Unavailable, "the response is not the JSON of a server")
	}
	return e.Document, nil
}

// readDocument returns the text at an address.
func readDocument(ctx context.Context, c *client, address string) ([]byte, error) {
	part, err := newRemotePart(address, c)
	if err != nil {
		return nil, err
	}
	body, err := part.openBody(ctx)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	raw, err := io.ReadAll(io.LimitReader(body, maxDocumentBytes+1))
	if err == nil && len(raw) > maxDocumentBytes {
		err = limitError(fmt.Sprintf("the document is larger than %d bytes", maxDocumentBytes))
	}
	return raw, err
}

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
