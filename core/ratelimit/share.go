package ratelimit

// The parts of a limit that bound the size of a share. The page on the registry documents what
// follows from them (docs/registry.md, "The limit per address").
const (
	shareOfRest  = 32   // of what no instance has reserved yet
	shareOfUsed  = 16   // of what the instance has admitted in this window
	shareOfLimit = 1000 // of the whole limit, so that an instance with few requests reserves rarely
)

// ShareSize returns how many requests of a limit an instance reserves at once in the counter store,
// to admit them later without a call to the store. counted is the count in the store when the
// instance last saw it, and used the number of requests that the instance has admitted in this
// window.
//
// Requests that an instance has reserved but does not admit are missing for the other instances. So
// a share is at most 1/32 of what is left of the limit, which makes it 1 near the limit. It is also
// at most 1/16 of what the instance has admitted, or 1/1000 of the limit if that is more. Because
// an instance reserves only when it needs one request at once, n instances together admit more than
// (1-n/1000)·16/17 of the limit before any of them refuses a request.
func ShareSize(limit, counted, used uint64) uint64 {
	rest := limit - min(counted, limit)
	return max(1, min(rest/shareOfRest, max(limit/shareOfLimit, used/shareOfUsed)))
}
