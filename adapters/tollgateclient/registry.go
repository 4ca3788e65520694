package tollgateclient

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"

	"github.com/tollgate-dev/tollgate/adapters/internal/urlorigin"
	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// Issue is one problem that a validation found (contract R-55).
type Issue struct {
	Type      string `json:"type"`
	Path      string `json:"path"`
	Message   string `json:"message"`
	Severity  string `json:"severity"`
	Reference string `json:"reference"`
}

// Verdict is the result of a validation.
type Verdict struct {
	Valid  bool    `json:"valid"`
	Issues []Issue `json:"issues"`
}

// Validate checks a document against the rules of the registry. It needs no session.
func (c *Client) Validate(ctx context.Context, document []byte) (Verdict, error) {
	var v Verdict
	_, err := c.send(ctx, call{
		method: http.MethodPost, path: "/v0.1/validate", body: json.RawMessage(document), member: "valid",
	}, &v)
	return v, err
}

// Record is a version of a server as the registry lists it. Times keep the format of the service.
type Record struct {
	Name    string
	Version string
	RegistryMeta
	Review      string // the ID of the review that the document waits for; empty if it is listed
	Title       string
	Description string
}

// RegistryMeta is the metadata that the registry adds to a version (contract R-2).
type RegistryMeta struct {
	Status          string `json:"status"`
	StatusMessage   string `json:"statusMessage"`
	StatusChangedAt string `json:"statusChangedAt"`
	PublishedAt     string `json:"publishedAt"`
	UpdatedAt       string `json:"updatedAt"`
	IsLatest        bool   `json:"isLatest"`
}

// Members of every response about servers.
const (
	oneServer   = "server"
	manyServers = "servers"
)

// recordAnswer is a ServerResponse (contract R-2).
type recordAnswer struct {
	Server struct {
		Name        string `json:"name"`
		Version     string `json:"version"`
		Title       string `json:"title"`
		Description string `json:"description"`
	} `json:"server"`
	Meta struct {
		Official RegistryMeta `json:"io.modelcontextprotocol.registry/official"`
		Review   struct {
			ID string `json:"id"`
		} `json:"dev.tollgate/review"`
	} `json:"_meta"`
}

func (a recordAnswer) toRecord() Record {
	s := a.Server
	return Record{s.Name, s.Version, a.Meta.Official, a.Meta.Review.ID, s.Title, s.Description}
}

type listAnswer struct {
	Servers []recordAnswer `json:"servers"`
}

func (a listAnswer) toRecords() []Record {
	return each.Map(a.Servers, recordAnswer.toRecord)
}

// ParseRecords returns the versions of a page of a list.
func ParseRecords(items json.RawMessage) ([]Record, error) {
	var a listAnswer
	if err := json.Unmarshal(items, &a.Servers); err != nil {
		return nil, fault.Wrap(fault.Internal, "the service lists servers in another form", err)
	}
	return a.toRecords(), nil
}

// Publish publishes a document.
func (c *Client) Publish(ctx context.Context, token string, document []byte) (Record, error) {
	var a recordAnswer
	_, err := c.send(ctx, call{
		method: http.MethodPost, path: "/v0.1/publish", token: token, body: json.RawMessage(document),
		member: oneServer,
	}, &a)
	return a.toRecord(), err
}

// ListVersions returns all versions of a server, including deleted ones, newest publication first.
// A public registry needs no token.
func (c *Client) ListVersions(ctx context.Context, token, name string) ([]Record, error) {
	var a listAnswer
	_, err := c.send(ctx, call{
		method: http.MethodGet, path: serverPath(name) + "/versions", query: withDeleted(), token: token,
		maxBytes: maxList, member: manyServers,
	}, &a)
	return a.toRecords(), err
}

// GetVersion returns one version of a server, even if it is deleted. The version latest means the
// latest one. A public registry needs no token.
func (c *Client) GetVersion(ctx context.Context, token, name, version string) (Record, error) {
	var a recordAnswer
	_, err := c.send(ctx, call{
		method: http.MethodGet, path: versionPath(name, version), query: withDeleted(), token: token, member: oneServer,
	}, &a)
	return a.toRecord(), err
}

