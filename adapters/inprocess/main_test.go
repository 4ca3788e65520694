package inprocess_test

import (
	"os"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/relational/postgres/postgrestest"
)

func TestMain(m *testing.M) { os.Exit(postgrestest.Run(m)) }
