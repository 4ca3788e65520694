package decisionlog

import (
	"context"

	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/core/access/deciding"
)

// DecidedCall writes a line of level info about a call of a server. It has neither tokens nor the
// arguments of tools. It is a deciding.Log.
func (l *Log) DecidedCall(ctx context.Context, q *deciding.Question, a *deciding.Answer) {
	fields := logrus.Fields{"effect": string(a.Effect), "reason": string(a.Reason)}
	for name, value := range map[string]string{
		"subject": a.Subject.String(), "server": a.Server, "method": q.Call.Method, "tool": q.Call.Tool(),
		"rule": string(a.Rule), "decision_id": string(a.ID),
		"observed_rule": string(a.Observed.Rule), "observed_effect": string(a.Observed.Effect),
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
