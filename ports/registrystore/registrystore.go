// Package registrystore is the port to the records of the registry: the published versions of
// servers, the grants that allow people to change them, the policies that allow publishing without
// a person, and the views that show a part. The rules about them are in core/registry.
//
// All methods are safe for concurrent use and return fault.Unavailable when the database is not
// available.
//
// [github.com/tollgate-dev/tollgate/ports/registrystore/registrystoretest] has the contract tests.
package registrystore
