// Package toollist reads the tool list of a server as a client of MCP: from a remote, or from a package that it starts
// (contract W-2). ReadRemote and ReadProgram are for the machine of a person or a job: they dial any address, and start
// what they are given. The service has an Asker, which connects to public addresses only.
package toollist

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/tools"
)

// How long a server may take in all.
const (
	RemoteTimeout  = 15 * time.Second
	PackageTimeout = time.Minute // its download, too
)

// Bounds of what a server may send.
const (
	maxPages = 20      // of each of tools, prompts and resource templates
	maxBytes = 4 << 20 // in all
)

// implementation is how servers see the client. It has no version, so that no server shows a list by it.
var implementation = &mcp.Implementation{Name: "tollgate", Version: "1"}

// readList connects and reads the list. tapped is the transport, through tap.
func readList(ctx context.Context, tapped *tap) (tools.List, error) {
	session, err := connect(ctx, tapped)
	if err != nil {
		return tools.List{}, err
	}
	defer func() { _ = session.Close() }() // everything was read, or it fails anyway
	return readSession(ctx, session, tapped)
}

func connect(ctx context.Context, tapped *tap) (*mcp.ClientSession, error) {
	client := mcp.NewClient(implementation, &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{}})
	session, err := client.Connect(ctx, tapped, nil)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return session, nil
}

// reading is the read of one list.
type reading struct {
	tapped *tap
	size   int
	items  map[string][]json.RawMessage // by the members of the list
}

// readSession reads all pages of what the server says that it has.
func readSession(ctx context.Context, s *mcp.ClientSession, tapped *tap) (tools.List, error) {
	began := s.InitializeResult()
	has := began.Capabilities
	if has == nil {
		has = &mcp.ServerCapabilities{}
	}
	r := reading{tapped: tapped, items: map[string][]json.RawMessage{}}
	for _, part := range []struct {
		member string
		has    bool
		read   func(cursor string) (next string, err error)
	}{
		{"tools", has.Tools != nil, func(cursor string) (string, error) {
			page, err := s.ListTools(ctx, &mcp.ListToolsParams{Cursor: cursor})
			if err != nil {
				return "", fmt.Errorf("read tools: %w", err)
			}
			return page.NextCursor, nil
		}},
		{"prompts", has.Prompts != nil, func(cursor string) (string, error) {
			page, err := s.ListPrompts(ctx, &mcp.ListPromptsParams{Cursor: cursor})
			if err != nil {
				return "", withoutMissing(fmt.Errorf("read prompts: %w", err))
			}
			return page.NextCursor, nil
		}},
		{"resourceTemplates", has.Resources != nil, func(cursor string) (string, error) {
			page, err := s.ListResourceTemplates(ctx, &mcp.ListResourceTemplatesParams{Cursor: cursor})
			if err != nil {
				return "", withoutMissing(fmt.Errorf("read resource templates: %w", err))
			}
			return page.NextCursor, nil
		}},
	} {
		r.items[part.member] = []json.RawMessage{}
		if !part.has {
			continue
		}
		if err := r.readPages(part.member, part.read); err != nil {
			return tools.List{}, err
		}
	}
	return r.toList(began.Instructions)
}

// errMissing is the error of a read of what a server says that it has, and has not: many have resources, and no
// templates.
var errMissing = errors.New("the server does not have this list")

func withoutMissing(err error) error {
	var refused *jsonrpc.Error
	if errors.As(err, &refused) && refused.Code == jsonrpc.CodeMethodNotFound {
		return errMissing
	}
	return err
}

// readPages reads all pages of a list. read reads the page at a cursor and returns the next cursor.
func (r *reading) readPages(member string, read func(cursor string) (next string, err error)) error {
	cursor := ""
	for range maxPages {
		next, err := read(cursor)
		if errors.Is(err, errMissing) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := r.add(member); err != nil {
			return err
		}
		if next == "" {
			return nil
		}
		cursor = next
	}
	return fmt.Errorf("it has more than %d pages of %s", maxPages, member)
}

