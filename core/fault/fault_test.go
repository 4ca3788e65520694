package fault_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/jsonvalue"
)

func TestKindOf(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		err  error
		want fault.Kind
	}{
		"no error":         {nil, fault.Internal},
		"an error unknown": {io.EOF, fault.Internal},
		"a zero fault":     {&fault.Error{}, fault.Internal},
		"a fault":          {fault.New(fault.Conflict, "taken"), fault.Conflict},
		"a wrapped fault":  {fmt.Errorf("save: %w", fault.New(fault.NotFound, "gone")), fault.NotFound},
		"joined faults":    {errors.Join(io.EOF, fault.New(fault.Invalid, "bad")), fault.Invalid},
		"the outer fault": {
			fault.Wrap(fault.Unavailable, "away", fault.New(fault.NotFound, "gone")), fault.Unavailable,
		},
	}
	for name, c := range cases {
		if got := fault.KindOf(c.err); got != c.want {
			t.Errorf("%s: KindOf = %s, want %s", name, got, c.want)
		}
		if got := fault.Is(c.err, c.want); got != (c.err != nil) {
			t.Errorf("%s: Is(%s) = %t", name, c.want, got)
		}
	}
	if fault.Is(nil, fault.Internal) {
		t.Error("no error is an internal one")
	}
}

func TestKindNames(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for k := fault.Internal; k <= fault.Unavailable; k++ {
		if name := k.String(); name == "" || seen[name] {
			t.Errorf("kind %d is called %q, want a name of its own", k, name)
		}
		seen[k.String()] = true
	}
	if got := fault.Kind(200).String(); got != "internal" {
		t.Errorf("an unknown kind is called %q, want internal", got)
	}
}

func TestErrorText(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		err  *fault.Error
		want string
	}{
		"message":           {fault.New(fault.Invalid, "limit is wrong").WithCode("code"), "limit is wrong"},
		"format":            {fault.Newf(fault.Invalid, "%d is wrong", 7), "7 is wrong"},
		"message and cause": {fault.Wrap(fault.Unavailable, "database is away", io.EOF), "database is away: EOF"},
		"cause alone":       {fault.Wrap(fault.Internal, "", io.EOF), "EOF"},
	}
	for name, c := range cases {
		if got := c.err.Error(); got != c.want {
			t.Errorf("%s: Error = %q, want %q", name, got, c.want)
		}
	}
}

func TestAsAndUnwrap(t *testing.T) {
	t.Parallel()
	f := fault.Wrap(fault.Exhausted, "too many", io.EOF).WithCode("rate_limit").WithDetail("limit", jsonvalue.Number(5)).
		WithDetail("window", jsonvalue.Text("1m")).After(time.Second)
	got, ok := fault.As(fmt.Errorf("try: %w", f))
	if !ok || got != f || got.Code != "rate_limit" || got.RetryAfter != time.Second {
		t.Errorf("As = %+v, %t, want the fault itself", got, ok)
	}
	if len(got.Details) != 2 || got.Details.Int("limit") != 5 || got.Details.Text("window") != "1m" {
		t.Errorf("Details = %v, want both", got.Details)
	}
	if !errors.Is(f, io.EOF) {
		t.Error("the cause is not found in the chain")
	}
	if _, ok := fault.As(io.EOF); ok {
		t.Error("an error that is not a fault became one")
	}
}

func TestOneOf(t *testing.T) {
	t.Parallel()
	type word string
	for text, want := range map[string]string{
		"a": "", "c": "", "x": `the word must be a, b or c, not "x"`, "": `the word must be a, b or c, not ""`,
		strings.Repeat("ä", 61): `the word must be a, b or c, not "` + strings.Repeat("ä", 60) + `"`,
	} {
		got, err := fault.OneOf[word]("the word", text, "a", "b", "c")
		if want == "" && (err != nil || string(got) != text) {
			t.Errorf("%s: %q, %v", text, got, err)
		}
		if want != "" && (!fault.Is(err, fault.Invalid) || err.Error() != want || got != "") {
			t.Errorf("%s: %q, %v; want %s", text, got, err, want)
		}
	}
	if _, err := fault.OneOf[word]("the word", "x", "a", "b"); err == nil || err.Error() != `the word must be a or b, not "x"` {
		t.Errorf("of two words: %v", err)
	}
}
