package counter

import (
	"math"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
)

// FindOver returns the keys whose hits, counted in order, would be refused or go over a limit
// (contract L-10); it is empty if there are none. look returns the result of the hit with an index
// as if it had this addend, and counts nothing. FindOver writes the results of refused hits to
// results.
func FindOver(hits []Hit, results []Result, look func(index int, addend int64) Result) map[string]bool {
	var over map[string]bool
	sums := make(map[string]int64, len(hits))
	for i := range hits {
		h := &hits[i]
		sum := sums[h.Key] + h.Addend
		if sum < 0 && h.Algorithm == ratelimit.FixedWindow { // a count is never negative
			sum = max(sum, -int64(look(i, 0).Count)) //nolint:gosec // counts fit
		}
		sums[h.Key] = sum
		r := look(i, sum)
		if !r.IsOver(h) {
			continue
		}
		if h.Algorithm != ratelimit.FixedWindow {
			results[i] = r
		}
		if over == nil {
			over = map[string]bool{}
		}
		over[h.Key] = true
	}
	return over
}

// AddTo returns count plus addend, at least zero and at most the greatest signed 64-bit number, the
// maximum in Valkey too.
func AddTo(count uint64, addend int64) uint64 {
	if addend >= 0 {
		return min(count+uint64(addend), math.MaxInt64)
	}
	return count - min(count, -uint64(addend))
}

// CountTogether counts positive hits of one key and fixed window as one hit, and writes the result
// of each, as if they had been counted in order.
func CountTogether(hits []Hit, results []Result, count func(h Hit) (uint64, error)) error {
	all := hits[0]
	for i := range hits[1:] {
		all.Addend = int64(AddTo(uint64(all.Addend), hits[1+i].Addend)) //nolint:gosec // at most the greatest one
	}
	after, err := count(all)
	for i := len(hits) - 1; i >= 0; i-- {
		results[i].Count = after
		after = AddTo(after, -hits[i].Addend)
	}
	return err
}
