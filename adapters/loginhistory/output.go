package loginhistory

import (
	"encoding/json"
	"io"
	"math"
	"strconv"

	"github.com/tollgate-dev/tollgate/core/auth/history"
	"github.com/tollgate-dev/tollgate/core/auth/risk"
)

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

// MarshalJSON implements json.Marshaler.
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
