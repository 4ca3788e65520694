package transaction

import "context"

// length is the context key of the marks of Long and Brief.
type length struct{}

type mark uint8

const (
	long mark = iota + 1
	brief
)

// Long marks work whose duration depends on the number of records, for example a change of all
// versions of a server or the removal of old records. A store normally limits the duration of a
// whole call, so that callers do not wait for a database that hangs; for marked work it limits each
// statement instead.
func Long(ctx context.Context) context.Context { return context.WithValue(ctx, length{}, long) }

// IsLong reports whether the context is marked by Long.
func IsLong(ctx context.Context) bool { return ctx.Value(length{}) == long }

// Brief marks a change that the caller can skip. A store that has one writer at a time then fails
// at once instead of waiting for its turn.
func Brief(ctx context.Context) context.Context { return context.WithValue(ctx, length{}, brief) }

// IsBrief reports whether the context is marked by Brief.
func IsBrief(ctx context.Context) bool { return ctx.Value(length{}) == brief }

// exclusive is the context key of the mark of Exclusive.
type exclusive struct{}

// Exclusive marks a change of what operators manage: grants, policies, views, mirrors, webhooks and
// rules. Of the transactions that begin with a marked context, one runs at a time, on all
// instances, and each reads what those before it have stored. So a change may depend on what it
// reads, without other locks.
func Exclusive(ctx context.Context) context.Context { return context.WithValue(ctx, exclusive{}, true) }

// IsExclusive reports whether the context is marked by Exclusive.
func IsExclusive(ctx context.Context) bool { return ctx.Value(exclusive{}) != nil }
