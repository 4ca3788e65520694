// Package loginhistory reads recorded logins, one JSON object per line, for a replay with other
// risk settings. It passes each login to core/auth/replay, which computes the verdict, and writes
// the verdicts as lines of JSON.
package loginhistory

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/tollgate-dev/tollgate/adapters/internal/files"
	"github.com/tollgate-dev/tollgate/core/auth/learning"
	"github.com/tollgate-dev/tollgate/core/auth/replay"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// maxLine is the maximum length of a line in bytes.
const maxLine = 64 << 10

// Replayer assesses recorded logins in the order of their times.
type Replayer interface {
	Next(ctx context.Context, e replay.Event) (replay.Verdict, error)
}

// Line is the verdict on one line of the input.
type Line struct {
	ID    json.RawMessage // the id of the record, unchanged
	Label string          // of the record; otherwise empty
	Who   learning.Person // whose account it may be
	Event replay.Event
	replay.Verdict
}

// ReplayLines reads lines from in, passes each login to r, and calls write with the verdict. It
// skips empty lines. It stops at the first line that is malformed or earlier than the line before
// it, with an error that names the line and the field.
func ReplayLines(ctx context.Context, in io.Reader, r Replayer, write func(Line) error) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	n := 0
	for lines.Scan() {
		n++
		if err := ctx.Err(); err != nil {
			return err
		}
		text := lines.Bytes()
		if n == 1 {
			text = files.TrimByteOrderMark(text)
		}
		text = bytes.TrimSpace(text)
		if len(text) == 0 {
			continue
		}
		line, err := assessLine(ctx, text, r)
		if err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		if err := write(line); err != nil {
			return err
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return fmt.Errorf("line %d is longer than %d bytes", n+1, maxLine)
	case err != nil:
		return fmt.Errorf("line %d: %w", n+1, err)
	}
	return nil
}

// assessLine parses a line and returns its verdict.
func assessLine(ctx context.Context, text []byte, r Replayer) (Line, error) {
	parsed, err := parseEvent(text)
	if err != nil {
		return Line{}, err
	}
	v, err := r.Next(ctx, parsed.event)
	if f, ok := fault.As(err); ok && f.Kind == fault.Invalid {
		return Line{}, errors.New(f.Message)
	}
	return Line{parsed.id, parsed.label, parsed.who, parsed.event, v}, err
}
