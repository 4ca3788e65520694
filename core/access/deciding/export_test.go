package deciding

import "context"

// Record writes what is due, as Run does.
func (s *Service) Record(all bool) { s.record(context.Background(), all) }
