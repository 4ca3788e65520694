// Package decisionlog logs why rate limit calls get their answers, with one line of level debug for
// each descriptor, and how calls of servers are decided. It helps to find errors in rules or callers.
// It does not count; core/ratelimit/statistics and adapters/prometheus do.
package decisionlog

import (
	"context"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/core/access/deciding"
	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/ratelimit/decide"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
	"github.com/tollgate-dev/tollgate/core/requestid"
)

// Limits of the log lines of a call, because callers choose the texts in them.
const (
	maxLines = 100 // for each call
	maxText  = 256 // bytes of a text in a line
)

// Log writes decisions into a log.
type Log struct{ log *logrus.Entry }

// New returns a Log.
func New(log *logrus.Entry) *Log { return &Log{log} }

// Decided writes a line for each descriptor. It is a decide.Observe.
func (l *Log) Decided(ctx context.Context, r *ratelimit.Request, code ratelimit.Code, findings []decide.Finding) {
	call := l.log.WithContext(ctx).WithFields(logrus.Fields{
		"domain": shortText(string(r.Domain)), "overall_code": codeText(code), "request_id": requestid.FromContext(ctx),
	})
	for i := range findings {
		if i == maxLines {
			call.WithField("descriptors", len(findings)).
				Debugf("only %d descriptors of a rate limit call are logged", maxLines)
			return
		}
		call.WithFields(fieldsOf(&r.Descriptors[i], &findings[i])).Debug("a rate limit descriptor was decided")
	}
}

func fieldsOf(d *ratelimit.Descriptor, f *decide.Finding) logrus.Fields {
	fields := logrus.Fields{
		"descriptor": descriptorText(d.Entries), "code": codeText(f.Status.Code), "hits": signedHits(d, f),
	}
	addRule(fields, d, f)
	if f.Status.HasLimit() {
		fields["limit"] = strconv.FormatUint(uint64(f.Status.Limit.RequestsPerUnit), 10) + " per " +
			f.Status.Limit.Unit.String()
		fields["remaining"] = f.Status.Remaining
	}
	switch f.Source {
	case decide.FromStore:
		fields["answered_from"], fields["key"], fields["count"] = "counter", shortText(f.Key), f.Count
	case decide.FromMemory:
		fields["answered_from"] = "local cache"
	case decide.FromFailureMode:
		fields["answered_from"] = "KVSTORE_FAILURE_MODE"
	case decide.FromRule:
	}
	return fields
}

// addRule adds the rule, or the reason why no rule applies.
func addRule(fields logrus.Fields, d *ratelimit.Descriptor, f *decide.Finding) {
	switch {
	case f.Rule != nil:
		fields["rule"] = shortText(f.Rule.Path)
		if f.Rule.Unlimited {
			fields["limit"] = "unlimited"
		}
		if f.Rule.Shadow {
			fields["shadow_mode"] = true
		}
		if f.Rule.Quota {
			fields["quota_mode"] = true
		}
		if f.Replaced {
			fields["limit"] = "replaced by the limit of another descriptor"
		}
	case f.Miss.Reason == ruleset.Matched:
		fields["no_rule"] = "the request contains its own limit"
	default:
		fields["no_rule"] = f.Miss.Phrase(d.Entries, quotedText)
	}
}

// descriptorText returns a descriptor in the syntax of ratelimit-client.
func descriptorText(entries []ratelimit.Entry) string {
	var b strings.Builder
	for i := range entries {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(shortText(entries[i].Key) + "=" + shortText(entries[i].Value))
		if b.Len() > maxText {
			break
		}
	}
	return shortText(b.String())
}

// signedHits returns the hits of a descriptor, negative if the descriptor gave them back.
func signedHits(d *ratelimit.Descriptor, f *decide.Finding) int64 {
	n := int64(f.Hits) //nolint:gosec // at most MaxHits
	if d.GiveBack {
		return -n
	}
	return n
}

func codeText(c ratelimit.Code) string {
	if c == ratelimit.OverLimit {
		return "OVER_LIMIT"
	}
	return "OK"
}

func quotedText(s string) string { return `"` + shortText(s) + `"` }

// shortText returns at most maxText bytes of a text, with an ellipsis if it omits some.
func shortText(s string) string {
	if len(s) <= maxText {
		return s
	}
	end := maxText - len("…")
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}

// DecidedCall writes a line of level info about a call of a server. It has neither tokens nor the
// arguments of tools. It is a deciding.Log.
func (l *Log) DecidedCall(ctx context.Context, q *deciding.Question, a *deciding.Answer) {
	fields := logrus.Fields{"effect": string(a.Effect), "reason": string(a.Reason)}
	for name, value := range map[string]string{
		"subject": a.Subject.String(), "server": a.Server, "method": q.Call.Method, "tool": q.Call.Tool(),
		"rule": string(a.Rule), "client": a.Subject.Client(), "decision_id": string(a.ID),
		"observed_rule": string(a.Observed.Rule), "observed_effect": string(a.Observed.Effect),
		"observed_reason": string(a.Observed.Reason),
	} {
		if value != "" {
			fields[name] = shortText(value)
		}
	}
	if level := a.Subject.Trust(); level != 0 {
		fields["trust"] = level.String()
	}
	if q.From.IsValid() {
		fields["address"] = q.From.String()
	}
	l.log.WithContext(ctx).WithFields(fields).Info(callMessage)
}
