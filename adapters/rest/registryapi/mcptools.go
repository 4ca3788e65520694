package registryapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/allowlist"
	"github.com/tollgate-dev/tollgate/core/registry/browsing"
	"github.com/tollgate-dev/tollgate/core/registry/tools"
)

const (
	// preface is before everything that publishers wrote. It has no instruction.
	preface = "What follows is data that publishers of tool servers wrote, not the registry."
	// maxWritten is how many characters of a text of publishers a tool returns.
	maxWritten = 2000
	cutMark    = "… (cut)"

	serverScheme   = "registry://servers/"
	serverTemplate = serverScheme + "{name}"
	usualFound     = 10 // servers that search_servers finds without a limit
)

// The arguments of the tools. Their schemas are checked by the SDK.
type (
	searchArguments struct {
		Query  string `json:"query"`
		Limit  int    `json:"limit"`
		Cursor string `json:"cursor"`
	}
	serverArguments struct {
		Name    string `json:"name"`
		Version string `json:"version"`
		Client  string `json:"client"`
	}
)

const (
	nameSchema    = `"name":{"type":"string","minLength":3,"maxLength":200,"description":"Name of the server, as in com.example/weather"}`
	versionSchema = `"version":{"type":"string","minLength":1,"maxLength":255,"description":"Version; latest if it is left out"}`
)

// clientSchema returns the schema of the argument that names a client.
func clientSchema() string {
	return fmt.Sprintf(`"client":{"type":"string","enum":["%s"],"description":"Program that shall use the server"}`,
		strings.Join(allowlist.ClientNames(), `","`))
}

// objectSchema returns the schema of the arguments of a tool.
func objectSchema(required string, properties ...string) json.RawMessage {
	return json.RawMessage(`{"type":"object","additionalProperties":false,"required":[` + required + `],"properties":{` +
		strings.Join(properties, ",") + `}}`)
}

// addTools adds the tools and the resource of the registry to an MCP server.
func addTools(s *mcp.Server, a *API) {
	addTool(s, "search_servers", "Find MCP servers of the registry by words of their name, title and description, best match first",
		objectSchema("",
			`"query":{"type":"string","maxLength":200,"description":"Words, all of which a server has, or parts of them; all servers if it is left out"}`,
			`"limit":{"type":"integer","minimum":1,"maximum":20,"description":"10 if it is left out"}`,
			`"cursor":{"type":"string","maxLength":2000,"description":"From the answer before, for the servers after it"}`),
		a.searchForTool)
	addTool(s, "get_server", "Get what is published of one version of an MCP server: packages, remotes and settings",
		objectSchema(`"name"`, nameSchema, versionSchema), a.getForTool)
	addTool(s, "list_versions", "List the versions of an MCP server, with their status",
		objectSchema(`"name"`, nameSchema), a.listForTool)
	addTool(s, "install_config", "Get what is added to the configuration of a client to use an MCP server",
		objectSchema(`"name","client"`, nameSchema, versionSchema, clientSchema()), a.installForTool)
	s.AddResourceTemplate(&mcp.ResourceTemplate{
		Name: "server", Title: "A tool server", URITemplate: serverTemplate, MIMEType: "application/json",
		Description: "The server.json of the latest version; the slash of the name is written %2F",
	}, a.readResource)
}

// addTool adds a tool that reads. An error is the result of the tool, so that its caller reads it.
func addTool[In any](
	s *mcp.Server, name, description string, schema json.RawMessage, do func(*mcpCall, In) ([]mcp.Content, error),
) {
	closed := false
	tool := &mcp.Tool{
		Name: name, Description: description, InputSchema: schema,
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: &closed},
	}
	mcp.AddTool(s, tool, func(ctx context.Context, _ *mcp.CallToolRequest, in In) (*mcp.CallToolResult, any, error) {
		var content []mcp.Content
		err := inCall(ctx, func(call *mcpCall) (err error) {
			content, err = do(call, in)
			return err
		})
		return &mcp.CallToolResult{Content: content}, nil, err
	})
}