// add adds the items of the last answer, as the server has written them: the types of the SDK add hints.
func (r *reading) add(member string) error {
	answer := r.tapped.result()
	r.size += len(answer)
	if r.size > tools.MaxBody {
		return fmt.Errorf("its list has more than %d bytes", tools.MaxBody)
	}
	var page map[string]json.RawMessage
	if err := json.Unmarshal(answer, &page); err != nil {
		return fmt.Errorf("read %s: %w", member, err)
	}
	var items []json.RawMessage
	if page[member] != nil {
		if err := json.Unmarshal(page[member], &items); err != nil {
			return fmt.Errorf("read %s: %w", member, err)
		}
	}
	r.items[member] = append(r.items[member], items...)
	if len(r.items[member]) > tools.MaxTools {
		return fmt.Errorf("it has more than %d %s", tools.MaxTools, member)
	}
	return nil
}

func (r *reading) toList(instructions string) (tools.List, error) {
	all := map[string]any{"instructions": instructions}
	if instructions == "" {
		delete(all, "instructions")
	}
	for member, items := range r.items {
		all[member] = items
	}
	text, err := json.Marshal(all)
	if err != nil {
		return tools.List{}, fmt.Errorf("write the list: %w", err)
	}
	return tools.Parse(text)
}

// tap is a transport that keeps the result of the last call as the server has written it.
type tap struct {
	mcp.Transport

	mu      sync.Mutex
	call    jsonrpc.ID
	last    json.RawMessage
	version string // of the protocol, after the first answer
}

// Connect implements [mcp.Transport].
func (t *tap) Connect(ctx context.Context) (mcp.Connection, error) { //nolint:ireturn // the interface of the SDK
	c, err := t.Transport.Connect(ctx)
	if err != nil {
		return nil, err //nolint:wrapcheck // the SDK wraps it
	}
	return tappedConnection{c, t}, nil
}

func (t *tap) result() json.RawMessage {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last
}

// protocolVersion returns the version that the server chose; empty before that.
func (t *tap) protocolVersion() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.version
}

// tappedConnection is a connection of tap.
type tappedConnection struct {
	mcp.Connection

	tap *tap
}

// Write implements [mcp.Connection].
func (c tappedConnection) Write(ctx context.Context, m jsonrpc.Message) error {
	if r, ok := m.(*jsonrpc.Request); ok && r.IsCall() {
		c.tap.mu.Lock()
		c.tap.call, c.tap.last = r.ID, nil
		c.tap.mu.Unlock()
	}
	return c.Connection.Write(ctx, m) //nolint:wrapcheck // the SDK looks at its own errors
}

// Read implements [mcp.Connection].
func (c tappedConnection) Read(ctx context.Context) (jsonrpc.Message, error) { //nolint:ireturn // as in the SDK
	m, err := c.Connection.Read(ctx)
	if r, ok := m.(*jsonrpc.Response); ok {
		c.tap.keep(r)
	}
	return m, err //nolint:wrapcheck // the SDK looks at its own errors
}

func (t *tap) keep(r *jsonrpc.Response) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r.ID != t.call {
		return
	}
	t.last = r.Result
	var began struct {
		ProtocolVersion string `json:"protocolVersion"`
	}
	if t.version == "" && json.Unmarshal(r.Result, &began) == nil {
		t.version = began.ProtocolVersion
	}
}

// explain returns the error of a read: it names the server and says what is wrong with it.
func explain(ctx context.Context, server string, timeout time.Duration, err error) error {
	if err == nil {
		return nil
	}
	f, ok := fault.As(err)
	switch {
	case ok: // of a list that is none
		return fault.Wrap(fault.Unavailable, server+": "+f.Message, err).WithCode(fault.UpstreamWrong)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fault.Wrap(fault.Unavailable, fmt.Sprintf("%s does not answer within %s", server, timeout), err).WithCode(fault.UpstreamSlow)
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return fault.Wrap(fault.Unavailable, server+": "+err.Error(), err).WithCode(fault.UpstreamWrong)
}
