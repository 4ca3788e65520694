package secrets

// Sealer encrypts secrets that must be read again, with a key of the deployment. It is safe for
// concurrent use.
type Sealer interface {
	// Seal returns a secret encrypted. Only Open with the same about returns it; about is not
	// secret.
	Seal(secret []byte, about string) ([]byte, error)
	// Open returns the secret that Seal encrypted, on any instance. It returns an error for another
	// about, for data that was changed, and for another key.
	Open(sealed []byte, about string) ([]byte, error)
}
