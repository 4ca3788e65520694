package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/uptrace/bun/driver/pgdriver"
	sqlite "modernc.org/sqlite"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/adapters/relational/postgres"
	sqlitefile "github.com/tollgate-dev/tollgate/adapters/relational/sqlite"
)

// generateCommand is the argument with which this program fills a database.
const generateCommand = "generate"

const (
	versionsEach = 5     // of a generated server
	seldom       = 1000  // one server of so many has the needle in its name
	needle       = "qxz" // what a search looks for
	batch        = 250   // rows of one INSERT
)

// generateData reads the command's flags and fills the database that they name.
func generateData(args []string) error {
	var n int
	var database, dir string
	flags := flag.NewFlagSet(generateCommand, flag.ExitOnError)
	flags.IntVar(&n, "versions", 10_000, "versions to make, 5 of each server")
	flags.StringVar(&database, "database", "",
		"postgres:// URL of the database to fill; it must hold no generated versions yet")
	flags.StringVar(&dir, "data-dir", "", "folder of the SQLite file to fill, instead of -database")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if (database == "") == (dir == "") {
		return errors.New("give one of -database and -data-dir")
	}
	return fillDatabase(database+dir, n)
}

// fillDatabase brings the schema up to date and inserts versions. What is inserted is
// what publishing the same documents would have left.
func fillDatabase(database string, n int) error {
	return fillServers(database, n/versionsEach, versionsEach)
}

// fillServers inserts servers with a number of versions each.
func fillServers(database string, servers, each int) error {
	ctx := context.Background()
	db, err := openToFill(ctx, database)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }() // the transaction has reported any failure
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // after a commit there is nothing to roll back
	f := filler{
		ctx: ctx, tx: tx, postgres: isPostgres(database), now: time.Now().UTC().Truncate(time.Microsecond), each: each,
	}
	for first := 0; first < servers; first += batch {
		if err := f.addServers(first, min(first+batch, servers)); err != nil {
			return err
		}
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	if !isPostgres(database) {
		return nil
	}
	if _, err := db.ExecContext(ctx, "VACUUM ANALYZE"); err != nil { // as the server does by itself a minute later
		return fmt.Errorf("analyze: %w", err)
	}
	return nil
}

func isPostgres(database string) bool { return strings.HasPrefix(database, "postgres") }

// openToFill opens the database of a URL or a folder, and creates its tables.
func openToFill(ctx context.Context, target string) (*sql.DB, error) {
	var own *database.DB
	var closeOwn func()
	var err error
	if isPostgres(target) {
		own, closeOwn, err = postgres.Open(ctx, postgres.Config{
			URL: target, MaxConns: 2,
			DialTimeout: time.Second, StatementTimeout: time.Minute, MigrationTimeout: time.Minute,
		})
	} else {
		own, closeOwn, err = sqlitefile.Open(ctx, sqlitefile.Config{Dir: target, BusyTimeout: time.Second})
	}
	if err != nil {
		return nil, err
	}
	defer closeOwn()
	if _, err := own.Migrate(ctx); err != nil {
		return nil, err
	}
	if isPostgres(target) {
		return sql.OpenDB(pgdriver.NewConnector(pgdriver.WithDSN(target), pgdriver.WithTimeout(10*time.Minute))), nil
	}
	address := url.URL{
		Scheme: "file", OmitHost: true, Path: filepath.Join(target, sqlitefile.File),
		RawQuery: url.Values{"_pragma": {"synchronous(OFF)", "cache_size(-262144)"}}.Encode(),
	}
	connector, err := sqlite.NewConnector(address.String())
	if err != nil {
		return nil, fmt.Errorf("open the file: %w", err)
	}
	return sql.OpenDB(connector), nil
}

// filler inserts generated servers.
type filler struct {
	ctx      context.Context
	tx       *sql.Tx
	postgres bool
	now      time.Time
	each     int // versions of a server
}

