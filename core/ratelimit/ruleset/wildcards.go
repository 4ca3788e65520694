package ruleset

import (
	"bytes"
	"math"
)

// wildcards finds, among patterns with any number of '*', the first one of the
// file that matches a value. All patterns stand in one tree of bytes and stars,
// so that what they have in common is looked at once, and a value is read once
// from left to right with the few places of the tree it may be at: the cost
// follows the value, not the number of patterns.
type wildcards struct {
	states   []state // the first is where every pattern begins
	forks    []fork  // the first stands for none
	patterns int32
}

// state is a place in the tree: a beginning that patterns share. It is small, and
// the states of a pattern lie one behind the other: with many patterns, fetching
// them from memory is what finding costs.
type state struct {
	node  *node // of the pattern that ends here
	next  int32 // behind the label; 0 for none
	star  int32 // behind a '*'; 0 for none
	fork  int32 // where bytes other than the label lead; 0 for nowhere
	order int32 // of the pattern that ends here; never for none
	best  int32 // the least order of any pattern that ends here or below
	label byte  // the byte that leads on
	loops bool  // stands behind a '*', which may take more of the value
}

// fork is further bytes that lead on from a state, and the states behind them.
type fork struct {
	labels []byte
	next   []int32
}

const never = math.MaxInt32

func newWildcards() *wildcards {
	return &wildcards{states: []state{{order: never, best: never}}, forks: make([]fork, 1)}
}

// add puts a pattern behind those that are there; false when it is there
// already, also with more stars in a row.
func (w *wildcards) add(pattern string, n *node) bool {
	order := w.patterns
	w.patterns++
	at := int32(0)
	w.states[at].best = min(w.states[at].best, order)
	for i := 0; i < len(pattern); i++ {
		if pattern[i] == '*' && w.states[at].loops {
			continue
		}
		at = w.step(at, pattern[i])
		w.states[at].best = min(w.states[at].best, order)
	}
	end := &w.states[at]
	if end.order != never {
		return false
	}
	end.order, end.node = order, n
	return true
}

// step returns the state behind a byte of a pattern, making it if need be.
func (w *wildcards) step(at int32, b byte) int32 {
	made := int32(len(w.states)) //nolint:gosec // a configuration is far below 2^31 bytes
	switch s := &w.states[at]; {
	case b == '*' && s.star != 0:
		return s.star
	case b == '*':
		s.star = made
	case s.next == 0:
		s.label, s.next = b, made
	default:
		if known := w.behind(s, b); known != 0 {
			return known
		}
		if s.fork == 0 {
			s.fork = int32(len(w.forks)) //nolint:gosec // as many as states at most
			w.forks = append(w.forks, fork{})
		}
		f := &w.forks[s.fork]
		f.labels, f.next = append(f.labels, b), append(f.next, made)
	}
	w.states = append(w.states, state{order: never, best: never, loops: b == '*'})
	return made
}

// behind returns the state behind a byte; 0 for none.
func (w *wildcards) behind(s *state, b byte) int32 {
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

// first returns the node of the first pattern that matches the whole value; nil
// for none.
func (w *wildcards) first(value string) *node {
	r := reading{wildcards: w, found: never}
	r.enter(&r.here, 0)
	here, there := &r.here, &r.there
	for i := 0; i < len(value) && here.size()+r.stars.size() > 0; i++ {
		there.clear()
		waiting := r.stars.size() // those entered below wait for the next byte
		for k := range here.size() {
			r.follow(there, here.get(k), value[i])
		}
		for k := range waiting {
			r.follow(there, r.stars.get(k), value[i])
		}
		here, there = there, here
	}
	r.finish(here)
	return r.node
}

// reading is where in the tree a value may be, so far.
type reading struct {
	*wildcards
	here, there places // reached by the byte last read, and by the one before
	stars       places // behind a star, where a value may stay
	found       int32  // the least order that matches for certain
	node        *node
}

func (r *reading) follow(to *places, at int32, b byte) {
	if next := r.behind(&r.states[at], b); next != 0 {
		r.enter(to, next)
	}
}

// enter adds a state, and the one behind its star, which may stand for nothing.
// What cannot come before the pattern found is left out.
func (r *reading) enter(to *places, at int32) {
	s := &r.states[at]
	if s.best >= r.found {
		return
	}
	to.add(at)
	if s.star != 0 {
		r.wait(s.star)
	}
}

// wait adds a state behind a star. A pattern that ends with its star matches
// whatever comes.
func (r *reading) wait(at int32) {
	s := &r.states[at]
	if s.order < r.found {
		r.found, r.node = s.order, s.node
	}
	if s.next != 0 && s.best < r.found && !r.stars.has(at) {
		r.stars.add(at)
	}
}

// finish takes the patterns that end where the value ends.
func (r *reading) finish(here *places) {
	for k := range here.size() {
		if s := &r.states[here.get(k)]; s.order < r.found {
			r.found, r.node = s.order, s.node
		}
	}
}

// places is a list of states that takes memory of its own only when there are
// many.
type places struct {
	few  [32]int32
	n    int
	more []int32
}

func (p *places) size() int { return p.n + len(p.more) }

func (p *places) clear() { p.n, p.more = 0, p.more[:0] }

func (p *places) get(i int) int32 {
	if i < len(p.few) {
		return p.few[i]
	}
	return p.more[i-len(p.few)]
}

func (p *places) add(at int32) {
	if p.n < len(p.few) {
		p.few[p.n] = at
		p.n++
		return
	}
	p.more = append(p.more, at)
}

func (p *places) has(at int32) bool {
	for i := range p.size() {
		if p.get(i) == at {
			return true
		}
	}
	return false
}
