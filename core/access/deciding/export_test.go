package deciding

import "context"

// Record writes what is due, as Run does.
func (s *Service) Record(all bool) {
	s.record(context.Background(), &s.ledger, all)
	s.record(context.Background(), &s.seen, all)
}
