package instance

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"

	"github.com/uptrace/bun/driver/pgdriver"
)

// NewDatabase creates an empty database with a name on the server of TEST_DATABASE_URL, and returns
// its URL.
func NewDatabase(ctx context.Context, name string) (string, error) {
	u, err := url.Parse(os.Getenv("TEST_DATABASE_URL"))
	if err != nil {
		return "", errors.New("TEST_DATABASE_URL is not a URL")
	}
	if err := runStatement(ctx, "CREATE DATABASE "+name); err != nil {
		return "", fmt.Errorf("make a database: %w", err)
	}
	u.Path = "/" + name
	return u.String(), nil
}

// DropDatabase drops a database that NewDatabase created, even while it is in use.
func DropDatabase(ctx context.Context, name string) error {
	if err := runStatement(ctx, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)"); err != nil {
		return fmt.Errorf("drop a database: %w", err)
	}
	return nil
}

func runStatement(ctx context.Context, statement string) error {
	db := sql.OpenDB(pgdriver.NewConnector(pgdriver.WithDSN(os.Getenv("TEST_DATABASE_URL"))))
	_, err := db.ExecContext(ctx, statement)
	return errors.Join(err, db.Close())
}
