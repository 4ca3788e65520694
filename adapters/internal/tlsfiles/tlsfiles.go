// Package tlsfiles makes TLS configurations from files: that of a listener, which follows changes
// of its files, and that of connections to other servers.
package tlsfiles
