package browsing_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/browsing"
	"github.com/tollgate-dev/tollgate/test/must"
)

// publishWith publishes version 1.0.0 of a server with a document, and gives it a status.
func (s *fixture) publishWith(t testing.TB, name, document string, status registry.Status) {
	t.Helper()
	n, err := registry.ParseName(name)
	must.Succeed(t, err)
	v, err := registry.ParseVersion("1.0.0")
	must.Succeed(t, err)
	s.changeTo(t, n, []byte(document), func(l *registry.Lineage) error {
		if _, err := l.Publish(v, s.now); err != nil || status == registry.StatusActive {
			return err
		}
		u, err := registry.NewStatusUpdate(status, "")
		if err != nil {
			return err
		}
		_, err = l.SetStatus(v, u, s.now)
		return err
	})
}

// documents are what servers can offer.
var documents = []string{
	`{}`, `{"packages":[{"registryType":"npm"}]}`,
	`{"packages":[{"registryType":"pypi"},{"registryType":"oci"}],"remotes":[]}`,
	`{"remotes":[{"type":"sse","url":"https://a.example"}]}`,
	`{"packages":[{"registryType":"npm"},{}],"remotes":[{"url":"x"}]}`, `{"packages":7,"remotes":null}`,
}

// TestTraits: the pages of a filtered list together have exactly the records that match, in order,
// and each once.
func TestTraits(t *testing.T) {
	t.Parallel()
	s := newFixture()
	type server struct {
		id     string
		status registry.Status
		offer  registry.Offer
	}
	var servers []server
	statuses := []registry.Status{registry.StatusActive, registry.StatusDeprecated, registry.StatusDeleted}
	for i := range 90 {
		one := server{
			fmt.Sprintf("com.a/s%03d@1.0.0", i), statuses[i%7%3], registry.OfferOf([]byte(documents[i%len(documents)])),
		}
		s.publishWith(t, one.id[:len(one.id)-len("@1.0.0")], documents[i%len(documents)], one.status)
		servers = append(servers, one)
	}
	b := s.browser()
	rapid.Check(t, func(t *rapid.T) {
		q := browsing.Query{
			Limit:       fmt.Sprint(rapid.IntRange(1, 40).Draw(t, "limit")),
			Status:      rapid.SampledFrom([]string{"", "active", "deprecated", "deleted"}).Draw(t, "status"),
			PackageType: rapid.SampledFrom([]string{"", "npm", "oci", "nuget"}).Draw(t, "package"),
			Remote:      rapid.SampledFrom([]string{"", "true", "false"}).Draw(t, "remote"),
		}
		var want, got []string
		for _, one := range servers {
			switch {
			case q.Status == "" && one.status == registry.StatusDeleted,
				q.Status != "" && q.Status != string(one.status),
				q.PackageType != "" && !slices.Contains(one.offer.PackageTypes, q.PackageType),
				q.Remote != "" && one.offer.Remote != (q.Remote == "true"):
			default:
				want = append(want, one.id)
			}
		}
		for pages := 0; ; pages++ {
			p, err := b.List(t.Context(), q)
			if err != nil || pages > len(servers) {
				t.Fatal(pages, err)
			}
			got = append(got, ids(p.Records)...)
			if p.NextCursor == "" {
				break
			}
			q.Cursor = p.NextCursor
			if rapid.Bool().Draw(t, "cursor alone") {
				q.Status, q.PackageType, q.Remote = "", "", ""
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}

// TestTraitsAreBounded: a page ends after a thousand records that do not match.
func TestTraitsAreBounded(t *testing.T) {
	t.Parallel()
	s := newFixture()
	for i := range 1050 {
		document := documents[0]
		if i == 1020 {
			document = documents[1]
		}
		s.publishWith(t, fmt.Sprintf("com.a/s%04d", i), document, registry.StatusActive)
	}
	q := browsing.Query{PackageType: "npm"}
	p, err := s.browser().List(t.Context(), q)
	if err != nil || len(p.Records) > 0 || p.NextCursor == "" {
		t.Fatalf("the first page has %d records, cursor %q, %v", len(p.Records), p.NextCursor, err)
	}
	q.Cursor = p.NextCursor
	if p, err = s.browser().List(t.Context(), q); err != nil || len(p.Records) != 1 || p.NextCursor != "" {
		t.Errorf("the second page has %d records, cursor %q, %v", len(p.Records), p.NextCursor, err)
	}
	q.PackageType = "oci"
	if _, err := s.browser().List(t.Context(), q); !fault.Is(err, fault.Invalid) {
		t.Errorf("another filter than that of the cursor: %v", err)
	}
	for _, q := range []browsing.Query{
		{Status: "gone"}, {Remote: "yes"}, {PackageType: "a\x00b"}, {Status: "deleted", IncludeDeleted: "false"},
	} {
		if _, err := s.browser().List(t.Context(), q); !fault.Is(err, fault.Invalid) {
			t.Errorf("%+v: %v", q, err)
		}
	}
}
