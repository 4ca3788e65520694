package methodrecords_test

import (
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/relational/methodrecords"
	"github.com/tollgate-dev/tollgate/adapters/relational/relationaltest"
	"github.com/tollgate-dev/tollgate/ports/methodstore/methodstoretest"
)

func TestMethods(t *testing.T) {
	for name, open := range relationaltest.Databases(t) {
		t.Run(name, func(t *testing.T) {
			methodstoretest.Run(t, func(t *testing.T) methodstoretest.Opened {
				return methodstoretest.Opened{Methods: methodrecords.NewMethods(open(t).DB)}
			})
		})
	}
}
