package permit_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/permit"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/authority/authoritytest"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// log is an audit log. It returns failure from each call.
type log struct {
	failure error
	records int
	brief   bool // the last call was one that does not wait for its turn
}

func (l *log) Record(ctx context.Context, _ authority.Act) error {
	l.records++
	l.brief = transaction.IsBrief(ctx)
	return l.failure
}

// TestRefuse checks which error the caller gets, and that a change that has waited for the database
// in vain does not make the caller wait for its record too.
func TestRefuse(t *testing.T) {
	full := errors.New("the log is full")
	for name, c := range map[string]struct {
		cause, failure, want error
		brief                bool
	}{
		"refused": {
			cause: fault.New(fault.Forbidden, "no grant"), want: fault.New(fault.Forbidden, "no grant"),
		},
		"refused and not recorded": {cause: fault.New(fault.Forbidden, "no grant"), failure: full, want: full},
		"unavailable": {
			cause: fault.New(fault.Unavailable, "busy"), want: fault.New(fault.Unavailable, "busy"), brief: true,
		},
		"unavailable, not recorded": {
			cause: fault.New(fault.Unavailable, "busy"), failure: full,
			want: fault.New(fault.Unavailable, "busy"), brief: true,
		},
		"a defect that is not stored": {cause: errors.New("defect"), failure: full, want: errors.New("defect")},
	} {
		t.Run(name, func(t *testing.T) {
			l := &log{failure: c.failure}
			err := permit.Refuse(t.Context(), l, authority.Act{
				Caller: authoritytest.Person("ada"), Action: "publish",
			}, c.cause)
			if !strings.Contains(err.Error(), c.want.Error()) {
				t.Errorf("the error is %v, want %v", err, c.want)
			}
			if l.records != 1 || l.brief != c.brief {
				t.Errorf("it was recorded %d times, without a wait: %t", l.records, l.brief)
			}
		})
	}
	l := &log{}
	if err := permit.Refuse(t.Context(), l, authority.Act{}, nil); err != nil || l.records != 0 {
		t.Errorf("without a cause: %v, %d records", err, l.records)
	}
	for _, c := range []authority.Caller{{}, authority.Operator()} {
		if err := permit.Refuse(t.Context(), l, authority.Act{Caller: c}, full); !errors.Is(err, full) ||
			l.records != 0 {
			t.Errorf("of nobody, or an operator: %v, %d records", err, l.records)
		}
	}
}
