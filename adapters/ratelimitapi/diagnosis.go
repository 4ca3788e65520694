package ratelimitapi

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	ratelimitpb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/ratelimit/decide"
	"github.com/tollgate-dev/tollgate/core/ratelimit/explain"
)

// Explanation is the JSON that says by which rules a request would be decided (contract L-51).
type Explanation struct {
	Descriptors []ExplainedDescriptor `json:"descriptors"`
}

// ExplainedDescriptor is what would decide about a descriptor.
type ExplainedDescriptor struct {
	Matched    bool           `json:"matched"`
	Rule       *ExplainedRule `json:"rule,omitempty"`
	Why        string         `json:"why,omitempty"` // there is no rule
	Tried      []TriedRule    `json:"tried"`
	MoreTried  bool           `json:"moreTried,omitempty"` // there are more than tried has
	CounterKey string         `json:"counterKey,omitempty"`
}

// ExplainedRule is a rule in the JSON of Explanation.
type ExplainedRule struct {
	Domain     string          `json:"domain"`
	Path       []string        `json:"path"`
	File       string          `json:"file,omitempty"`
	Line       int             `json:"line,omitempty"`
	Limit      json.RawMessage `json:"limit,omitempty"`
	Unlimited  bool            `json:"unlimited,omitempty"`
	Algorithm  string          `json:"algorithm,omitempty"`
	ShadowMode bool            `json:"shadowMode"`
	ReplacedBy string          `json:"replacedBy,omitempty"`
}

// TriedRule is a descriptor of the configuration that was compared with an entry.
type TriedRule struct {
	Level   int    `json:"level"` // of the entry; the first is 0
	Key     string `json:"key"`
	Value   string `json:"value"`
	Kind    string `json:"kind"`
	Pattern string `json:"pattern"`
	Matched bool   `json:"matched"`
	Why     string `json:"why"`
}

// NewExplanation returns the JSON of results.
func NewExplanation(results []explain.Result) Explanation {
	e := Explanation{Descriptors: make([]ExplainedDescriptor, len(results))}
	for i, r := range results {
		d := ExplainedDescriptor{
			Matched: r.Rule != nil, Why: r.Why, Tried: make([]TriedRule, len(r.Tried)), MoreTried: r.More,
			CounterKey: r.CounterKey,
		}
		if r.Rule != nil {
			d.Rule = newExplainedRule(r.Rule, r.ReplacedBy)
		}
		for j, t := range r.Tried {
			d.Tried[j] = TriedRule{t.Level, t.Entry.Key, t.Entry.Value, string(t.Kind), t.Pattern, t.Matched, t.Why}
		}
		e.Descriptors[i] = d
	}
	return e
}

func newExplainedRule(r *ratelimit.Rule, by ratelimit.Name) *ExplainedRule {
	e := &ExplainedRule{
		Domain: string(r.Domain), Path: r.Written, File: r.File, Line: r.Line,
		Unlimited: r.Unlimited, ShadowMode: r.Shadow, ReplacedBy: string(by),
	}
	if !r.Unlimited {
		e.Limit, e.Algorithm = appendLimit(nil, r.Limit, string(r.Name)), r.Limit.Algorithm.String()
	}
	return e
}

// hotRules is the JSON of the keys with the most hits (contract L-52).
type hotRules struct {
	Rules []hotRule `json:"rules"`
}

type hotRule struct {
	Domain string   `json:"domain"`
	Path   []string `json:"path"`
	Keys   []hotKey `json:"keys"`
}

type hotKey struct {
	Descriptor string `json:"descriptor"`
	Hits       uint64 `json:"hits"`
	Refused    uint64 `json:"refused"`
	Error      uint64 `json:"error"`
}

// NewExplainHandler returns a handler that explains a request in the form of /json.
func NewExplainHandler(d *decide.Decider) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			status, message := http.StatusBadRequest, "the body is incomplete"
			if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
				status, message = http.StatusRequestEntityTooLarge, "body is larger than 1 MiB"
			}
			writeJSON(w, status, map[string]string{"error": message})
			return
		}
		var m ratelimitpb.RateLimitRequest
		if err := protojson.Unmarshal(body, &m); err != nil {
			writeJSON(w, http.StatusBadRequest, map[string]string{
				"error": "malformed request: " + malformedReason(body, err),
			})
			return
		}
		var pool requestPool
		results, err := d.Explain(&pool.convert(&m).request)
		if err != nil {
			refused := classifyError(err)
			writeJSON(w, refused.http, map[string]string{"error": refused.message})
			return
		}
		writeJSON(w, http.StatusOK, NewExplanation(results))
	})
}

// NewHotKeysHandler returns a handler that lists the keys with the most hits.
func NewHotKeysHandler(d *decide.Decider) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		all := hotRules{Rules: []hotRule{}}
		for _, r := range d.HotKeys() {
			rule := hotRule{Domain: string(r.Rule.Domain), Path: r.Rule.Written}
			for _, k := range r.Keys {
				rule.Keys = append(rule.Keys, hotKey(k))
			}
			all.Rules = append(all.Rules, rule)
		}
		writeJSON(w, http.StatusOK, all)
	})
}

// writeJSON writes a value that always marshals.
func writeJSON(w http.ResponseWriter, status int, value any) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	var text strings.Builder
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	_ = e.Encode(value)                     // only texts, numbers and lists
	_, _ = io.WriteString(w, text.String()) // the client may have disconnected
}
