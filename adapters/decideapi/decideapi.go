// Package decideapi answers proxies that want to forward a call to a tool server: whether they may,
// and with which headers (contract Z). Each kind of proxy has a file with its protocol; the package
// reads what a request says, and core/access/deciding decides.
package decideapi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"

	authpb "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"github.com/sirupsen/logrus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/tollgate-dev/tollgate/adapters/decideapi/extmcppb"
	"github.com/tollgate-dev/tollgate/adapters/internal/wire"
	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/access/deciding"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authority"
)

// Config holds the settings of what proxies may do.
type Config struct {
	On           bool           `env:"-"`
	StripToken   bool           `env:"DECIDE_STRIP_TOKEN" envDefault:"false" desc:"remove the header Authorization from calls that are allowed, so that the tool server does not get the token"`
	TrustHeaders bool           `env:"DECIDE_TRUST_HEADERS" envDefault:"false" desc:"read method and tool of a call without a body from the headers Mcp-Method and Mcp-Name, and deny a call whose headers and body differ"`
	Networks     []netip.Prefix `env:"DECIDE_NETWORKS" desc:"networks of proxies that may ask /decide/http without a token"`
	PublicURL    string         `env:"-"` // where clients find the metadata of the registry; empty without it
	Issues       bool           `env:"-"` // the service issues the tokens for tool servers
}

// Validate returns an error that names the variable whose value is malformed.
func (c Config) Validate() error {
	for _, network := range c.Networks {
		if !network.IsValid() {
			return fmt.Errorf("DECIDE_NETWORKS: %v is not a network", network)
		}
	}
	return nil
}

// Ports are the dependencies of an API. All fields are required.
type Ports struct {
	Authority authority.Authority
	// Decide and Denied are methods of deciding.Service.
	Decide func(context.Context, deciding.Question) (deciding.Answer, error)
	Denied func(context.Context, deciding.Question, []access.Call) ([]bool, error)
	// Permit returns an error for who may not ask (deciding.Service.Permit).
	Permit func(context.Context, authority.Caller) error
	// Named returns a subject by its type and id, for AuthZEN (deciding.Service.Named).
	Named func(ctx context.Context, kind, id string) (access.Subject, error)
	Log   *logrus.Entry
}

// API answers proxies. It is safe for concurrent use.
type API struct {
	config Config
	ports  Ports
}

// New returns an API.
func New(c Config, p Ports) *API { return &API{config: c, ports: p} }

// On reports whether proxies may ask.
func (a *API) On() bool { return a.config.On }

// request is an HTTP request that a proxy wants to forward.
type request struct {
	authorization []string       // the values of the header Authorization
	verified      [][]byte       // payloads of tokens that a trusted proxy has verified, if there is no such header
	server        string         // the name that the proxy states; empty for the one at the address
	address       access.Address // where the request goes, also if there is a name, for OAuth
	call          access.Request // the settings say whether its headers are trusted
	from          netip.Addr     // the client
}

// answer decides about a request. Its errors are those of deciding.Service.Decide.
func (a *API) answer(ctx context.Context, r *request) (*answer, error) {
	q := a.question(ctx, r)
	return a.decide(ctx, &q)
}

func (a *API) question(ctx context.Context, r *request) deciding.Question {
	q := deciding.Question{Server: r.server, Address: r.address, From: r.from}
	q.Caller, q.Refusal = a.identify(ctx, r)
	r.call.TrustHeaders = a.config.TrustHeaders
	q.Call = access.ReadCall(&r.call)
	return q
}

func (a *API) decide(ctx context.Context, q *deciding.Question) (*answer, error) {
	d, err := a.ports.Decide(ctx, *q)
	if err != nil {
		return nil, err
	}
	return a.config.newAnswer(d, q), nil
}

