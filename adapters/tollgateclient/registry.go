package tollgateclient

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
)

// Issue is one finding of a validation (contract R-55).
type Issue struct {
	Type      string `json:"type"`
	Path      string `json:"path"`
	Message   string `json:"message"`
	Severity  string `json:"severity"`
	Reference string `json:"reference"`
}

// Verdict is what validation says of a document.
type Verdict struct {
	Valid  bool    `json:"valid"`
	Issues []Issue `json:"issues"`
}

// Validate asks what publishing would say of a document's form. It needs no session.
func (c *Client) Validate(ctx context.Context, document []byte) (Verdict, error) {
	var v Verdict
	_, err := c.send(ctx, call{method: http.MethodPost, path: "/v0.1/validate", body: json.RawMessage(document), member: "valid"}, &v)
	return v, err
}

// Record is a version of a server as the registry lists it. Times are as the service writes them.
type Record struct {
	Name    string
	Version string
	RegistryMeta
}

// Standing is what the registry itself says of a version (contract R-2).
type RegistryMeta struct {
	Status          string `json:"status"`
	StatusMessage   string `json:"statusMessage"`
	StatusChangedAt string `json:"statusChangedAt"`
	PublishedAt     string `json:"publishedAt"`
	UpdatedAt       string `json:"updatedAt"`
	IsLatest        bool   `json:"isLatest"`
}

// The members that answers about servers have.
const (
	oneServer   = "server"
	manyServers = "servers"
)

// recordAnswer is a ServerResponse (contract R-2).
type recordAnswer struct {
	Server struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	} `json:"server"`
	Meta struct {
		Official RegistryMeta `json:"io.modelcontextprotocol.registry/official"`
	} `json:"_meta"`
}

func (a recordAnswer) toRecord() Record {
	return Record{a.Server.Name, a.Server.Version, a.Meta.Official}
}

type listAnswer struct {
	Servers []recordAnswer `json:"servers"`
}

func (a listAnswer) toRecords() []Record {
	list := make([]Record, 0, len(a.Servers))
	for _, one := range a.Servers {
		list = append(list, one.toRecord())
	}
	return list
}

// Publish publishes a document.
func (c *Client) Publish(ctx context.Context, token string, document []byte) (Record, error) {
	var a recordAnswer
	_, err := c.send(ctx, call{
		method: http.MethodPost, path: "/v0.1/publish", token: token, body: json.RawMessage(document), member: oneServer,
	}, &a)
	return a.toRecord(), err
}

// Versions returns all versions of a server, newest publication first, deleted ones too.
func (c *Client) ListVersions(ctx context.Context, name string) ([]Record, error) {
	var a listAnswer
	_, err := c.send(ctx, call{
		method: http.MethodGet, path: serverPath(name) + "/versions", query: withDeleted(), maxBytes: maxList, member: manyServers,
	}, &a)
	return a.toRecords(), err
}

// Version returns one version of a server, a deleted one too; latest stands for the latest.
func (c *Client) GetVersion(ctx context.Context, name, version string) (Record, error) {
	var a recordAnswer
	_, err := c.send(ctx, call{method: http.MethodGet, path: versionPath(name, version), query: withDeleted(), member: oneServer}, &a)
	return a.toRecord(), err
}

// StatusChange is a status to set.
type StatusChange struct {
	Name    string
	Version string // empty for all versions
	Status  string
	Message string // empty for none
}

// SetStatus changes the status of one version, or of all at once, and returns those that changed.
func (c *Client) SetStatus(ctx context.Context, token string, s StatusChange) ([]Record, error) {
	body := map[string]string{"status": s.Status}
	if s.Message != "" {
		body["statusMessage"] = s.Message
	}
	in := call{method: http.MethodPatch, path: serverPath(s.Name) + "/status", token: token, body: body, maxBytes: maxList, member: manyServers}
	if s.Version == "" {
		var all listAnswer
		_, err := c.send(ctx, in, &all)
		return all.toRecords(), err
	}
	var one recordAnswer
	in.path, in.member = versionPath(s.Name, s.Version)+"/status", oneServer
	if _, err := c.send(ctx, in, &one); err != nil {
		return nil, err
	}
	return []Record{one.toRecord()}, nil
}

func serverPath(name string) string { return "/v0.1/servers/" + url.PathEscape(name) }

func versionPath(name, version string) string {
	return serverPath(name) + "/versions/" + url.PathEscape(version)
}

func withDeleted() url.Values { return url.Values{"include_deleted": {"true"}} }

// Readiness is whether a service can do its work, and what it depends on, by name: ok or down.
type Readiness struct {
	Status       string            `json:"status"`
	Dependencies map[string]string `json:"dependencies"`
}

// Ready looks at the service. One that answers that it is not ready is no failure of the call.
func (c *Client) GetReadiness(ctx context.Context) (Readiness, error) {
	var r Readiness
	_, err := c.send(ctx, call{method: http.MethodGet, path: "/ready", otherStatus: http.StatusServiceUnavailable, member: "status"}, &r)
	return r, err
}
