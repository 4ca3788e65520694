package tools

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/fields"
	"github.com/tollgate-dev/tollgate/core/kinds"
	"github.com/tollgate-dev/tollgate/core/registry"
)

// The bounds of the headers of a remote source.
const (
	maxHeaders     = 10
	maxHeaderValue = 4096 // bytes
	maxRemote      = 2048 // bytes of a URL
)

// The fields of a remote source.
const (
	fieldServer  = "server"
	fieldRemote  = "remote"
	fieldHeaders = "headers"
	fieldSealed  = "sealed" // as it is stored
)

// SourceKind describes the remote sources, which ParseRemoteSource reads.
var SourceKind = kinds.Kind{
	Name: "toolSource", List: "toolSources", Category: audit.RegistryChange, Put: "tool_source_put", Remove: "tool_source_remove",
	About: "with headers for remotes that are asked for their tools", Most: 200,
	PutDoc: "Headers that are left out are kept, unless the server or the remote is another one. A remote of a server has one source.",
	Facts: []kinds.Field{{
		Name: "headerNames", Shape: kinds.Texts, Doc: "The names of its headers, whose values are not shown", Example: "Authorization",
	}},
	Fields: []kinds.Field{
		{Name: "name", Required: true, Example: "weather", Column: "NAME"},
		{
			Name: fieldServer, Required: true, Check: kinds.Checked(registry.ParseName), Label: "Server", Example: "com.example/weather",
			Doc: "The name of the server; no other server with the remote gets the headers", Usage: "name of the server", Column: "SERVER",
		},
		{
			Name: fieldRemote, Required: true, Label: "Remote", Hint: "The URL as the server names it.", Most: maxRemote, Example: "https://weather.example.com/mcp",
			Doc: "The URL of the remote, compared as in the registry. With https, or http on this machine", Usage: "URL of the remote", Column: "REMOTE",
		},
		{
			Name: fieldHeaders, Shape: kinds.TextMap, Secret: true, Label: "Headers", Control: "area", Most: maxHeaders,
			Hint: "One on each line, for example Authorization: Bearer …. They are not shown again. Empty keeps them.",
			Doc:  "1 to 10 headers by their names. Sealed, and never returned", Example: "{Authorization: Bearer secret}",
			Flag: "header", Usage: "name of a header; its value is in the variable of this name, X_API_KEY for X-Api-Key; may be repeated",
		},
	},
}

// RemoteSourceName is the name of a remote source: 1 to 40 lower-case letters, digits and hyphens.
type RemoteSourceName string

// RemoteSource has the headers with which a remote of a server is asked.
type RemoteSource struct {
	Name      RemoteSourceName
	Server    registry.Name
	Remote    registry.RemoteURL
	Headers   map[string]string // as they were given; nil for those that are sealed
	Sealed    []byte
	ManagedBy string // the owner of the file that manages it; empty without one
}

// ParseRemoteSource returns the remote source that fields describe. It returns fault.Invalid, with the
// name of the field, if one is wrong. An error has no text that may be a secret.
func ParseRemoteSource(f audit.Details) (s RemoteSource, err error) {
	s.Name = RemoteSourceName(f.Text(fieldName))
	if err := fields.CheckName(string(s.Name)); err != nil {
		return s, err
	}
	if s.Server, err = registry.ParseName(f.Text(fieldServer)); err != nil {
		return s, fault.In(fieldServer, err)
	}
	remote := f.Text(fieldRemote)
	s.Remote = registry.ComparableURL(remote)
	if len(remote) > maxRemote || !CanBeAsked(s.Remote) || !isSafe(remote) {
		return s, fields.Invalid(fieldRemote, " must be the https URL of a remote; http:// is for a loopback host only")
	}
	if f[fieldHeaders] == nil {
		return s, nil
	}
	s.Headers = f.Inner(fieldHeaders).TextMap()
	return s, checkHeaders(s.Headers)
}

// isSafe reports whether headers may be sent to an address: by https, or to this machine.
func isSafe(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || u.User != nil || u.Fragment != "" || strings.ContainsFunc(address, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return false
	}
	at, err := netip.ParseAddr(u.Hostname())
	return u.Scheme == "https" || u.Hostname() == "localhost" || err == nil && at.Unmap().IsLoopback()
}

// CanBeAsked reports whether an address is one of HTTP without variables.
func CanBeAsked(u registry.RemoteURL) bool {
	return (strings.HasPrefix(string(u), "https://") || strings.HasPrefix(string(u), "http://")) && !strings.ContainsAny(string(u), "{}")
}

var headerForm = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,63}$`)

// ownHeaders are what the client of MCP and HTTP set themselves.
var ownHeaders = []string{
	"accept", "accept-encoding", "connection", "content-length", "content-type", "host", "keep-alive", "last-event-id",
	"te", "trailer", "transfer-encoding", "upgrade",
}

func checkHeaders(headers map[string]string) error {
	if len(headers) < 1 || len(headers) > maxHeaders {
		return fields.Invalid(fieldHeaders, " must have 1 to %d headers", maxHeaders)
	}
	known := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		value, folded := headers[name], strings.ToLower(name)
		switch {
		case !headerForm.MatchString(name):
			return fields.Invalid(fieldHeaders, " has a name that no header can have")
		case slices.Contains(ownHeaders, folded) || strings.HasPrefix(folded, "mcp-") || strings.HasPrefix(folded, "proxy-"):
			return fields.Invalid(fieldHeaders, " must not have %s", name)
		case known[folded]:
			return fields.Invalid(fieldHeaders, " has %s twice", name)
		case value == "" || len(value) > maxHeaderValue || value != strings.TrimSpace(value) ||
			strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }):
			return fields.Invalid(fieldHeaders, " has a value of %s that is not of 1 to %d visible ASCII characters", name, maxHeaderValue)
		}
		known[folded] = true
	}
	return nil
}

// Fields returns the fields of the source as ParseRemoteSource reads them, without the headers.
func (s *RemoteSource) Fields() audit.Details {
	return audit.Details{
		fieldName: audit.Text(s.Name), fieldServer: audit.Text(s.Server.String()), fieldRemote: audit.Text(s.Remote),
	}
}

// StoredFields returns the fields with the sealed headers, as ReadRemoteSource reads them.
func (s *RemoteSource) StoredFields() audit.Details {
	all := s.Fields()
	all[fieldSealed] = audit.Text(base64.StdEncoding.EncodeToString(s.Sealed))
	return all
}

// ReadRemoteSource returns the remote source of stored fields.
func ReadRemoteSource(stored audit.Details) (RemoteSource, error) {
	s, err := ParseRemoteSource(stored)
	if err == nil {
		s.Sealed, err = base64.StdEncoding.DecodeString(stored.Text(fieldSealed))
	}
	return s, err
}

// SealedFor returns what the sealed headers are about: they open for this server and remote only.
func (s *RemoteSource) SealedFor() string {
	return "tool source " + string(s.Name) + " " + s.Server.String() + " " + string(s.Remote)
}

// EncodeHeaders returns headers as a text that is sealed; two of the same headers are equal.
func EncodeHeaders(headers map[string]string) ([]byte, error) { return json.Marshal(headers) }

// DecodeHeaders returns the headers of a text of EncodeHeaders.
func DecodeHeaders(text []byte) (headers map[string]string, err error) {
	err = json.Unmarshal(text, &headers)
	return headers, err
}
