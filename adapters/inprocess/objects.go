package inprocess

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/auth/federating"
	"github.com/tollgate-dev/tollgate/ports/authority"
)

// providerObjects are the providers of company sign-in for a state in a file.
type providerObjects struct{ providers *federating.Providers }

// NewProviderObjects returns the providers of company sign-in for a state in a file.
func NewProviderObjects(p *federating.Providers) authority.ManagedObjects { return &providerObjects{p} }

// secretField is the field of the secret of a client in a file.
const secretField = "clientSecret"

// Parse implements [authority.ManagedObjects].
func (s *providerObjects) Parse(fields audit.Details) (audit.Object, error) {
	p, err := s.providers.Parse(fields)
	secret := fields.Text(secretField)
	if err == nil && secret != "" {
		err = company.CheckSecret(secret)
	}
	if err != nil {
		return audit.Object{}, err
	}
	hash := ""
	if secret != "" {
		sum := sha256.Sum256([]byte(secret))
		hash = hex.EncodeToString(sum[:])
	}
	return p.Object(hash), nil
}

// Stored implements [authority.ManagedObjects].
func (s *providerObjects) Stored(ctx context.Context) ([]authority.ManagedObject, error) {
	all, err := s.providers.List(ctx)
	objects := make([]authority.ManagedObject, len(all))
	for i := range all {
		objects[i] = authority.ManagedObject{Object: s.providers.Object(&all[i]), Owner: all[i].ManagedBy}
		delete(objects[i].Fields, "managedBy")
	}
	return objects, err
}

// Save implements [authority.ManagedObjects].
func (s *providerObjects) Save(ctx context.Context, fields audit.Details, owner string) error {
	p, err := s.providers.Parse(fields)
	if err != nil {
		return err
	}
	draft := federating.Draft{Provider: p}
	draft.ManagedBy = owner
	if secret := fields.Text(secretField); secret != "" {
		draft.ClientSecret = &secret
	}
	_, _, err = s.providers.Put(ctx, draft, nil)
	return err
}

// Remove implements [authority.ManagedObjects].
func (s *providerObjects) Remove(ctx context.Context, key string) error {
	return s.providers.Remove(ctx, key, nil)
}