// StatusChange is a change of the status of one version or of all versions.
type StatusChange struct {
	Name    string
	Version string // empty for all versions
	Status  string
	Message string // optional
}

// SetStatus changes the status of one version, or of all at once, and returns the changed versions.
func (c *Client) SetStatus(ctx context.Context, token string, s StatusChange) ([]Record, error) {
	body := map[string]string{"status": s.Status}
	if s.Message != "" {
		body["statusMessage"] = s.Message
	}
	in := call{
		method: http.MethodPatch, path: serverPath(s.Name) + "/status", token: token, body: body, maxBytes: maxList,
		member: manyServers,
	}
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

// Readiness is the state of a service and of its dependencies, by name: ok or down.
type Readiness struct {
	Status       string            `json:"status"`
	Dependencies map[string]string `json:"dependencies"`
}

// GetReadiness returns the readiness of the service. It returns no error if the service answers
// that it is not ready.
func (c *Client) GetReadiness(ctx context.Context) (Readiness, error) {
	var r Readiness
	_, err := c.send(ctx, call{
		method: http.MethodGet, path: "/ready", otherStatus: http.StatusServiceUnavailable, member: "status",
	}, &r)
	return r, err
}

// The methods of proofs by ID token.
const (
	OIDC       = "oidc"
	GitHubOIDC = "github-oidc"
)

// ExchangeIDToken returns a token of a publisher for an ID token (contract P-2). The method is OIDC
// or GitHubOIDC.
func (c *Client) ExchangeIDToken(ctx context.Context, method, idToken string) (string, error) {
	var a struct {
		Token string `json:"registry_token"`
	}
	_, err := c.send(ctx, call{
		method: http.MethodPost, path: "/v0.1/auth/" + method, body: map[string]string{"oidc_token": idToken},
		member: "registry_token",
	}, &a)
	return a.Token, err
}

// Audience returns the audience of ID tokens for the service: the origin of its address. It returns
// fault.Invalid if the address has no domain.
func (c *Client) Audience() (string, error) {
	audience, err := urlorigin.Of(c.base.String())
	if err != nil {
		return "", fault.Wrap(fault.Invalid, "the address of the service has no origin: "+err.Error(), err)
	}
	return audience, nil
}

// RequestGitHubToken requests an ID token for the service from GitHub Actions. The address and the
// token of the request are those that a job with the permission id-token: write has in its
// environment. It returns fault.Unavailable if it gets none.
func (c *Client) RequestGitHubToken(ctx context.Context, address, requestToken string) (string, error) {
	at, err := url.Parse(address)
	if err != nil || at.Host == "" {
		return "", fault.New(fault.Invalid, "the address in ACTIONS_ID_TOKEN_REQUEST_URL is not a URL")
	}
	audience, err := c.Audience()
	if err != nil {
		return "", err
	}
	query := at.Query()
	query.Set("audience", audience)
	at.RawQuery = query.Encode()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), http.NoBody)
	if err != nil {
		return "", fault.Wrap(fault.Invalid, "the address in ACTIONS_ID_TOKEN_REQUEST_URL is not a URL", err)
	}
	r.Header.Set("Authorization", "Bearer "+requestToken)
	r.Header.Set("Accept", "application/json")
	resp, err := c.http.Do(r)
	if err != nil {
		return "", fault.Wrap(fault.Unavailable, "GitHub did not answer the request for an ID token", err)
	}
	defer func() { _ = resp.Body.Close() }() // the body was read
	var a struct {
		Value string `json:"value"`
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil || resp.StatusCode != http.StatusOK || json.Unmarshal(text, &a) != nil || a.Value == "" {
		return "", fault.Newf(fault.Unavailable,
			"GitHub gave no ID token (status %d): the job needs the permission id-token: write", resp.StatusCode)
	}
	return a.Value, nil
}
