// Package authstore is the port to the records of authentication: accounts, sessions, devices,
// step-up challenges, pending logins, lockouts, the audit log and the shared keys. A store keeps
// and finds records; the rules about them are in core/auth.
//
// All methods of all stores are safe for concurrent use. Unless a store says otherwise, they join
// the transaction that the context carries (ports/transaction), return fault.Unavailable when the
// database is not available, and the context's error when it has ended. A missing record is
// fault.NotFound.
//
// An Update method reads a record, calls change with it and stores the result. No other Update of
// the same record takes place in between, on any instance. When change returns an error, nothing is
// stored and Update returns that error. change may be called more than once.
//
// [github.com/tollgate-dev/tollgate/ports/authstore/authstoretest] has the contract tests that
// every implementation passes.
package authstore

// Changes returns a number that is another one after each change by this process of who may do what: of
// an account, its credentials, tokens or grants, and of an access rule. It does no I/O.
type Changes func() uint64