// identify returns the caller of a request, or why the token is refused. A header that has no token
// is a bad token, and so are two headers, of which proxies and servers may read different ones.
func (a *API) identify(ctx context.Context, r *request) (authority.Caller, error) {
	if len(r.authorization) == 0 {
		return a.identifyVerified(ctx, r)
	}
	token, ok := bearerToken(r.authorization[0])
	if !ok || len(r.authorization) > 1 {
		return authority.Caller{}, fault.New(fault.Unauthenticated, "one access token is required").WithCode(auth.CodeInvalidToken)
	}
	return a.ports.Authority.IdentifyCall(ctx, token, r.from)
}

// identifyVerified returns the owner of the first token of a company provider that a proxy has verified.
// Without such tokens the caller is anyone.
func (a *API) identifyVerified(ctx context.Context, r *request) (who authority.Caller, err error) {
	for _, payload := range r.verified {
		if who, err = a.ports.Authority.IdentifyVerified(ctx, payload, r.from); err == nil {
			return who, nil
		}
	}
	return authority.Caller{}, err
}

// bearerToken returns the token of the value of a header Authorization (RFC 6750, 2.1). The case of
// the scheme does not matter.
func bearerToken(value string) (string, bool) {
	scheme, token, _ := strings.Cut(value, " ")
	token = strings.TrimSpace(token)
	return token, token != "" && strings.EqualFold(scheme, "bearer")
}

// requireKey returns an error unless the key of a proxy is a token by which it may ask. from is the
// address of the proxy itself.
func (a *API) requireKey(ctx context.Context, key string, from netip.Addr) error {
	who, err := a.ports.Authority.IdentifyReader(ctx, key, from)
	if err != nil {
		return err
	}
	return a.ports.Permit(ctx, who)
}

// Register adds the gRPC services to a server, unless proxies may not ask. The server must have the codec
// of package wire.
func (a *API) Register(s grpc.ServiceRegistrar) {
	if a.config.On {
		e := &envoy{api: a}
		s.RegisterService(wire.Replace(authpb.Authorization_ServiceDesc, "Check", newCheckRequest, e.check), e)
		extmcppb.RegisterExtMcpServer(s, &agentgateway{api: a})
	}
}

// trusts reports whether what a proxy has verified counts: it has a client certificate, or a key. The
// error is that of requireKey if that says nothing about the key.
func (a *API) trusts(ctx context.Context) (bool, error) {
	var from netip.Addr
	if p, ok := peer.FromContext(ctx); ok {
		if t, ok := p.AuthInfo.(credentials.TLSInfo); ok && len(t.State.VerifiedChains) > 0 {
			return true, nil
		}
		if at, ok := p.Addr.(*net.TCPAddr); ok {
			from = at.AddrPort().Addr().Unmap()
		}
	}
	keys := metadata.ValueFromIncomingContext(ctx, headerKey)
	if len(keys) != 1 {
		return false, nil
	}
	err := a.requireKey(ctx, keys[0], from)
	if fault.Is(err, fault.Unavailable) || fault.Is(err, fault.Internal) {
		return false, err
	}
	if err != nil {
		a.ports.Log.WithContext(ctx).WithError(err).Debug("the key of a proxy was refused")
	}
	return err == nil, nil
}

// grpcError returns the status of a call that was not decided. Proxies have a setting for what becomes
// of a request then.
func (a *API) grpcError(ctx context.Context, err error) error {
	log := a.ports.Log.WithContext(ctx).WithError(err)
	switch {
	case errors.Is(err, context.Canceled):
		return grpcstatus.Error(codes.Canceled, "the call was canceled")
	case errors.Is(err, context.DeadlineExceeded):
		return grpcstatus.Error(codes.DeadlineExceeded, "the call's deadline has passed")
	case fault.Is(err, fault.Unavailable):
		log.Debug("a call cannot be decided now")
		return grpcstatus.Error(codes.Unavailable, fault.PublicMessage(err))
	}
	log.Error("a call cannot be decided")
	return grpcstatus.Error(codes.Internal, "internal error")
}
