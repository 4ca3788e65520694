package site

import (
	"slices"
	"testing"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/jsonvalue"
)

func TestProblemsOf(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]Problem{
		"it exists": {"", "It exists."},
		"statusMessage is allowed with deprecated only":    {"message", "Message is allowed with deprecated only."},
		"reason must say why, in words":                    {"reason", "The reason must say why, in words."},
		"include: resource pattern \"x\" is wrong":         {"include", "Include: resource pattern \"x\" is wrong."},
		"resource pattern must not be empty":               {"resource", "The pattern of servers must not be empty."},
		"names are not inputs":                             {"", "Names are not inputs."},
		"the name of a view must not be all: it is there.": {"name", "Name must not be all: it is there."},
		"": {"", ""},
	} {
		if got := ProblemsOf(fault.New(fault.Invalid, message)); !slices.Equal(got, Problems{want}) {
			t.Errorf("the problems of %q are %+v", message, got)
		}
	}
	locked := fault.New(fault.Forbidden, "the account is locked")
	for until, want := range map[string]string{
		"2027-01-01T00:00:00.000Z": " after too many wrong passwords or codes, until 1\u00a0Jan\u00a02027, 00:00\u00a0UTC.",
		"9999-12-31T23:59:59.000Z": ", until an operator unlocks it.",
	} {
		got := ProblemsOf(locked.WithDetail("lockoutUntil", jsonvalue.Text(until)))
		if len(got) != 1 || got[0].Text != "The account is locked"+want {
			t.Errorf("locked until %s: %q", until, got)
		}
	}
	fields := auth.InvalidFields(auth.CodeInvalidInput, map[string]string{"newPassword": "is wrong", "a": "is missing"})
	got := ProblemsOf(fields)
	if want := (Problems{{"a", "A is missing."}, {"newPassword", "New password is wrong."}}); !slices.Equal(got, want) {
		t.Errorf("the problems are %+v", got)
	}
	if got.Of("a") != "A is missing." || got.Of("b") != "" || got.At("b").Of("b") != "A is missing." ||
		got.Of("b") != "" {
		t.Errorf("the problems of fields are %q, %q", got.Of("a"), got.Of("b"))
	}
}
