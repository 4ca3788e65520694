package registryjson

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/ports/recordsource"
	"github.com/tollgate-dev/tollgate/test/must"
	"github.com/tollgate-dev/tollgate/test/upstream"
)

func newTestSpool(t testing.TB) *spool {
	t.Helper()
	s, err := newSpool(NewMirrorSource().limits)
	must.Succeed(t, err)
	t.Cleanup(func() { _ = s.close() }) // no test depends on its error
	return s
}

func TestSpoolReturnsRecordsByName(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		type record struct{ name, text string }
		names := rapid.SliceOfN(rapid.OneOf(rapid.StringN(0, 5, 20), rapid.Just(strings.Repeat("n", maxSpoolName))), 1,
			5).Draw(r, "names")
		var want []record
		s, err := newSpool(NewMirrorSource().limits)
		must.Succeed(r, err)
		defer s.close()
		for i := range rapid.IntRange(0, 40).Draw(r, "n") {
			e := record{rapid.SampledFrom(names).Draw(r, "name"), fmt.Sprintf(`{"i":%d}`, i)}
			if rapid.Bool().Draw(r, "too large") {
				e.text = ""
			}
			must.Succeed(r, s.add(e.name, []byte(e.text)))
			want = append(want, e)
		}
		slices.SortStableFunc(want, func(a, b record) int { return strings.Compare(a.name, b.name) })
		must.Succeed(r, s.flush())
		s.sort()
		var got []record
		for _, i := range s.order {
			text, err := s.text(int(i))
			must.Succeed(r, err)
			got = append(got, record{string(s.name(int(i))), string(text)})
		}
		if !slices.Equal(got, want) {
			r.Fatalf("got %q, want %q", got, want)
		}
	})
}

func TestSpoolBoundsNames(t *testing.T) {
	t.Parallel()
	s := newTestSpool(t)
	s.limits.names = 2 * nameChunk
	var err error
	for i := 0; err == nil && i < 1_000_000; i++ {
		err = s.add(fmt.Sprintf("%0255d", i), []byte("{}"))
	}
	if want := 2 * (nameChunk / 256); s.count() != want || err == nil ||
		err.Error() != "the names in the list have more than 2097152 bytes" {
		t.Errorf("%d records, want %d, then %v", s.count(), want, err)
	}
	if err := s.add(string(s.name(s.count()-1)), []byte("{}")); err != nil {
		t.Errorf("a record with the name before it: %v", err)
	}
	for i := range s.count() - 1 {
		if got, want := string(s.name(i)), fmt.Sprintf("%0255d", i); got != want {
			t.Fatalf("name %d is %s, want %s", i, got, want)
		}
	}
}

func TestFullDisk(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skipf("this system has no device that is full: %v", err)
	}
	s := newTestSpool(t)
	s.file.Close()
	s.file, s.out = full, bufio.NewWriterSize(full, 1<<10)
	err = s.add("a", make([]byte, 2<<10))
	var failed *spoolError
	if want := "the folder for temporary files, " + os.TempDir() + ", is full"; !errors.As(err, &failed) ||
		explain(err) != want {
		t.Errorf("add returned %v", err)
	}
	if s.flush() == nil {
		t.Error("flush after an error returned none")
	}
}

func TestListBoundsRecordsOfOneServer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		records int
		text    string
		want    int // readable records
	}{
		"as many as possible":  {recordsource.MaxServerRecords, `{"name":"a"}`, recordsource.MaxServerRecords},
		"one more":             {recordsource.MaxServerRecords + 1, `{"name":"a"}`, recordsource.MaxServerRecords},
		"as large as possible": {64, `{"name":"` + strings.Repeat("a", 1<<20-11) + `"}`, 64},
		"large messages": {
			66,
			`{"server":{},"_meta":{"` + officialKey + `":{"statusMessage":"` + strings.Repeat("a", 1<<20-98) + `"}}}`,
			64,
		},
		"larger": {66, `{"name":"` + strings.Repeat("a", 1<<20-11) + `"}`, 64},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTestSpool(t)
			for range c.records {
				must.Succeed(t, s.add("a", []byte(c.text)))
			}
			must.Succeed(t, errors.Join(s.add("b", []byte(`{}`)), s.flush()))
			s.sort()
			list := &mirrorList{records: s, origin: "http://127.0.0.1"}
			server, err := list.Next(t.Context())
			must.Succeed(t, err)
			readable := slices.IndexFunc(server.Entries, isUnreadable)
			switch {
			case c.want == c.records:
				if readable != -1 || len(server.Entries) != c.records {
					t.Errorf("%d entries, %d readable", len(server.Entries), readable)
				}
			case readable != c.want || len(server.Entries) != c.want+1:
				t.Errorf("%d entries, %d readable, want %d", len(server.Entries), readable, c.want)
			default:
				if want := fmt.Sprintf("; %d records are left out",
					c.records-c.want); !strings.HasSuffix(server.Entries[readable].Unreadable.Error(), want) {
					t.Errorf("last entry is %v, want %s", server.Entries[readable].Unreadable, want)
				}
			}
			if next, err := list.Next(t.Context()); err != nil || next.Name != "b" || len(next.Entries) != 1 {
				t.Errorf("next server is %q, %v", next.Name, err)
			}
		})
	}
}

func TestListShortensErrors(t *testing.T) {
	t.Parallel()
	s := newTestSpool(t)
	text := `{"server":{},"_meta":{"` + officialKey + `":{"publishedAt":"` + strings.Repeat("é", 1<<18) + `"}}}`
	must.Succeed(t, errors.Join(s.add("a", []byte(text)), s.flush()))
	s.sort()
	server, err := (&mirrorList{records: s}).Next(t.Context())
	if err != nil || server.Entries[0].Unreadable == nil {
		t.Fatalf("Next returned %.200v, %v", server, err)
	}
	if got := server.Entries[0].Unreadable.Error(); len(got) > maxProblem+len("…") ||
		!strings.HasPrefix(got, "_meta of the record has an invalid status or time") {
		t.Errorf("error is %.500q", got)
	}
}

// BenchmarkSpool reports the memory that the index of 100,000 records of different servers keeps.
func BenchmarkSpool(b *testing.B) {
	const records = 100_000
	text := []byte(`{"server":{"name":"io.github.example/server"},"_meta":{}}`)
	for b.Loop() {
		s := newTestSpool(b)
		before := heap()
		for i := range records {
			must.Succeed(b, s.add(fmt.Sprintf("io.github.example-%06d/a-server-name-%06d", i*7919%records, i),
				text))
		}
		s.sort()
		b.ReportMetric(float64(heap()-before)/records, "kept-B/record")
		must.Succeed(b, s.close())
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func BenchmarkNameOf(b *testing.B) {
	record := []byte(
		`{"server":` + upstream.Document("com.example/a", "1.0.0", "A server.") + `,"_meta":{"` + officialKey +
			`":{"status":"active"}}}`)
	b.ReportAllocs()
	for b.Loop() {
		if nameOf(record) != "com.example/a" {
			b.Fatal("another name")
		}
	}
}

func isUnreadable(e recordsource.Entry) bool { return e.Unreadable != nil }
