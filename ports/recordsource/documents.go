package recordsource

import "context"

// DocumentRequest says which document to read.
type DocumentRequest struct {
	Address string // absolute, http or https
	Chosen  bool   // an operator chose the host, so that it may be in a private network
}

// Documents reads single documents. What it returns is neither checked nor trusted. It is safe for
// concurrent use.
type Documents interface {
	// Read returns the server document at an address, which may be wrapped as registries return it;
	// at most 1 MiB. Unless an operator chose the address it is read from public addresses only,
	// and redirects lead to public addresses only.
	//
	// It returns fault.Unavailable, with a sentence for people that contains no secret, if there is
	// no document, it is too large or takes too long; and the error of the context if it ended.
	Read(ctx context.Context, r DocumentRequest) ([]byte, error)
}
