package transaction_test

import (
	"context"
	"errors"
	"testing"

	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// retrying calls do twice, as a database does whose first commit fails.
type retrying struct{ commit error }

func (r retrying) Atomically(ctx context.Context, do func(context.Context) error) error {
	if err := do(ctx); err != nil {
		return err
	}
	if err := do(ctx); err != nil {
		return err
	}
	return r.commit
}

func TestDoReturnsTheValueThatIsStored(t *testing.T) {
	calls := 0
	count := func(context.Context) (int, error) {
		calls++
		return calls, nil
	}
	if n, err := transaction.Do(t.Context(), retrying{}, count); n != 2 || err != nil {
		t.Errorf("got %d and the error %v, want the value of the second call", n, err)
	}
	away := errors.New("away")
	if n, err := transaction.Do(t.Context(), retrying{away}, count); n != 0 || !errors.Is(err, away) {
		t.Errorf("a commit that fails: got %d and the error %v", n, err)
	}
	fails := func(context.Context) (int, error) { return 7, away }
	if n, err := transaction.Do(t.Context(), retrying{}, fails); n != 0 || !errors.Is(err, away) {
		t.Errorf("a call that fails: got %d and the error %v", n, err)
	}
}
