// Package docs has the guides and what they show as files, which the console serves. It renders nothing.
package docs

import "embed"

// Files are the pages, with the pictures and examples that they link to.
//
//go:embed *.md *.yaml adr clients console contract examples ratelimit risk sign-in
var Files embed.FS
