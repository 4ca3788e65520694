// Package entropy is the port through which the core gets random bytes. What
// is merely to be spread out needs none of it.
package entropy

// Source gives random bytes.
type Source interface {
	// Fill overwrites all of p with bytes that nobody can foretell. It never
	// fails and is safe for concurrent use.
	Fill(p []byte)
}
