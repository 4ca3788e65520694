package traffic

import "github.com/tollgate-dev/tollgate/core/ratelimit"

// sample says which requests are recorded.
type sample struct {
	below uint64 // the hashes in the sample
	all   bool
}

// has reports whether a request is in the sample. It depends on the domain and the first descriptor
// only, and is the same on all instances and after a restart, so that either all requests of a key
// are recorded or not (contract L-61).
func (s sample) has(r *ratelimit.Request) bool {
	return s.all || len(r.Descriptors) > 0 && hashKey(r) < s.below
}

// hashKey returns a hash of the domain and the first descriptor of a request: FNV-1a, whose bits
// are mixed at the end by the finalizer of MurmurHash3, because the upper bits of the hashes of
// short texts are alike.
func hashKey(r *ratelimit.Request) uint64 {
	h := hashText(14695981039346656037, string(r.Domain))
	for i := range r.Descriptors[0].Entries {
		e := &r.Descriptors[0].Entries[i]
		h = hashText(hashText(h, e.Key), e.Value)
	}
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// hashText adds a text and its end to a hash. UTF-8 has no byte 0xff.
func hashText(h uint64, s string) uint64 {
	const prime = 1099511628211
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * prime
	}
	return (h ^ 0xff) * prime
}
