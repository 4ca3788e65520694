package adminapi

import (
	"context"
	"net/http"

	"github.com/tollgate-dev/tollgate/ports/identity"
)

// providerTest is the result of the test of a provider.
type providerTest struct {
	OK    bool           `json:"ok"`
	Steps []providerStep `json:"steps"`
}

type providerStep struct {
	Name    string `json:"name"`
	OK      bool   `json:"ok"`
	Message string `json:"message"`
}

func (a *API) testProvider(q *request) act {
	name := q.param("name")
	return func(ctx context.Context) (answer, error) {
		steps, err := a.use.Providers.Test(ctx, name)
		if err != nil {
			return answer{}, err
		}
		return answer{status: http.StatusOK, body: newProviderTest(steps)}, nil
	}
}

func newProviderTest(steps []identity.Step) providerTest {
	t := providerTest{OK: true, Steps: make([]providerStep, len(steps))}
	for i, s := range steps {
		t.OK, t.Steps[i] = t.OK && s.OK, providerStep(s)
	}
	return t
}