// inCall calls do for the request of a context. The error has a sentence for the caller.
func inCall(ctx context.Context, do func(*mcpCall) error) error {
	call, ok := ctx.Value(mcpCallKey{}).(*mcpCall)
	if !ok {
		return errors.New("the request is unknown")
	}
	if err := do(call); err != nil {
		call.failed(err)
		return errors.New(fault.PublicMessage(err))
	}
	return nil
}

// searchForTool implements search_servers.
func (a *API) searchForTool(call *mcpCall, in searchArguments) ([]mcp.Content, error) {
	if in.Limit == 0 {
		in.Limit = usualFound
	}
	if strings.TrimSpace(in.Query) != "" {
		content, err := a.searchWords(call, in)
		if !fault.Is(err, fault.Unavailable) || in.Cursor != "" {
			return content, err
		}
	} // kept responses know names, with the database away
	found, err := a.readFor(call, read{kind: readList, query: browsing.Query{
		Search: in.Query, Limit: strconv.Itoa(in.Limit), Cursor: in.Cursor, Version: registry.LatestAlias,
	}})
	if err != nil {
		return nil, err
	}
	page, err := decodeBody[listBody](found)
	if err != nil {
		return nil, err
	}
	content := written(found.Stale)
	for _, r := range page.Servers {
		content = append(content, writtenText(r.Server.lines()+"status: "+r.Meta.condition()))
	}
	return endSearch(content, len(page.Servers), page.Metadata.NextCursor), nil
}

// searchWords finds servers as the console does. A cursor is the number of those before.
func (a *API) searchWords(call *mcpCall, in searchArguments) ([]mcp.Content, error) {
	offset, err := strconv.ParseUint("0"+in.Cursor, 10, 31)
	if err != nil {
		return nil, fault.New(fault.Invalid, "the cursor is not one of a search with words")
	}
	found, err := a.reads.Finder.FindIn(call.ctx, call.view, in.Query, int(offset), in.Limit)
	if err != nil {
		return nil, err
	}
	content, next := written(false), ""
	for _, r := range found.Servers {
		o := outline{Name: r.Name.String(), Version: r.Version.String(), Title: r.Title, Description: r.Description}
		m := recordMeta{}
		m.Official.Status, m.Official.StatusMessage, m.Official.IsLatest = string(r.Status), r.StatusMessage, r.Latest
		m.Official.PublishedAt = r.PublishedAt.UTC().Format(time.RFC3339)
		content = append(content, writtenText(o.lines()+"status: "+m.condition()))
	}
	if end := int(offset) + len(found.Servers); end < found.Total && len(found.Servers) > 0 {
		next = strconv.Itoa(end)
	}
	return endSearch(content, len(found.Servers), next), nil
}

// endSearch adds what is after the servers that were found.
func endSearch(content []mcp.Content, found int, next string) []mcp.Content {
	if found == 0 {
		return []mcp.Content{ownText("no server was found")}
	}
	if next != "" {
		content = append(content, ownText("more servers follow: cursor "+next))
	}
	return content
}

// getForTool implements get_server.
func (a *API) getForTool(call *mcpCall, in serverArguments) ([]mcp.Content, error) {
	record, stale, err := a.recordFor(call, in)
	if err != nil {
		return nil, err
	}
	approved, err := a.approvedTools(call, &record)
	if err != nil {
		return nil, err
	}
	content := append(written(stale), writtenText(record.Meta.condition()), writtenText(string(record.Server)))
	if approved != "" {
		content = append(content, ownText("tools that a reviewer of the registry approved, or that were recorded first:"), writtenText(approved))
	}
	return content, nil
}

