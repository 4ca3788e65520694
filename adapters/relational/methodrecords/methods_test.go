package methodrecords_test

import (
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/relational/methodrecords"
	"github.com/tollgate-dev/tollgate/adapters/relational/relationaltest"
	"github.com/tollgate-dev/tollgate/ports/methodstore/methodstoretest"
)

func TestMethods(t *testing.T) {
	relationaltest.RunContract(t, methodstoretest.Run,
		func(_ *testing.T, db *relationaltest.Database) methodstoretest.Opened {
			return methodstoretest.Opened{Methods: methodrecords.NewMethods(db.DB)}
		})
}
