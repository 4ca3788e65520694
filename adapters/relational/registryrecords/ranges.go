package registryrecords

import (
	"slices"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// How many ranges of names one query reads: first one alone, which fills most pages, then a few,
// then many. A batch is filled up with empty ranges, so that its query has one of a few texts.
const (
	fewRanges  = 8
	manyRanges = 32
)

// pageInRanges returns the page of a query with ranges of names. read returns the page of the query
// for some of the ranges.
func pageInRanges(
	q registrystore.Query, read func(q registrystore.Query) (registrystore.Page, error),
) (p registrystore.Page, err error) {
	if q.Names == nil {
		return read(q)
	}
	full, left := false, q
	for names := range rangeBatches(rangesAfter(q)) {
		left.Names = names
		if full { // does the next page have a record?
			left.Limit, left.Bytes = 1, 0
		}
		part, err := read(left)
		if err != nil {
			return registrystore.Page{}, err
		}
		if full && (part.More || len(part.Records) > 0) {
			p.More = true
			return p, nil
		}
		if full {
			continue
		}
		p.Records = append(p.Records, part.Records...)
		if part.More {
			p.More, p.EndName, p.EndVersion = true, part.EndName, part.EndVersion
			return p, nil
		}
		left.Limit -= len(part.Records)
		full = left.Limit <= 0
		for i := range part.Records {
			if q.Bytes > 0 {
				left.Bytes -= len(part.Records[i].Document)
				full = full || left.Bytes <= 0
			}
		}
	}
	return p, nil
}

// rangesAfter returns the parts of the ranges of a query that the page may have.
func rangesAfter(q registrystore.Query) []registry.NameRange {
	first := slices.IndexFunc(q.Names, func(r registry.NameRange) bool { return q.AfterName < r.Below })
	if first < 0 {
		return nil
	}
	return q.Names[first:]
}

func rangeBatches(all []registry.NameRange) func(yield func([]registry.NameRange) bool) {
	return func(yield func([]registry.NameRange) bool) {
		for _, size := range []int{1, fewRanges} {
			if len(all) == 0 || !yield(fillRanges(all[:min(size, len(all))])) {
				return
			}
			all = all[min(size, len(all)):]
		}
		for part := range slices.Chunk(all, manyRanges) {
			if !yield(fillRanges(part)) {
				return
			}
		}
	}
}

// fillRanges returns one range alone, and more of them with empty ranges at the end.
func fillRanges(some []registry.NameRange) []registry.NameRange {
	size := manyRanges
	switch {
	case len(some) == 1:
		return some
	case len(some) <= fewRanges:
		size = fewRanges
	}
	filled := slices.Clone(some)
	for len(filled) < size {
		filled = append(filled, registry.NameRange{From: registry.AllNames().Below})
	}
	return filled
}

// startOf returns the name and version after which the page begins in a range.
func startOf(q registrystore.Query, r registry.NameRange) (name, version string) {
	if q.AfterName < r.From {
		return r.From, ""
	}
	return q.AfterName, q.AfterVersion
}

// rowsInRanges returns the condition for the first rows of a list in the ranges of the query, at
// least the given number if there are as many.
func (s *Servers) rowsInRanges(q registrystore.Query, rows int) condition {
	lists := make([]condition, len(q.Names))
	for i, r := range q.Names {
		name, version := startOf(q, r)
		part := q
		part.Names, part.AfterName, part.AfterVersion = nil, name, version
		lists[i] = s.listCondition(part, rows).and("v.name < ?", r.Below)
	}
	if len(lists) == 1 {
		return lists[0]
	}
	return s.sql.firstRows(lists, listOrder(q), rows)
}

// nameFilter returns the condition that a column of a row, which was found otherwise, is in the
// ranges. No database uses an index for it.
func nameFilter(column string, ranges []registry.NameRange) condition {
	switch {
	case ranges == nil:
		return condition{}
	case len(ranges) == 0:
		return condition{text: "1 = 0"}
	}
	c := findRange(column, ranges)
	c.text += " = 1"
	return c
}

// findRange returns the expression that is 1 if a column is in one of the ranges, which are in order.
// It compares a row with as many of them as a binary search, since a view may have hundreds, and a
// search tens of thousands of rows.
func findRange(column string, ranges []registry.NameRange) condition {
	if len(ranges) == 1 {
		return condition{
			"CASE WHEN " + column + " >= ? AND " + column + " < ? THEN 1 ELSE 0 END", []any{ranges[0].From, ranges[0].Below},
		}
	}
	half := len(ranges) / 2
	low, high := findRange(column, ranges[:half]), findRange(column, ranges[half:])
	return condition{
		"CASE WHEN " + column + " < ? THEN " + low.text + " ELSE " + high.text + " END",
		slices.Concat([]any{ranges[half].From}, low.args, high.args),
	}
}