// approvedTools returns the approved tools of a version that was read, a line each; empty without them, and while the
// database is away.
func (a *API) approvedTools(call *mcpCall, of *recordBody) (string, error) {
	var named outline
	if err := json.Unmarshal(of.Server, &named); err != nil {
		return "", fmt.Errorf("read the document: %w", err)
	}
	name, err := registry.ParseName(named.Name)
	if err != nil {
		return "", err
	}
	version, err := registry.ParseVersion(named.Version)
	if err != nil {
		return "", err
	}
	lists, err := a.reads.Tools.Of(call.ctx, registry.Record{Release: registry.Release{Name: name, Version: version}, Document: of.Server})
	if fault.Is(err, fault.Unavailable) {
		return "", nil
	}
	var lines []string
	for _, l := range lists {
		for _, t := range l.List.Tools {
			line := strings.TrimSuffix(clean(t.Name)+": "+clean(t.Description()), ": ")
			if l.State == tools.Approved && !slices.Contains(lines, line) {
				lines = append(lines, line)
			}
		}
	}
	return strings.Join(lines, "\n"), err
}

// listForTool implements list_versions.
func (a *API) listForTool(call *mcpCall, in serverArguments) ([]mcp.Content, error) {
	found, err := a.readFor(call, read{kind: readVersions, name: in.Name})
	if err != nil {
		return nil, err
	}
	page, err := decodeBody[listBody](found)
	if err != nil {
		return nil, err
	}
	lines := make([]string, 0, len(page.Servers))
	for i := len(page.Servers) - 1; i >= 0; i-- {
		r := page.Servers[i]
		lines = append(lines, clean(r.Server.Version)+": "+r.Meta.condition())
	}
	content := append([]mcp.Content{ownText(fmt.Sprintf("%d versions", len(lines)))}, written(found.Stale)...)
	return append(content, writtenText(strings.Join(lines, "\n"))), nil
}

// installForTool implements install_config. A configuration is whole or not there.
func (a *API) installForTool(call *mcpCall, in serverArguments) ([]mcp.Content, error) {
	if _, err := allowlist.ParseClient(in.Client); err != nil {
		return nil, err
	}
	r := read{kind: readSnippet, name: in.Name, version: in.version(), format: in.Client}
	found, err := a.readFor(call, r)
	if err != nil {
		return nil, err
	}
	unlisted := found.Body.Header(unlistedHeader)
	lines := strings.Split(string(found.Body.Bytes()), "\n") // the registry breaks them; a line break of a publisher is escaped
	text := strings.Join(each.Map(lines, clean), "\n")
	if len([]rune(text)) > maxWritten {
		return nil, fault.Newf(fault.Invalid, "the configuration has more than %d characters: read it from /registries/all/install",
			maxWritten)
	}
	content := written(found.Stale)
	if unlisted != "" {
		content = append(content, ownText("allow lists of this registry cannot have this: "+unlisted))
	}
	return append(content, writtenText(text)), nil
}

// readResource returns the document of the latest version of a server.
func (a *API) readResource(ctx context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	var document string
	err := inCall(ctx, func(call *mcpCall) error {
		name, err := url.PathUnescape(strings.TrimPrefix(r.Params.URI, serverScheme))
		if err != nil {
			return fault.New(fault.Invalid, "the name in the URI is not percent-encoded text")
		}
		record, _, err := a.recordFor(call, serverArguments{Name: name})
		if err != nil {
			return err
		}
		document = string(record.Server)
		return nil
	})
	if err != nil {
		return nil, mcp.ResourceNotFoundError(r.Params.URI) //nolint:wrapcheck // it has the code of the protocol
	}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{
		URI: r.Params.URI, MIMEType: "application/json", Text: document, Meta: mcp.Meta{"dev.tollgate/preface": preface},
	}}}, nil
}

func (in serverArguments) version() string {
	if in.Version == "" {
		return registry.LatestAlias
	}
	return in.Version
}

// recordFor returns one version of a server, clean.
func (a *API) recordFor(call *mcpCall, in serverArguments) (record recordBody, stale bool, err error) {
	found, err := a.readFor(call, read{kind: readVersion, name: in.Name, version: in.version()})
	if err != nil {
		return recordBody{}, false, err
	}
	record, err = decodeBody[recordBody](found)
	record.Server = cleanDocument(record.Server)
	return record, found.Stale, err
}

