// Package remotetools is the port to what a remote shows to a model.
package remotetools

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/tools"
)

// Question is what a remote is asked with.
type Question struct {
	URL     registry.RemoteURL
	Headers map[string]string // of which errors have no value
}

// Asker queries remotes. It is safe for concurrent use.
type Asker interface {
	// Ask connects as a client of MCP, by streamable HTTP, then with server-sent events, and returns the
	// list. It connects to public addresses and to networks that the operator allows, directly, follows no
	// redirect to another host, and takes at most 15 seconds and 4 MiB. It sends headers only to the host
	// of the URL, and in plain only to this machine.
	//
	// For a remote whose list cannot be read it returns fault.Unavailable with a sentence that names the
	// remote and what is wrong with it, and the code fault.UpstreamSlow if there was no answer in time,
	// otherwise fault.UpstreamWrong. Text of the remote in it has no characters that are not seen. If the
	// context has ended, it returns the error of that.
	Ask(ctx context.Context, q Question) (tools.List, error)
}
