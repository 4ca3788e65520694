package maxmind

import (
	"fmt"
	"sync/atomic"

	"github.com/oschwald/maxminddb-golang/v2"

	"github.com/tollgate-dev/tollgate/adapters/internal/files"
)

const (
	// maxFile is the maximum size of a database in bytes. The largest commercial ones have some
	// hundred MiB.
	maxFile = 1 << 30
	// sampleSize is the number of records that checkRecords reads.
	sampleSize = 10_000
)

// loadDatabase reads a database, checks it and stores it in into. hasData reports whether a record
// has the data that the database is used for. The database is kept in memory and not mapped,
// because overwriting a mapped file would crash the process.
func loadDatabase(
	into *atomic.Pointer[maxminddb.Reader], path string, hasData func(maxminddb.Result) (bool, error),
) error {
	content, err := files.Read(path, maxFile)
	if err != nil {
		return err
	}
	db, err := maxminddb.OpenBytes(content)
	if err != nil {
		return fmt.Errorf("%s is not a MaxMind DB: %w", path, err)
	}
	if err := checkRecords(db, hasData); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	into.Store(db)
	return nil
}

// checkRecords reads the first records. All of them must be readable, and at least one must have
// data.
func checkRecords(db *maxminddb.Reader, hasData func(maxminddb.Result) (bool, error)) error {
	n, useful := 0, false
	for r := range db.Networks() {
		found, err := hasData(r)
		if err != nil {
			return err
		}
		useful = useful || found
		if n++; n == sampleSize {
			break
		}
	}
	if !useful {
		return errWrongKind
	}
	return nil
}
