package secrets

// Entropy is a source of random bytes that are suitable for secrets. Code that only needs to spread
// work does not use it.
type Entropy interface {
	// Fill overwrites p with unpredictable bytes. It never fails and is safe for concurrent use.
	Fill(p []byte)
}
