// Package requesting is the use case by which people who publish nothing ask for a server: they name
// one of another registry or the address of its document, and say why. The document is read, and
// waits for a reviewer. Packages publishing and review have the rules.
package requesting

import (
	"context"
	"strings"

	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/mirror"
	"github.com/tollgate-dev/tollgate/core/registry/publishing"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/recordsource"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// Ports are the dependencies of a Service. All fields are required.
type Ports struct {
	Mirrors   registrystore.Mirrors
	Documents recordsource.Documents
	Publisher *publishing.Publisher
}

// Service requests servers. It is safe for concurrent use.
type Service struct{ ports Ports }

// New returns a service.
func New(p Ports) *Service { return &Service{p} }

// Draft is a request as a person writes it.
type Draft struct {
	Server string // its name, or the address of its document
	Mirror string // whose registry has the name; empty for the first mirror
	Reason string
}

// wanted is what a draft requests.
type wanted struct {
	reason  string
	name    registry.Name // the zero value with an address
	address string
}

// Validate returns fault.Invalid, with the name of the field, if a draft can never be right.
func (d Draft) Validate() error {
	_, err := d.parse()
	return err
}

func (d Draft) parse() (w wanted, err error) {
	server := strings.TrimSpace(d.Server)
	if strings.Contains(server, "://") {
		w.address, err = review.ParseSource(server)
	} else if w.name, err = registry.ParseName(server); err != nil {
		err = fault.New(fault.Invalid,
			"serverName must be a name, such as io.github.acme/tools, or the address of a server.json")
	}
	if err != nil {
		return wanted{}, fault.In("serverName", err)
	}
	w.reason, err = review.ParseReason(d.Reason)
	return w, fault.In("reason", err)
}

// Mirrors returns the names of the mirrors whose registries may have the server.
func (s *Service) Mirrors(ctx context.Context) ([]mirror.Name, error) {
	all, err := s.ports.Mirrors.List(ctx)
	return each.MapRef(all, func(m *mirror.Mirror) mirror.Name { return m.Name }), err
}

// Request submits the document that a draft names for review. The errors are those of
// publishing.Publisher.Ask, and fault.Invalid, with the name of the field, for a wrong draft and if
// the document cannot be read.
func (s *Service) Request(ctx context.Context, who authority.Caller, d Draft) (registry.ReviewID, error) {
	w, err := d.parse()
	if err != nil {
		return "", err
	}
	from := recordsource.DocumentRequest{Address: w.address}
	source := w.address
	if w.address == "" {
		m, err := s.findMirror(ctx, d.Mirror)
		if err != nil {
			return "", err
		}
		latest := m.URL.Latest(w.name)
		from, source = recordsource.DocumentRequest{Address: latest.Address(), Chosen: true}, latest.Public()
	}
	return s.ports.Publisher.Ask(ctx, who, review.Request{Reason: w.reason, Source: source},
		func(ctx context.Context) ([]byte, error) { return s.read(ctx, from, source, w.name) })
}

// read returns the document at an address. name is the server that it must have; the zero value for
// any.
func (s *Service) read(
	ctx context.Context, from recordsource.DocumentRequest, source string, name registry.Name,
) ([]byte, error) {
	body, err := s.ports.Documents.Read(ctx, from)
	if fault.Is(err, fault.Unavailable) {
		err = fault.In("serverName", fault.Newf(fault.Invalid, "serverName: %s: %s", source, fault.PublicMessage(err)))
	}
	if err != nil || name == (registry.Name{}) {
		return body, err
	}
	draft, err := registry.ParseDraft(body)
	if err == nil && draft.Name() != name.String() {
		err = fault.In("serverName", fault.Newf(fault.Invalid, "serverName: %s is the document of another server", source))
	}
	return body, err
}

// findMirror returns the mirror with a name, or the first one for an empty name.
func (s *Service) findMirror(ctx context.Context, name string) (mirror.Mirror, error) {
	all, err := s.ports.Mirrors.List(ctx)
	if err != nil {
		return mirror.Mirror{}, err
	}
	for _, m := range all {
		if name == "" || string(m.Name) == name {
			return m, nil
		}
	}
	if len(all) == 0 {
		return mirror.Mirror{}, fault.In("serverName", fault.New(fault.Invalid,
			"serverName must be the address of a server.json: this registry knows no other registry"))
	}
	return mirror.Mirror{}, fault.In("mirror", fault.New(fault.Invalid, "mirror must be one of the list"))
}