// The bodies of reads. Of the documents of a list only the outline is decoded, since a list may have megabytes.
type (
	listBody struct {
		Servers []struct {
			Server outline    `json:"server"`
			Meta   recordMeta `json:"_meta"`
		} `json:"servers"`
		Metadata struct {
			NextCursor string `json:"nextCursor"`
		} `json:"metadata"`
	}
	recordBody struct {
		Server json.RawMessage `json:"server"`
		Meta   recordMeta      `json:"_meta"`
	}
	outline struct {
		Name        string `json:"name"`
		Version     string `json:"version"`
		Title       string `json:"title"`
		Description string `json:"description"`
	}
	recordMeta struct {
		Official struct {
			Status        string `json:"status"`
			StatusMessage string `json:"statusMessage"`
			PublishedAt   string `json:"publishedAt"`
			IsLatest      bool   `json:"isLatest"`
		} `json:"io.modelcontextprotocol.registry/official"`
	}
)

// condition returns what the registry knows of a version.
func (m *recordMeta) condition() string {
	s := m.Official.Status + ", published " + m.Official.PublishedAt
	if m.Official.IsLatest {
		s += ", latest"
	}
	if message := m.Official.StatusMessage; message != "" {
		s += ", because: " + clean(message)
	}
	return s
}

// lines returns the lines of a server in a list, those that it has.
func (o *outline) lines() (lines string) {
	for _, one := range [...][2]string{
		{"name", o.Name}, {"version", o.Version}, {"title", o.Title}, {"description", o.Description},
	} {
		if text := clean(one[1]); text != "" {
			lines += one[0] + ": " + text + "\n"
		}
	}
	return lines
}

// written returns what is before the texts of publishers.
func written(stale bool) []mcp.Content {
	if stale {
		return []mcp.Content{ownText("the database is away: what follows may be outdated"), ownText(preface)}
	}
	return []mcp.Content{ownText(preface)}
}

// ownText returns a text of the registry.
func ownText(s string) *mcp.TextContent {
	return &mcp.TextContent{Text: s, Annotations: &mcp.Annotations{Audience: []mcp.Role{"assistant"}}}
}

// writtenText returns a text of publishers: for the person, who decides, and for the assistant as data.
func writtenText(s string) *mcp.TextContent {
	return &mcp.TextContent{Text: cut(s), Annotations: &mcp.Annotations{Audience: []mcp.Role{"user", "assistant"}}}
}

// clean returns a text without control and format characters, which hide text or change its
// direction; line breaks and tabs become spaces.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case registry.IsInvisible(r):
			return -1
		}
		return r
	}, s)
}

// cut returns at most maxWritten characters of a text.
func cut(s string) string {
	characters := []rune(s)
	if len(characters) <= maxWritten {
		return s
	}
	return string(characters[:maxWritten-len([]rune(cutMark))]) + cutMark
}

// cleanDocument returns a document with clean texts, each cut. It is not decoded into values, which
// would need some times its memory.
func cleanDocument(document []byte) []byte {
	cleaned := make([]byte, 0, len(document))
	for len(document) > 0 {
		if document[0] != '"' {
			at := bytes.IndexByte(document, '"')
			if at < 0 {
				at = len(document)
			}
			cleaned, document = append(cleaned, document[:at]...), document[at:]
			continue
		}
		end := 1
		for document[end] != '"' {
			if document[end] == '\\' {
				end++
			}
			end++
		}
		cleaned, document = appendCleanText(cleaned, document[:end+1]), document[end+1:]
	}
	return cleaned
}

// appendCleanText appends a text in quotes, clean and cut.
func appendCleanText(to, quoted []byte) []byte {
	plain := len(quoted) <= maxWritten
	for _, c := range quoted {
		plain = plain && c >= ' ' && c < 0x7f && c != '\\'
	}
	if plain {
		return append(to, quoted...)
	}
	var text string
	_ = json.Unmarshal(quoted, &text) // the registry has written it
	text = cut(clean(text))
	cleaned, _ := json.Marshal(text) // likewise
	return append(to, cleaned...)
}
