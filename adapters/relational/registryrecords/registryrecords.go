// Package registryrecords stores the versions of servers, their remote addresses, what is in
// quarantine, the tool lists and which remotes are asked for them, the grants, the policies of publishers, the reviews, the views, the webhooks,
// their deliveries, the mirrors, and the service accounts in a relational database. It implements the ports of
// ports/registrystore. It has the queries, not the rules: core/registry decides what is stored, and
// the constraints of the schema hold for all callers.
package registryrecords

import (
	"database/sql"
	"errors"
	"sync/atomic"

	"github.com/google/wire"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/ports/accessstore"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/ports/servicestore"
)

// checkRow returns nil, or the fault for a row with values that do not parse.
func checkRow(errs ...error) error {
	if err := errors.Join(errs...); err != nil {
		return database.BrokenRow(err)
	}
	return nil
}

// parsed scans a text with a function of the model. A text that the function refuses breaks a rule.
type parsed[T any] struct {
	into  *T
	parse func(string) (T, error)
}

func parsedInto[T any](into *T, parse func(string) (T, error)) sql.Scanner {
	return parsed[T]{into, parse}
}

// optional scans a text that may be empty, which leaves the value as it is.
func optional[T any](into *T, parse func(string) (T, error)) sql.Scanner {
	return parsedInto(into, func(text string) (T, error) {
		if text == "" {
			return *into, nil
		}
		return parse(text)
	})
}

func (p parsed[T]) Scan(src any) error {
	var text sql.NullString
	err := text.Scan(src)
	if err == nil {
		*p.into, err = p.parse(text.String)
		err = checkRow(err)
	}
	return err
}

// changedOr returns err, or nil if a statement without an error changed no row.
func changedOr[N int | int64](n N, err, none error) error {
	if err == nil && n == 0 {
		return none
	}
	return err
}

// Set provides the stores of the registry.
var Set = wire.NewSet(NewStores, WatchChanges, wire.FieldsOf(new(Stores),
	"Reader", "Writer", "Snapshot", "Grants", "Views", "Policies", "Reviews", "Backlog", "ReviewRules", "ReviewNotices",
	"Webhooks", "Deliveries", "Mirrors", "Rereader", "Mirrored", "Quarantine", "ToolLists", "ToolWatches", "Services",
	"Applied", "Catalogue", "Listings", "Owners", "RightRequests"))

// Stores are the stores of the registry in one database.
type Stores struct {
	servers *Servers

	Reader        registrystore.ServerReader
	Writer        registrystore.ServerWriter
	Snapshot      registrystore.SnapshotReader
	Grants        registrystore.Grants
	Views         registrystore.Views
	Policies      registrystore.Policies
	Reviews       registrystore.Reviews
	Backlog       registrystore.ReviewBacklog
	ReviewRules   registrystore.ReviewRules
	ReviewNotices registrystore.ReviewNotices
	Webhooks      registrystore.Webhooks
	Deliveries    registrystore.Deliveries
	Mirrors       registrystore.Mirrors
	Rereader      registrystore.MirrorRereader
	Mirrored      registrystore.MirroredVersions
	Quarantine    registrystore.Quarantine
	ToolLists     registrystore.ToolLists
	ToolWatches   registrystore.ToolWatches
	Services      servicestore.Services
	Applied       registrystore.AppliedStates
	Catalogue     registrystore.Catalogue
	Listings      accessstore.Servers
	Owners        registrystore.Owners
	RightRequests registrystore.RightRequests
}

// NewStores returns the stores of a database.
func NewStores(db *database.DB, c Config) Stores {
	servers, reviews, mirrors := NewServers(db, c), &reviewStore{db}, &mirrorStore{db}
	return Stores{
		servers, servers, servers, servers, &grantStore{db}, &viewStore{db, servers.changes}, &policyStore{db},
		reviews, reviews, &ruleStore{db}, &noticeStore{db}, &webhookStore{db}, &deliveryStore{db}, mirrors, mirrors,
		&mirroredStore{db, servers.changes}, &quarantineStore{db}, &toolListStore{db, servers.changes}, &watchStore{db, servers.changes}, &serviceStore{db}, &appliedStateStore{db},
		catalogueStore{servers, new(atomic.Pointer[countedSize])}, listingStore{servers}, &ownerStore{db}, &rightStore{db},
	}
}

// WatchChanges returns the changes of the servers in stores, and a function that ends their
// goroutine.
func WatchChanges(db *database.DB, s Stores) (registrystore.Changes, func()) {
	return NewChanges(db, s.servers)
}
