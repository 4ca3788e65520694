// Package loginlog reads recorded sign-ins, a JSON object a line, and has them assessed again. It writes the verdicts as JSON
// lines; what they are made of is the business of core/auth/replay.
package loginlog

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/tollgate-dev/tollgate/core/auth/assess"
	"github.com/tollgate-dev/tollgate/core/auth/replay"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// maxLine bounds a line, in bytes.
const maxLine = 64 << 10

// Replayer assesses one event after the other.
type Replayer interface {
	Next(ctx context.Context, e replay.Event) (assess.Verdict, error)
}

// Line is the verdict on one line.
type Line struct {
	ID json.RawMessage // as it stands in the record
	assess.Verdict
}

// Read reads every line, has it assessed and gives the verdict to write. It ends at the first line that is malformed or out of
// order, with an error that names the line and the field; empty lines are passed over.
func Read(ctx context.Context, in io.Reader, r Replayer, write func(Line) error) error {
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
			text = bytes.TrimPrefix(text, []byte("\ufeff")) // which a file may begin with (RFC 8259, 8.1)
		}
		text = bytes.TrimSpace(text)
		if len(text) == 0 {
			continue
		}
		line, err := assessed(ctx, text, r)
		if err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		if err := write(line); err != nil {
			return err
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return fmt.Errorf("line %d: is longer than %d bytes", n+1, maxLine)
	case err != nil:
		return fmt.Errorf("line %d: %w", n+1, err)
	}
	return nil
}

func assessed(ctx context.Context, text []byte, r Replayer) (Line, error) {
	id, event, err := parse(text)
	if err != nil {
		return Line{}, err
	}
	v, err := r.Next(ctx, event)
	if f, ok := fault.As(err); ok && f.Kind == fault.Invalid {
		return Line{}, errors.New(f.Message)
	}
	return Line{id, v}, err
}

// verdict is a line of what is written.
type verdict struct {
	ID         json.RawMessage `json:"id"`
	RiskScore  int             `json:"riskScore"`
	TrustLevel string          `json:"trustLevel"`
	Factors    factors         `json:"factors"`
}

type factors struct {
	DeviceFamiliarity int `json:"deviceFamiliarity"`
	GeographicAnomaly int `json:"geographicAnomaly"`
	IPReputation      int `json:"ipReputation"`
	LoginVelocity     int `json:"loginVelocity"`
	FailedAttempts    int `json:"failedAttempts"`
}

// Encode returns what writes a verdict as a line of JSON.
func Encode(w io.Writer) func(Line) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return func(l Line) error {
		return e.Encode(verdict{l.ID, l.Score, l.Level.String(), factors(l.Factors)})
	}
}
