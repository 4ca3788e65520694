// Package httpconn has what the HTTP listeners share below the requests: accepting connections
// within a bound, refusing ambiguous requests, and reading the trace of a request from its header.
package httpconn
