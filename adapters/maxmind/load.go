package maxmind

import (
	"fmt"
	"sync/atomic"

	"github.com/oschwald/maxminddb-golang/v2"

	"github.com/tollgate-dev/tollgate/adapters/boundedfile"
)

const (
	// maxFile bounds a database in bytes; the largest that are sold have some hundred MiB.
	maxFile = 1 << 30
	// sample is how many records are looked at before a database is taken.
	sample = 10_000
)

// load reads a database and puts it in force, if it tells what it is there for. It is held in memory, not mapped: a file that is
// overwritten in place would otherwise end the process.
func load(into *atomic.Pointer[maxminddb.Reader], path string, tells func(maxminddb.Result) (bool, error)) error {
	content, err := boundedfile.Read(path, maxFile)
	if err != nil {
		return err
	}
	db, err := maxminddb.OpenBytes(content)
	if err != nil {
		return fmt.Errorf("%s is not a MaxMind DB: %w", path, err)
	}
	if err := check(db, tells); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	into.Store(db)
	return nil
}

// check looks at the first records: all must be readable, and one at least must tell what is asked for.
func check(db *maxminddb.Reader, tells func(maxminddb.Result) (bool, error)) error {
	n, useful := 0, false
	for r := range db.Networks() {
		told, err := tells(r)
		if err != nil {
			return err
		}
		useful = useful || told
		if n++; n == sample {
			break
		}
	}
	if !useful {
		return errOther
	}
	return nil
}
