package transaction

import "context"

// length is the key of the marks of Long and Brief.
type length struct{}

type mark uint8

const (
	long mark = iota + 1
	brief
)

// Long marks work that takes as long as there is much of it, such as a change of all versions of a
// server or the removal of old records. A store that bounds a call as a whole, so that callers do not
// wait for a database that hangs, then bounds each statement of the call instead.
func Long(ctx context.Context) context.Context { return context.WithValue(ctx, length{}, long) }

// IsLong reports whether the context is marked by Long.
func IsLong(ctx context.Context) bool { return ctx.Value(length{}) == long }

// Brief marks a change that its caller can do without: a store that has one writer at a time then
// does not wait for its turn.
func Brief(ctx context.Context) context.Context { return context.WithValue(ctx, length{}, brief) }

// IsBrief reports whether the context is marked by Brief.
func IsBrief(ctx context.Context) bool { return ctx.Value(length{}) == brief }
