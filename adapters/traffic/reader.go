package traffic

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/ratelimit"
)

// Reader reads a recording. It is not safe for concurrent use.
type Reader struct {
	lines  *bufio.Reader
	number int
	parser parser
}

// NewReader returns a Reader of a recording.
func NewReader(r io.Reader) *Reader {
	return &Reader{lines: bufio.NewReaderSize(r, maxLine+1)}
}

// Next returns the next request and its time. The request is valid until the next call.
//
// Errors: io.EOF after the last line; fault.Invalid with the number of a line that is malformed;
// and those of the reader.
func (r *Reader) Next() (time.Time, *ratelimit.Request, error) {
	line, err := r.lines.ReadSlice('\n')
	switch {
	case errors.Is(err, io.EOF) && len(line) == 0:
		return time.Time{}, nil, io.EOF
	case err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull):
		return time.Time{}, nil, fmt.Errorf("read line %d: %w", r.number+1, err)
	}
	r.number++
	if errors.Is(err, bufio.ErrBufferFull) {
		return time.Time{}, nil, r.AtLine(fmt.Errorf("it is longer than %d bytes", maxLine))
	}
	e, err := r.parser.parseLine(bytes.TrimSuffix(line, []byte{'\n'}))
	if err != nil {
		return time.Time{}, nil, r.AtLine(err)
	}
	return e.at, &e.request, nil
}

// AtLine returns fault.Invalid with the number of the last line and what is wrong with it. It
// returns other faults than fault.Invalid as they are: they are not about the line.
func (r *Reader) AtLine(err error) error {
	what := err.Error()
	if f, ok := fault.As(err); ok {
		if f.Kind != fault.Invalid {
			return err
		}
		what = f.Message
	}
	return fault.Newf(fault.Invalid, "line %d: %s", r.number, what)
}
