package memcached_test

import (
	"testing"

	"github.com/tollgate-dev/tollgate/ports/counter/countertest"
	"github.com/tollgate-dev/tollgate/test/instance"
	"github.com/tollgate-dev/tollgate/test/must"
)

func TestLostSubtractionIsNotRepeated(t *testing.T) {
	address := sharedServer(t)
	cutter, err := instance.NewCutter(address)
	must.Succeed(t, err)
	t.Cleanup(cutter.Close)
	countertest.LosesResponses(t, countertest.Lossy{
		Store: openClient(t, newConfig(cutter.Address)), Safe: openClient(t, newConfig(address)), Key: newKeys(),
		Cut: cutter.Cut,
	})
}
