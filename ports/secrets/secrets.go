// Package secrets is the port to everything that is hard to guess: password hashes, signed access
// tokens and random bytes. The rules that use them, for example which password is strong enough,
// are in core/auth.
//
// [github.com/tollgate-dev/tollgate/ports/secrets/secretstest] has the contract tests.
package secrets
