package main

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/uptrace/bun/driver/pgdriver"
	sqlite "modernc.org/sqlite"
)

// The paths of a records floor: whole rows of the service's tables.
const (
	floorLatest   = "/rows/latest"
	floorList     = "/rows/list"
	floorVersions = "/rows/versions"
)

const (
	wholeRow  = "status, status_message, status_changed_at, published_at, updated_at, is_latest, document"
	latest    = " FROM versions WHERE name = $1 AND is_latest AND status <> 'deleted'"
	list      = " FROM versions WHERE (name, version) > ($1, $2) AND status <> 'deleted' ORDER BY name, version LIMIT $3"
	versions  = " FROM versions WHERE name = $1 AND status <> 'deleted' ORDER BY published_at DESC"
	firstName = "com.example/s0"
)

// mountRecords adds handlers that make one prepared query each and write the bytes of what they
// find. database is a URL of PostgreSQL, or a folder with the file of SQLite.
func mountRecords(app *fiber.App, database string) error {
	db, err := openRecords(database)
	if err != nil {
		return err
	}
	for path, q := range map[string]struct {
		text string
		args []any
	}{
		floorLatest:   {"SELECT " + wholeRow + latest, []any{firstName}},
		floorVersions: {"SELECT " + wholeRow + versions, []any{firstName}},
		floorList:     {"SELECT " + wholeRow + list, []any{"", "", 100}},
	} {
		statement, err := db.PrepareContext(context.Background(), q.text)
		if err != nil {
			return fmt.Errorf("prepare: %w", err)
		}
		app.Get(path, func(c *fiber.Ctx) error { return writeRows(c, statement, q.args) })
	}
	return nil
}

func openRecords(database string) (*sql.DB, error) {
	var db *sql.DB
	if strings.HasPrefix(database, "postgres://") {
		db = sql.OpenDB(pgdriver.NewConnector(pgdriver.WithDSN(database), pgdriver.WithBufferSize(32<<10)))
		db.SetMaxOpenConns(20)
	} else {
		address := url.URL{
			Scheme: "file", OmitHost: true, Path: filepath.Join(database, "tollgate.db"),
			RawQuery: url.Values{"_pragma": {"query_only(1)", "cache_size(-16384)"}}.Encode(),
		}
		connector, err := sqlite.NewConnector(address.String())
		if err != nil {
			return nil, fmt.Errorf("open the file: %w", err)
		}
		db = sql.OpenDB(connector)
		db.SetMaxOpenConns(8)
	}
	db.SetMaxIdleConns(20)
	return db, nil
}

// writeRows writes the columns of the rows, one after another.
func writeRows(c *fiber.Ctx, statement *sql.Stmt, args []any) error {
	rows, err := statement.QueryContext(c.UserContext(), args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // rows.Err has reported any failure
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	values := make([]sql.RawBytes, len(columns))
	into := make([]any, len(columns))
	for i := range values {
		into[i] = &values[i]
	}
	response := c.Response()
	body := response.SwapBody(nil)[:0]
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		for _, v := range values {
			body = append(body, v...)
		}
	}
	response.SwapBody(body)
	return rows.Err()
}
