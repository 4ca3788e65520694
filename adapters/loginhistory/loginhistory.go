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
	"math"
	"strconv"

	"github.com/tollgate-dev/tollgate/adapters/internal/files"
	"github.com/tollgate-dev/tollgate/core/auth/history"
	"github.com/tollgate-dev/tollgate/core/auth/learning"
	"github.com/tollgate-dev/tollgate/core/auth/replay"
	"github.com/tollgate-dev/tollgate/core/auth/risk"
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

// verdictJSON is a line of the output.
type verdictJSON struct {
	ID         json.RawMessage `json:"id"`
	RiskScore  float64         `json:"riskScore"`
	TrustLevel string          `json:"trustLevel"`
	Factors    factorsJSON     `json:"factors"`
	*historyJSON
}

// factorsJSON writes the points by the names of the factors, in their order.
type factorsJSON risk.Factors

func (f factorsJSON) MarshalJSON() ([]byte, error) {
	text := []byte{'{'}
	for factor, points := range f {
		if factor > 0 {
			text = append(text, ',')
		}
		text = strconv.AppendQuote(text, risk.Factor(factor).String())
		text = strconv.AppendInt(append(text, ':'), int64(points), 10)
	}
	return append(text, '}'), nil
}

// historyJSON is what a line has in addition if the scorer uses the history.
type historyJSON struct {
	Points  int        `json:"pointsScore"`
	History *float64   `json:"historyScore"` // null if it is silent
	Silent  string     `json:"historySilent,omitempty"`
	Parts   []partJSON `json:"historyParts,omitempty"`
}

type partJSON struct {
	Feature  string  `json:"feature"`
	Value    string  `json:"value,omitempty"`
	Known    bool    `json:"known"`
	Person   float64 `json:"person"`
	Everyone float64 `json:"everyone"`
	Points   float64 `json:"points"`
	Reason   string  `json:"reason"`
}

// NewLineWriter returns a function that writes a verdict to w as a line of JSON.
func NewLineWriter(w io.Writer) func(Line) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return func(l Line) error {
		return e.Encode(verdictJSON{
			l.ID, roundTo(l.RiskScore, 100), l.Level.String(), factorsJSON(l.Factors), newHistoryJSON(&l),
		})
	}
}

// newHistoryJSON returns nil if the scorer does not use the history.
func newHistoryJSON(l *Line) *historyJSON {
	if l.History == nil {
		return nil
	}
	j := &historyJSON{Points: l.Points, Silent: l.History.Silence.String()}
	if l.History.Silence != history.Heard {
		return j
	}
	score := roundTo(l.History.Score, 100)
	j.History = &score
	for _, p := range l.History.Parts {
		j.Parts = append(j.Parts, partJSON{
			p.Feature.String(), p.Value, p.Known, roundTo(p.Person, 1e6), roundTo(p.Everyone, 1e6),
			roundTo(p.Points, 100), p.Sentence(),
		})
	}
	return j
}

// roundTo returns a number rounded to a fraction.
func roundTo(v, fraction float64) float64 { return math.Round(v*fraction) / fraction }
