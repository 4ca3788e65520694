package watching_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/tools"
	"github.com/tollgate-dev/tollgate/core/registry/watching"
	"github.com/tollgate-dev/tollgate/ports/management"
	"github.com/tollgate-dev/tollgate/test/fakedb"
)

// sealer seals secrets with what they are about.
type sealer struct{}

func (sealer) Seal(secret []byte, about string) ([]byte, error) {
	return append([]byte(about+"|"), bytes.ToUpper(secret)...), nil
}

func (sealer) Open(sealed []byte, about string) ([]byte, error) {
	secret, ok := bytes.CutPrefix(sealed, []byte(about+"|"))
	if !ok {
		return nil, errors.New("it is about something else")
	}
	return bytes.ToLower(secret), nil
}

// log keeps the changes of operators as text.
type log []string

func (l *log) RecordChanges(_ context.Context, changes ...audit.Change) error {
	for _, c := range changes {
		*l = append(*l, fmt.Sprint(c.Action, " ", c.Details))
	}
	return nil
}

// TestSources checks that headers are sealed for a server and a remote, kept without new ones, and shown
// nowhere, and that a remote of a server has one source.
func TestSources(t *testing.T) {
	db, changes := fakedb.New(), &log{}
	store := fakedb.NewToolSources(db)
	sources := watching.NewSources(watching.SourcePorts{Transactions: db, Sources: store, Recorder: changes, Sealer: sealer{}}).Objects()
	put := func(name, remote, key string) (management.Object, error) {
		f := audit.Details{"name": audit.Text(name), "server": audit.Text("com.example/weather"), "remote": audit.Text(remote)}
		if key != "" {
			f["headers"] = audit.Details{"x-api-key": audit.Text(key)}
		}
		o, _, err := sources.Put(t.Context(), management.Change{Fields: f})
		return o, err
	}
	const url, other = "https://weather.example/mcp", "https://weather.example/other"
	if _, err := put("a", url, ""); !fault.Is(err, fault.Invalid) {
		t.Errorf("a new source without headers: %v", err)
	}
	first, err := put("a", url, "sesame")
	if err != nil || strings.Join(first.Fixed.Texts("headerNames"), " ") != "x-api-key" || first.Fields["headers"] != nil {
		t.Errorf("a new source is %+v, %v", first, err)
	}
	if _, err := put("b", "HTTPS://weather.example:443/mcp", "other"); !fault.Is(err, fault.Conflict) {
		t.Errorf("a second source of the remote: %v", err)
	}
	sealed := func() tools.RemoteSource {
		s, err := store.Get(t.Context(), "a")
		if err != nil || s.Headers != nil {
			t.Errorf("stored is %+v, %v", s, err)
		}
		return s
	}
	before := sealed()
	for _, key := range []string{"", "sesame"} {
		if same, err := put("a", url, key); err != nil || !bytes.Equal(sealed().Sealed, before.Sealed) || same.Fields[audit.FieldSecret] != first.Fields[audit.FieldSecret] {
			t.Errorf("the same source is %+v, %v", same, err)
		}
	}
	if n := len(*changes); n != 1 {
		t.Errorf("%d changes are recorded, want 1", n)
	}
	if _, err := put("a", other, ""); !fault.Is(err, fault.Invalid) {
		t.Errorf("another remote keeps the headers: %v", err)
	}
	if changed, err := put("a", other, "sesame"); err != nil || bytes.Equal(sealed().Sealed, before.Sealed) || changed.Fields[audit.FieldSecret] != first.Fields[audit.FieldSecret] {
		t.Errorf("with another remote: %+v, %v", changed, err)
	}
	if text := fmt.Sprint(*changes, first); strings.Contains(strings.ToLower(text), "sesame") {
		t.Errorf("the headers are shown: %s", text)
	}
}
