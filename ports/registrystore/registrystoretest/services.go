package registrystoretest

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/core/registry/service"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/ports/servicestore"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// ServiceStores are an empty store of service accounts, that of grants, and their transactions.
type ServiceStores struct {
	Services servicestore.Services
	Grants   registrystore.Grants
	Runner   transaction.Runner
}

// RunServices runs the tests of the stores of service accounts. open is called for each test.
func RunServices(t *testing.T, open func(t *testing.T) ServiceStores) {
	t.Helper()
	for name, part := range map[string]func(t *testing.T, s ServiceStores){
		"stored accounts have the values of all fields and are ordered by name": keepsServices,
		"a change sees what is stored, and the time of creation stays":          changesServices,
		"each of several parallel changes sees the one before":                  changesServicesInParallel,
		"a removed account is not found, and its grants are removed":            removesServices,
		"a failed change stores nothing":                                        refusesServiceChanges,
		"a call with a cancelled context fails":                                 refusesCanceledServices,
	} {
		t.Run(name, func(t *testing.T) { part(t, open(t)) })
	}
}

// newService returns an account with every field.
func newService(t *testing.T, name string) service.Account {
	t.Helper()
	a, err := service.New(service.Draft{
		Name: name, Description: "Ada's \"é\" robot", State: "disabled", Workloads: []service.WorkloadDraft{
			{
				Issuer: "https://ci.example.com", Subject: "repo:acme/*", Claims: map[string]string{"ref": "refs/heads/main"},
				Audience: "https://tools.example.com", Scopes: []string{"registry:publish", "admin:read"},
			},
			{Issuer: "https://github.example.com", Subject: "repo:acme/tools:*", Scopes: []string{"decide"}},
		},
	}, publisher.Rules{Issuers: []string{"https://ci.example.com"}, GitHubIssuer: "https://github.example.com"})
	if err != nil {
		t.Fatal(err)
	}
	a.ManagedBy, a.CreatedAt = "platform", epoch
	return a
}

func putService(t *testing.T, s ServiceStores, a service.Account) {
	t.Helper()
	err := s.Services.Put(t.Context(), a.Name, func(*service.Account) (service.Account, error) { return a, nil })
	if err != nil {
		t.Fatal(err)
	}
}

func wantServices(t *testing.T, s ServiceStores, after service.Name, limit int, want ...service.Account) {
	t.Helper()
	found, err := s.Services.List(t.Context(), after, limit)
	if err != nil || len(found) != len(want) || len(want) > 0 && !reflect.DeepEqual(found, want) {
		t.Errorf("List(%q, %d) = %+v, %v, want %+v", after, limit, found, err, want)
	}
}

func keepsServices(t *testing.T, s ServiceStores) {
	wantServices(t, s, "", 9)
	a, b := newService(t, "a-1"), service.Account{Name: "b", State: service.Active, CreatedAt: epoch}
	putService(t, s, b)
	putService(t, s, a)
	wantServices(t, s, "", 9, a, b)
	wantServices(t, s, "", 1, a)
	wantServices(t, s, "a-1", 9, b)
	if found, err := s.Services.Get(t.Context(), "a-1"); err != nil || !reflect.DeepEqual(found, a) {
		t.Errorf("Get = %+v, %v, want %+v", found, err, a)
	}
}

func changesServices(t *testing.T, s ServiceStores) {
	a := newService(t, "a")
	putService(t, s, a)
	err := s.Services.Put(t.Context(), "a", func(stored *service.Account) (service.Account, error) {
		if stored == nil || !reflect.DeepEqual(*stored, a) {
			t.Errorf("the change got %+v, want %+v", stored, a)
		}
		return service.Account{Name: "a", State: service.Active, CreatedAt: epoch.AddDate(1, 0, 0)}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	wantServices(t, s, "", 9, service.Account{Name: "a", State: service.Active, CreatedAt: epoch})
}

func changesServicesInParallel(t *testing.T, s ServiceStores) {
	const calls = 8
	errs := make(chan error)
	for range calls {
		go func() {
			errs <- s.Services.Put(t.Context(), "a", func(stored *service.Account) (service.Account, error) {
				a := service.Account{Name: "a", State: service.Active, CreatedAt: epoch}
				if stored != nil {
					a.Description = stored.Description
				}
				a.Description += "x"
				return a, nil
			})
		}()
	}
	for range calls {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	wantServices(t, s, "", 9, service.Account{
		Name: "a", State: service.Active, Description: "xxxxxxxx", CreatedAt: epoch,
	})
}

func removesServices(t *testing.T, s ServiceStores) {
	putService(t, s, newService(t, "a"))
	var grants []registry.Grant
	for _, holder := range []registry.Holder{"service:a", "service:ab"} {
		g, err := registry.ParseGrant(holder, "publish", "com.example/*")
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Grants.Add(t.Context(), registry.GrantRecord{Grant: g}); err != nil {
			t.Fatal(err)
		}
		grants = append(grants, g)
	}
	if err := s.Services.Remove(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	wantServices(t, s, "", 9)
	if left, err := s.Grants.Records(t.Context(), registrystore.GrantQuery{}); err != nil ||
		len(left) != 1 || left[0].Grant != grants[1] {
		t.Errorf("the grants are %+v, %v, want that of the other account", left, err)
	}
	_, err := s.Services.Get(t.Context(), "a")
	for _, err := range []error{err, s.Services.Remove(t.Context(), "a")} {
		if !fault.Is(err, fault.NotFound) {
			t.Errorf("a removed account: %v, want fault.NotFound", err)
		}
	}
}

func refusesServiceChanges(t *testing.T, s ServiceStores) {
	refused := errors.New("refused")
	err := s.Services.Put(t.Context(), "a", func(*service.Account) (service.Account, error) {
		return service.Account{Name: "a", State: service.Active, CreatedAt: epoch}, refused
	})
	if !errors.Is(err, refused) {
		t.Errorf("Put = %v, want the error of the change", err)
	}
	err = s.Runner.Atomically(t.Context(), func(ctx context.Context) error {
		err := s.Services.Put(ctx, "a", func(*service.Account) (service.Account, error) {
			return service.Account{Name: "a", State: service.Active, CreatedAt: epoch}, nil
		})
		return errors.Join(err, refused)
	})
	if !errors.Is(err, refused) {
		t.Errorf("a failed transaction: %v", err)
	}
	wantServices(t, s, "", 9)
}

func refusesCanceledServices(t *testing.T, s ServiceStores) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, list := s.Services.List(ctx, "", 1)
	_, get := s.Services.Get(ctx, "a")
	put := s.Services.Put(ctx, "a", func(*service.Account) (service.Account, error) { return service.Account{}, nil })
	for name, err := range map[string]error{
		"List": list, "Get": get, "Put": put, "Remove": s.Services.Remove(ctx, "a"),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s with a cancelled context: %v", name, err)
		}
	}
}