// addServers inserts the servers of the numbers from first to before last.
func (f *filler) addServers(first, last int) error {
	names, versions, owners, remotes := f.newRows("servers", 1), f.newRows("versions", 9),
		f.newRows("remote_owners", 2), f.newRows("remotes", 4)
	names.columns = "name"
	versions.columns = "name, version, status, status_message, status_changed_at, published_at, updated_at, is_latest, document"
	owners.columns, remotes.columns = "url, name", "name, version, url, claim"
	for i := first; i < last; i++ {
		g := newGeneratedServer(i)
		names.addValues(g.name)
		if g.remote != "" {
			owners.addValues(g.remote, g.name)
		}
		for v := range f.each {
			at := f.timeValue(f.now.Add(time.Duration(i*f.each+v) * -time.Second).
				Add(time.Duration(v) * time.Minute))
			version := "1." + strconv.Itoa(v) + ".0"
			document, err := g.encodeDocument(version)
			if err != nil {
				return err
			}
			versions.addValues(g.name, version, "active", "", at, at, at, f.boolValue(v == f.each-1), document)
			if g.remote != "" {
				remotes.addValues(g.name, version, g.remote, g.remote)
			}
		}
	}
	for _, t := range []*rows{names, versions, owners, remotes} {
		if err := t.insertRows(); err != nil {
			return err
		}
	}
	return nil
}

func (f *filler) timeValue(t time.Time) any {
	if f.postgres {
		return t
	}
	return t.UnixMicro()
}

func (f *filler) boolValue(set bool) any {
	switch {
	case f.postgres:
		return set
	case set:
		return 1
	}
	return 0
}

func (f *filler) newRows(name string, width int) *rows {
	return &rows{filler: f, name: name, width: width}
}

// rows are rows to insert into one table.
type rows struct {
	*filler
	name, columns string
	width         int
	values        []any
}

func (r *rows) addValues(values ...any) { r.values = append(r.values, values...) }

// insertRows inserts the rows, a batch at a time.
func (r *rows) insertRows() error {
	for len(r.values) > 0 {
		n := min(len(r.values), batch*r.width)
		var text strings.Builder
		fmt.Fprintf(&text, "INSERT INTO %s (%s) VALUES ", r.name, r.columns)
		for i := range n {
			switch {
			case i == 0:
				text.WriteByte('(')
			case i%r.width == 0:
				text.WriteString("),(")
			default:
				text.WriteByte(',')
			}
			text.WriteString("$" + strconv.Itoa(i+1))
		}
		text.WriteByte(')')
		if _, err := r.tx.ExecContext(r.ctx, text.String(), r.values[:n]...); err != nil {
			return fmt.Errorf("fill %s: %w", r.name, err)
		}
		r.values = r.values[n:]
	}
	return nil
}

// generatedServer is what the documents of a generated server have in common.
type generatedServer struct {
	n                  int
	name, word, remote string
}

// newGeneratedServer returns a server by its number. The names of neighbours are far
// apart in their order, as those of publishers are.
func newGeneratedServer(n int) generatedServer {
	words := [...]string{
		"weather", "calendar", "search", "files", "tickets", "payments", "mail", "maps", "notes", "metrics",
		"images", "deploy",
	}
	word := words[n%len(words)]
	middle := ""
	if n%seldom == seldom/2 {
		middle = "-" + needle
	}
	g := generatedServer{n: n, word: word}
	g.name = fmt.Sprintf("io.github.org%05x/%s%s-%d", uint32(n)*2654435761>>12, word, middle, n)
	if n%2 == 0 {
		g.remote = fmt.Sprintf("https://%s-%d.example.com/mcp", word, n)
	}
	return g
}

// encodeDocument returns a document between 0.7 and 3 KB, as published ones are.
func (g generatedServer) encodeDocument(version string) ([]byte, error) {
	d := map[string]any{
		"$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
		"name":    g.name, "version": version, "title": "The " + g.word + " server",
		"description": "Reads and changes " + g.word + " on behalf of its user, number " + strconv.Itoa(g.n),
		"websiteUrl":  "https://example.com/" + g.word + "/" + strconv.Itoa(g.n),
		"repository": map[string]string{
			"url": "https://github.com/example/" + g.word + "-" + strconv.Itoa(g.n), "source": "github",
		},
	}
	if g.remote != "" {
		d["remotes"] = []any{
			map[string]any{
				"type": "streamable-http", "url": g.remote, "headers": newVariables("Authorization", 1+g.n%2),
			},
		}
	} else {
		d["packages"] = []any{map[string]any{
			"registryType": "npm", "identifier": "@example/" + g.word + "-" + strconv.Itoa(g.n), "version": version,
			"transport": map[string]string{"type": "stdio"}, "environmentVariables": newVariables("SETTING", 1+g.n%8),
		}}
	}
	encoded, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return encoded, nil
}

func newVariables(name string, n int) []any {
	all := make([]any, n)
	for i := range all {
		all[i] = map[string]any{
			"name":        name + "_" + strconv.Itoa(i),
			"description": "What the account page shows under keys; a new one can be made there, and the old one then ends",
			"isRequired":  i == 0, "isSecret": true, "format": "string",
		}
	}
	return all
}
