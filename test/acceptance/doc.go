// Package acceptance tests the built service from outside: the real binary and its real plugins,
// over real listeners, in both environments. It knows docs/contract and the wire, and nothing of
// the code. Each folder below it holds the tests of one subject.
package acceptance
