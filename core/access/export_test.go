package access

import "fmt"

// Dump returns all that a snapshot knows of servers and their addresses, in order.
func (s *Snapshot) Dump() (all []string) {
	for name, k := range s.servers.from("") {
		all = append(all, fmt.Sprint(name, k.Name, k.Quarantined, k.Deleted, k.places, k.tools))
	}
	for key, remotes := range s.remotes.from("") {
		for _, r := range remotes {
			all = append(all, fmt.Sprintf("%q %s %v", key, r.of.Name, r.withdrawn))
			if known, _ := s.servers.get(r.of.Name.String()); known != r.of {
				all = append(all, "an address leads to a server of the past")
			}
		}
	}
	return all
}

// Chunks returns how many chunks of servers and addresses a snapshot has, and how many of them another one
// does not share with it.
func (s *Snapshot) Chunks(other *Snapshot) (all, own int) {
	return countChunks(s.servers, other.servers, s.remotes.ordered, other.remotes.ordered)
}

func countChunks(a, b ordered[*knownServer], c, d ordered[[]remote]) (all, own int) {
	ownA, ownC := notIn(a, b), notIn(c, d)
	return len(a.chunks) + len(c.chunks), ownA + ownC
}

func notIn[V any](a, b ordered[V]) (own int) {
	shared := map[*entry[V]]bool{}
	for _, c := range b.chunks {
		shared[&c[0]] = true
	}
	for _, c := range a.chunks {
		if !shared[&c[0]] {
			own++
		}
	}
	return own
}

// SharesRules reports whether two snapshots have the same compiled rules.
func (s *Snapshot) SharesRules(other *Snapshot) bool { return s.ruleset == other.ruleset }

// Tried returns how many rules a decision about a server looks at.
func (s *Snapshot) Tried(q *Question) (n int) {
	for b := range s.decide.of(q.Server) {
		for _, key := range q.Subject.selectors() {
			if l := b[key]; l != nil {
				l.fitting(q, unlisted(q.Server).tools.traitsOf(&q.Call), func(int32) bool { n++; return true })
			}
		}
	}
	return n
}
