package deciding

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// Denied reports for each of some calls whether it would be denied, for lists of what a caller may use.
// The call of the question does not matter. A challenge is no denial. No one has made the calls, so that
// nothing is counted and recorded. The errors are those of Decide.
func (s *Service) Denied(ctx context.Context, q Question, calls []access.Call) ([]bool, error) {
	denied := make([]bool, len(calls))
	snapshot, subject, err := s.prepare(ctx, &q)
	if s.config.AwayAllows && fault.Is(err, fault.Unavailable) {
		return denied, nil
	}
	if err != nil {
		return nil, err
	}
	asked := s.questionOf(&q, &subject)
	for i := range calls {
		asked.Call = calls[i]
		d := snapshot.Decide(asked)
		denied[i] = d.Effect == access.Deny
	}
	return denied, nil
}
