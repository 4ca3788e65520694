package ruleset

import (
	"bytes"
	"math"
)

// wildcards finds, among patterns with any number of '*', the first pattern of the file that
// matches a value. All patterns form one tree of bytes and stars, so that common beginnings are
// compared once. A value is read once from left to right, together with the few states of the tree
// that it may be in: the cost depends on the value, not on the number of patterns.
type wildcards struct {
	states   []state // the first is the beginning of every pattern
	forks    []fork  // the first means that there is no fork
	patterns int32
}

// state is a node of the tree: a beginning that patterns share. It is small, and the states of a
// pattern are next to each other: with many patterns, fetching them from memory is what a search
// costs.
type state struct {
	node  *node // of the pattern that ends here
	next  int32 // the state after the label; 0 without one
	star  int32 // the state after a '*'; 0 without one
	fork  int32 // the states after other bytes; 0 without any
	order int32 // of the pattern that ends here; noPattern without one
	best  int32 // the least order of any pattern that ends here or below
	label byte  // the byte that leads to next
	loops bool  // is after a '*', which may match more of the value
}

// fork holds the further bytes that lead on from a state, and the states after them.
type fork struct {
	labels []byte
	next   []int32
}

const noPattern = math.MaxInt32

func newWildcards() *wildcards {
	return &wildcards{states: []state{{order: noPattern, best: noPattern}}, forks: make([]fork, 1)}
}

// addPattern adds a pattern after the existing ones. It returns false when there is an equal
// pattern already; several stars in a row are equal to one.
func (w *wildcards) addPattern(pattern string, n *node) bool {
	order := w.patterns
	w.patterns++
	at := int32(0)
	w.states[at].best = min(w.states[at].best, order)
	for i := 0; i < len(pattern); i++ {
		if pattern[i] == '*' && w.states[at].loops {
			continue
		}
		at = w.nextOrNewState(at, pattern[i])
		w.states[at].best = min(w.states[at].best, order)
	}
	end := &w.states[at]
	if end.order != noPattern {
		return false
	}
	end.order, end.node = order, n
	return true
}

// nextOrNewState returns the state after a byte of a pattern, and adds it if it does not exist.
func (w *wildcards) nextOrNewState(at int32, b byte) int32 {
	added := int32(len(w.states)) //nolint:gosec // a configuration is far below 2^31 bytes
	switch s := &w.states[at]; {
	case b == '*' && s.star != 0:
		return s.star
	case b == '*':
		s.star = added
	case s.next == 0:
		s.label, s.next = b, added
	default:
		if known := w.nextState(s, b); known != 0 {
			return known
		}
		if s.fork == 0 {
			s.fork = int32(len(w.forks)) //nolint:gosec // as many as states at most
			w.forks = append(w.forks, fork{})
		}
		f := &w.forks[s.fork]
		f.labels, f.next = append(f.labels, b), append(f.next, added)
	}
	w.states = append(w.states, state{order: noPattern, best: noPattern, loops: b == '*'})
	return added
}

// nextState returns the state after a byte, or 0 when there is no state.
func (w *wildcards) nextState(s *state, b byte) int32 {
	if s.label == b {
		return s.next
	}
	if s.fork != 0 {
		f := &w.forks[s.fork]
		if i := bytes.IndexByte(f.labels, b); i >= 0 {
			return f.next[i]
		}
	}
	return 0
}

// firstMatch returns the node of the first pattern that matches the whole value, or nil.
func (w *wildcards) firstMatch(value string) *node {
	r := valueMatch{wildcards: w, found: noPattern}
	r.enterState(&r.current, 0)
	current, next := &r.current, &r.next
	for i := 0; i < len(value) && current.size()+r.stars.size() > 0; i++ {
		next.clear()
		waiting := r.stars.size() // the states added below start with the next byte
		for k := range current.size() {
			r.followByte(next, current.get(k), value[i])
		}
		for k := range waiting {
			r.followByte(next, r.stars.get(k), value[i])
		}
		current, next = next, current
	}
	r.acceptEnds(current)
	return r.node
}

// valueMatch is the set of states that a value may be in, while it is read.
type valueMatch struct {
	*wildcards
	current, next stateList // the states after the last byte, and after the byte being read
	stars         stateList // the states after a star, where a value may stay
	found         int32     // the least order of a pattern known to match
	node          *node
}

// followByte enters the state that a byte leads to.
func (r *valueMatch) followByte(to *stateList, at int32, b byte) {
	if next := r.nextState(&r.states[at], b); next != 0 {
		r.enterState(to, next)
	}
}

// enterState adds a state, and the state after its star, because a star may match nothing. It
// leaves out states whose patterns all come after the pattern found.
func (r *valueMatch) enterState(to *stateList, at int32) {
	s := &r.states[at]
	if s.best >= r.found {
		return
	}
	to.add(at)
	if s.star != 0 {
		r.enterStar(s.star)
	}
}

// enterStar adds a state after a star. A pattern that ends with its star matches any rest of the
// value.
func (r *valueMatch) enterStar(at int32) {
	s := &r.states[at]
	if s.order < r.found {
		r.found, r.node = s.order, s.node
	}
	if s.next != 0 && s.best < r.found && !r.stars.has(at) {
		r.stars.add(at)
	}
}

// acceptEnds takes the patterns that end where the value ends.
func (r *valueMatch) acceptEnds(last *stateList) {
	for k := range last.size() {
		if s := &r.states[last.get(k)]; s.order < r.found {
			r.found, r.node = s.order, s.node
		}
	}
}

// stateList is a list of states that allocates memory only when there are many.
type stateList struct {
	few  [32]int32
	n    int
	more []int32
}

func (p *stateList) size() int { return p.n + len(p.more) }

func (p *stateList) clear() { p.n, p.more = 0, p.more[:0] }

func (p *stateList) get(i int) int32 {
	if i < len(p.few) {
		return p.few[i]
	}
	return p.more[i-len(p.few)]
}

func (p *stateList) add(at int32) {
	if p.n < len(p.few) {
		p.few[p.n] = at
		p.n++
		return
	}
	p.more = append(p.more, at)
}

func (p *stateList) has(at int32) bool {
	for i := range p.size() {
		if p.get(i) == at {
			return true
		}
	}
	return false
}
