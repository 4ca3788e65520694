package watching

import (
	"bytes"
	"context"
	"maps"
	"slices"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/fields"
	"github.com/tollgate-dev/tollgate/core/managing"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/tools"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/management"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// SourcePorts are the dependencies of Sources. All fields are required.
type SourcePorts struct {
	Transactions transaction.Runner
	Sources      management.Store[tools.RemoteSourceName, tools.RemoteSource]
	Recorder     authority.Recorder
	Sealer       secrets.Sealer
}

// Sources lists, stores and removes the headers with which remotes are asked, for operators.
type Sources = managing.Operator[tools.RemoteSourceName, tools.RemoteSource]

// NewSources returns Sources. A source whose server and remote another one has is refused with
// fault.Conflict.
func NewSources(p SourcePorts) *Sources {
	return managing.New(managing.Description[tools.RemoteSourceName, tools.RemoteSource]{
		Kind: &tools.SourceKind, Parse: tools.ParseRemoteSource, Show: p.show,
		Key:   func(s *tools.RemoteSource) tools.RemoteSourceName { return s.Name },
		Owner: func(s *tools.RemoteSource) *string { return &s.ManagedBy },
		Admit: p.admit,
	}, managing.Ports[tools.RemoteSourceName, tools.RemoteSource]{
		Transactions: p.Transactions, Store: p.Sources, Recorder: p.Recorder,
	})
}

// show returns a source with the hash of its headers, by which they are compared.
func (p SourcePorts) show(s *tools.RemoteSource) management.Object {
	headers, err := s.Headers, error(nil)
	if headers == nil && s.Sealed != nil {
		headers, err = open(p.Sealer, s)
	}
	text, all := s.Sealed, s.Fields() // of another key: all headers are other ones
	if err == nil && headers != nil {
		text, _ = tools.EncodeHeaders(headers) // no error: they are texts
	}
	all.Set(audit.FieldSecret, audit.HashSecret(text))
	return management.Object{
		Object: audit.Object{Kind: tools.SourceKind.Name, Key: string(s.Name), Fields: all}, Owner: s.ManagedBy,
		Fixed: audit.Details{"headerNames": audit.Texts(slices.Sorted(maps.Keys(headers)))},
	}
}

// open returns the sealed headers of a source.
func open(sealer secrets.Sealer, s *tools.RemoteSource) (map[string]string, error) {
	text, err := sealer.Open(s.Sealed, s.SealedFor())
	if err != nil {
		return nil, fault.Wrap(fault.Internal, "open the headers of a tool source", err)
	}
	return tools.DecodeHeaders(text)
}

// admit seals the headers of a source. Without any it keeps those of the stored one, which are only for
// the server and the remote for which they were given.
func (p SourcePorts) admit(ctx context.Context, current, wanted *tools.RemoteSource) error {
	all, err := p.Sources.List(ctx, "", tools.SourceKind.Most)
	if err != nil {
		return err
	}
	if other := find(all, wanted.Server, wanted.Remote); other != nil && other.Name != wanted.Name {
		return fault.In("remote", fault.Newf(fault.Conflict, "remote: the tool source %s has it already", other.Name))
	}
	if current != nil && current.SealedFor() == wanted.SealedFor() {
		kept, err := open(p.Sealer, current)
		if wanted.Headers == nil || err == nil && maps.Equal(kept, wanted.Headers) {
			wanted.Headers, wanted.Sealed = nil, bytes.Clone(current.Sealed)
			return nil
		}
	}
	if wanted.Headers == nil {
		return fields.Invalid("headers", " must be given for a new server or remote")
	}
	text, err := tools.EncodeHeaders(wanted.Headers)
	if err == nil {
		wanted.Sealed, err = p.Sealer.Seal(text, wanted.SealedFor())
	}
	wanted.Headers = nil
	return err
}

// find returns the source of a remote of a server; nil without one.
func find(all []tools.RemoteSource, server registry.Name, remote registry.RemoteURL) *tools.RemoteSource {
	return registry.FindIn(all, func(s *tools.RemoteSource) bool { return s.Server == server && s.Remote == remote })
}
