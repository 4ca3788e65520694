package traffic

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/ratelimit/decide"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/test/must"
)

var errAway = errors.New("the counter store does not answer")

// refuseMallory is a decision that refuses one value, and fails for another one.
func refuseMallory(_ context.Context, r *ratelimit.Request) (ratelimit.Decision, error) {
	switch r.Descriptors[0].Entries[0].Value {
	case "mallory":
		return ratelimit.Decision{Code: ratelimit.OverLimit}, nil
	case "nobody":
		return ratelimit.Decision{}, errAway
	}
	return ratelimit.Decision{Code: ratelimit.OK}, nil
}

// wallClock is the clock of the operating system.
type wallClock struct{}

func (wallClock) Now() time.Time { return time.Now() }

// sumOf hashes a value.
func sumOf(value string) [32]byte { return sha256.Sum256([]byte("k" + value)) }

// fixture is a Recorder and what it uses.
type fixture struct {
	*Recorder
	path   string
	counts *Counts
	hook   *logtest.Hook
}

// noon is the time at which the recordings of these tests begin.
var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// newFixture returns a recorder of all requests, unless change says something else.
func newFixture(
	t *testing.T, c clock.Clock, path string, change func(*Config, *func(string, time.Time) (opened, error)),
) fixture {
	t.Helper()
	config, open := Config{File: path, Sample: 1, MaxBytes: 100 << 20}, openFile
	if change != nil {
		change(&config, &open)
	}
	must.Succeed(t, config.Validate())
	log, hook := logtest.NewNullLogger()
	f := fixture{path: path, counts: NewCounts(prometheus.NewRegistry()), hook: hook}
	var err error
	f.Recorder, err = newRecorder(config, refuseMallory, f.counts, Ports{
		Sum: sumOf, Clock: c, Log: logrus.NewEntry(log),
	}, open)
	must.Succeed(t, err)
	t.Cleanup(f.Close)
	return f
}

// call decides a request of a value.
func (f fixture) call(t *testing.T, value string) {
	t.Helper()
	if _, err := f.Decide(t.Context(), newRequest(value)); err != nil {
		t.Error(err)
	}
}

func newRequest(value string) *ratelimit.Request {
	return &ratelimit.Request{
		Domain: "shop", Descriptors: []ratelimit.Descriptor{{Entries: []ratelimit.Entry{{Key: "user", Value: value}}}},
	}
}

// count returns the number of requests with an outcome.
func (f fixture) count(outcome string) int {
	var m dto.Metric
	if err := f.counts.byOutcome[outcome].Write(&m); err != nil {
		return -1
	}
	return int(m.GetCounter().GetValue())
}

// readValues returns the values of the first entries of all requests of a recording. It checks that
// the lines are in order of time, and that others cannot read the file.
func readValues(t *testing.T, path string) (values []string) {
	t.Helper()
	content, err := os.ReadFile(path)
	must.Succeed(t, err)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%s has the mode %v, %v", path, info.Mode(), err)
	}
	var last time.Time
	r := NewReader(bytes.NewReader(content))
	for {
		at, request, err := r.Next()
		if errors.Is(err, io.EOF) {
			return values
		}
		if err != nil || at.Before(last) {
			t.Fatalf("after %v: %v, %v", last, at, err)
		}
		last = at
		values = append(values, request.Descriptors[0].Entries[0].Value)
	}
}

func wantValues(t *testing.T, path, want string) {
	t.Helper()
	if got := strings.Join(readValues(t, path), " "); got != want {
		t.Errorf("%s has %q, want %q", filepath.Base(path), got, want)
	}
}

func TestRecorder(t *testing.T) {
	clock := clocktest.NewManual(noon)
	f := newFixture(t, clock, filepath.Join(t.TempDir(), "r.jsonl"), nil)
	f.call(t, "ada")
	clock.Advance(time.Millisecond)
	f.call(t, "mallory")
	clock.Advance(-time.Hour) // the recording stops at the last time
	f.call(t, "bob")
	if _, err := f.Decide(t.Context(), newRequest("nobody")); !errors.Is(err, errAway) {
		t.Errorf("got %v", err)
	}
	f.Close()
	f.Close()
	f.call(t, "late")
	const want = `{"time":"2026-01-01T12:00:00.000000000Z","domain":"shop","descriptors":[{"entries":[{"key":"user","value":"ada"}]}],"answer":"OK"}
{"time":"2026-01-01T12:00:00.001000000Z","domain":"shop","descriptors":[{"entries":[{"key":"user","value":"mallory"}]}],"answer":"OVER_LIMIT"}
{"time":"2026-01-01T12:00:00.001000000Z","domain":"shop","descriptors":[{"entries":[{"key":"user","value":"bob"}]}],"answer":"OK"}
`
	if got, err := os.ReadFile(f.path); err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	if f.count(recorded) != 3 {
		t.Errorf("%d are counted as recorded", f.count(recorded))
	}
	wantValues(t, f.path, "ada mallory bob")
}

// TestManyCallers: a recording of many callers at once is complete and in order, also over the
// change to a new file.
func TestManyCallers(t *testing.T) {
	const callers, calls = 16, 500
	f := newFixture(t, wallClock{}, filepath.Join(t.TempDir(), "r.jsonl"),
		func(c *Config, _ *func(string, time.Time) (opened, error)) {
			c.MaxBytes = callers * calls * 70 // the lines take about twice as much
		})
	var all sync.WaitGroup
	for caller := range callers {
		all.Go(func() {
			for range calls {
				f.call(t, strconv.Itoa(caller))
			}
		})
	}
	all.Wait()
	f.Close()
	found := map[string]int{}
	for _, path := range []string{f.path + ".1", f.path} {
		for _, value := range readValues(t, path) {
			found[value]++
		}
	}
	for caller := range callers {
		if n := found[strconv.Itoa(caller)]; n != calls {
			t.Errorf("%d calls of caller %d are recorded", n, caller)
		}
	}
}

// TestSample: all requests of a key are recorded or not, and about the part that the setting says.
func TestSample(t *testing.T) {
	const keys = 20_000
	for _, part := range []float64{0.01, 0.5, 1} {
		below, all := Config{Sample: part}.threshold()
		s, sampled := sample{below, all}, 0
		for i := range keys {
			r := newRequest(strconv.Itoa(i))
			in := s.has(r)
			if in {
				sampled++
			}
			r.Hits = 3
			r.Descriptors = append(r.Descriptors, ratelimit.Descriptor{})
			if s.has(r) != in {
				t.Fatalf("key %d is in the sample for some requests only", i)
			}
		}
		if want := part * keys; float64(sampled) < 0.8*want || float64(sampled) > 1.2*want {
			t.Errorf("%d keys of %d are in a sample of %v", sampled, keys, part)
		}
	}
	for _, pair := range [][2]*ratelimit.Request{
		{
			{Domain: "a", Descriptors: newRequest("x").Descriptors}, {
				Domain: "b", Descriptors: newRequest("x").Descriptors,
			},
		},
		{
			{Descriptors: []ratelimit.Descriptor{{Entries: []ratelimit.Entry{{Key: "a", Value: "bc"}}}}}, {
				Descriptors: []ratelimit.Descriptor{{Entries: []ratelimit.Entry{{Key: "ab", Value: "c"}}}},
			},
		},
	} {
		if hashKey(pair[0]) == hashKey(pair[1]) {
			t.Errorf("%v and %v are one key", pair[0], pair[1])
		}
	}
}

func TestNewFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.jsonl")
	clock := clocktest.NewManual(noon)
	line := int64(len(
		`{"time":"2026-01-01T12:00:00.000000000Z","domain":"shop","descriptors":[{"entries":[{"key":"user","value":"a"}]}],"answer":"OK"}` + "\n"))
	f := newFixture(t, clock, path, func(c *Config, _ *func(string, time.Time) (opened, error)) {
		c.MaxBytes = 2*line + 1
	})
	for _, value := range strings.Fields("a b c d e") {
		f.call(t, value)
	}
	f.Close()
	wantValues(t, path, "e")
	wantValues(t, path+".1", "c d")

	// A line that is longer than a file may be gets a file of its own.
	f = newFixture(t, clock, path, func(c *Config, _ *func(string, time.Time) (opened, error)) { c.MaxBytes = 1 })
	f.call(t, "f")
	f.call(t, "g")
	f.Close()
	wantValues(t, path, "g")
	wantValues(t, path+".1", "f")
}

func TestHash(t *testing.T) {
	dir := t.TempDir()
	clock := clocktest.NewManual(noon)
	var lines []string
	for _, name := range []string{"before", "after"} { // a restart
		f := newFixture(t, clock, filepath.Join(dir, name),
			func(c *Config, _ *func(string, time.Time) (opened, error)) { c.Hash = true })
		f.call(t, "ada")
		f.Close()
		lines = append(lines, readValues(t, f.path)...)
	}
	sum := sumOf("ada")
	if want := hex.EncodeToString(sum[:])[:16]; lines[0] != want || lines[1] != want {
		t.Errorf("got %q, want twice %s", lines, want)
	}
}

// TestRestart: a recording goes on after its last complete line.
func TestRestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.jsonl")
	clock := clocktest.NewManual(noon)
	for _, value := range []string{"a", "b"} {
		f := newFixture(t, clock, path, nil)
		f.call(t, value)
		f.Close()
		appendTo(t, path, lineBegins+"2026") // the process was killed
	}
	must.Succeed(t, os.Chmod(path, 0o644))
	f := newFixture(t, clock, path, nil)
	f.Close()
	wantValues(t, path, "a b")

	clock.Advance(-time.Hour) // of the machine, before the next start
	f = newFixture(t, clock, path, nil)
	f.call(t, "c")
	f.Close()
	wantValues(t, path+".1", "a b")
	wantValues(t, path, "c")

	onlyPart := filepath.Join(t.TempDir(), "part")
	appendTo(t, onlyPart, lineBegins[:3])
	f = newFixture(t, clock, onlyPart, nil)
	f.call(t, "d")
	f.Close()
	wantValues(t, onlyPart, "d")
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	must.Succeed(t, err)
	_, err = f.WriteString(text)
	must.Succeed(t, errors.Join(err, f.Close()))
}

// TestWrongFiles: a file that is not a recording is an error at the start, and stays as it is.
func TestWrongFiles(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]string{
		"a note":           "it does not end with a recorded request",
		"a note\n":         "its last line is not a recorded request",
		whole + "\na note": "it does not end with a recorded request",
		whole + "\n{}\n":   "its last line is not a recorded request",
		"\n":               "its last line is not a recorded request",
		lineBegins + strings.Repeat("x", maxLine): "it does not end with a recorded request",
	} {
		path := filepath.Join(dir, "f")
		must.Succeed(t, os.WriteFile(path, []byte(text), 0o600))
		wantError(t, path, want)
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Errorf("%.20q was changed to %.20q, %v", text, got, err)
		}
	}
	wantError(t, dir, "is not a regular file")
	wantError(t, filepath.Join(dir, "missing", "f"), "no such file or directory")
}

func wantError(t *testing.T, path, want string) {
	t.Helper()
	log, _ := logtest.NewNullLogger()
	_, err := New(Config{File: path, Sample: 1, MaxBytes: 1}, refuseMallory, NewCounts(prometheus.NewRegistry()),
		Ports{Clock: clocktest.NewManual(noon), Log: logrus.NewEntry(log)})
	if err == nil || !strings.HasPrefix(err.Error(), "RATELIMIT_RECORD: ") || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: got %v, want %s", path, err, want)
	}
}

// faulty is a storage that fails.
type faulty struct {
	storage
	mutex sync.Mutex
	full  bool
	stuck chan struct{} // each write waits for it, unless it is nil
}

func (s *faulty) setFull(full bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.full = full
}

func (s *faulty) Write(p []byte) (int, error) {
	if s.stuck != nil {
		<-s.stuck
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if !s.full {
		return s.storage.Write(p)
	}
	n, err := s.storage.Write(p[:len(p)/2])
	return n, errors.Join(err, errors.New("no space left on device"))
}

// faultyFiles returns an open function whose files are those of s.
func faultyFiles(s *faulty) func(*Config, *func(string, time.Time) (opened, error)) {
	return func(_ *Config, open *func(string, time.Time) (opened, error)) {
		*open = func(path string, now time.Time) (opened, error) {
			o, err := openFile(path, now)
			s.storage, o.to = o.to, s
			return o, err
		}
	}
}

// TestFullDisk: what cannot be written is dropped, counted and logged once, the decisions go on,
// and so does the recording as soon as there is space.
func TestFullDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.jsonl")
	synctest.Test(t, func(t *testing.T) {
		disk := &faulty{}
		f := newFixture(t, wallClock{}, path, faultyFiles(disk))
		f.call(t, "a")
		synctest.Wait()
		disk.setFull(true)
		for range 3 {
			f.call(t, "lost")
			synctest.Wait()
			f.call(t, "also")
			synctest.Wait()
			time.Sleep(retryAfter)
		}
		disk.setFull(false)
		f.call(t, "b")
		f.Close()
		if f.count(recorded) != 2 || f.count(writeFailed) != 6 || len(f.hook.AllEntries()) != 1 {
			t.Errorf("%d recorded, %d failed, %d lines in the log", f.count(recorded), f.count(writeFailed),
				len(f.hook.AllEntries()))
		}
		if line := f.hook.LastEntry(); line == nil || line.Level != logrus.ErrorLevel ||
			!strings.Contains(line.Data["error"].(error).Error(), "no space") {
			t.Errorf("got %v", line)
		}
	})
	wantValues(t, path, "a b")
}

// TestFileIsMoved: a recording goes on in a new file when the operator, or logrotate, has renamed,
// removed or truncated the file. While no file can be created, requests are counted as not
// recorded.
func TestFileIsMoved(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "sub", "r.jsonl")
	check := func(err error) {
		must.Succeed(t, err)
	}
	check(os.Mkdir(filepath.Dir(path), 0o700))
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, wallClock{}, path, nil)
		record := func(value string) {
			time.Sleep(checkInterval)
			f.call(t, value)
			synctest.Wait()
		}
		record("a")
		check(os.Rename(path, path+".old"))
		record("b")
		wantValues(t, path+".old", "a")
		wantValues(t, path, "b")
		check(os.Remove(path))
		record("c")
		wantValues(t, path, "c")
		check(os.Rename(path, path+".older"))
		check(os.WriteFile(path, nil, 0o600)) // as logrotate does with create
		record("d")
		wantValues(t, path, "d")
		check(os.Truncate(path, 0)) // and with copytruncate
		record("e")
		wantValues(t, path, "e")
		if n := f.count(writeFailed); n != 0 || f.count(recorded) != 5 {
			t.Errorf("%d recorded, %d failed", f.count(recorded), n)
		}
		check(os.RemoveAll(filepath.Dir(path)))
		record("lost")
		if n := f.count(writeFailed); n != 1 || len(f.hook.AllEntries()) != 1 {
			t.Errorf("%d failed, %d lines in the log", n, len(f.hook.AllEntries()))
		}
		check(os.Mkdir(filepath.Dir(path), 0o700))
		record("f")
		f.Close()
	})
	wantValues(t, path, "f")
}

// TestSlowDisk: a disk that does not answer delays no decision, and the end of the service by
// closeTimeout only.
func TestSlowDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.jsonl")
	synctest.Test(t, func(t *testing.T) {
		disk := &faulty{stuck: make(chan struct{})}
		f := newFixture(t, wallClock{}, path, faultyFiles(disk))
		began := time.Now()
		f.call(t, "first")
		synctest.Wait() // the writer waits for the disk
		for range maxQueued + 10 {
			f.call(t, "a")
		}
		synctest.Wait()
		if n := f.count(queueFull); n != 10 || len(f.hook.AllEntries()) != 1 {
			t.Errorf("%d are dropped, %d lines in the log", n, len(f.hook.AllEntries()))
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("the decisions took %v", took)
		}
		f.Close()
		if took := time.Since(began); took != closeTimeout {
			t.Errorf("the end took %v", took)
		}
		close(disk.stuck) // the writer ends
	})
}

// TestBounds: neither long lines nor many long texts take memory without bounds.
func TestBounds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.jsonl")
	synctest.Test(t, func(t *testing.T) {
		disk := &faulty{stuck: make(chan struct{})}
		f := newFixture(t, wallClock{}, path, faultyFiles(disk))
		f.call(t, "first")
		synctest.Wait()
		f.call(t, strings.Repeat("x", maxLine))
		long := strings.Repeat("x", maxLine-1000)
		for range 100 {
			f.call(t, long)
		}
		if n := f.count(queueFull); n < 84 || n > 86 {
			t.Errorf("%d of 101 requests of 1 MiB are dropped", n)
		}
		close(disk.stuck)
		f.Close()
		if f.count(tooLong) != 1 || f.count(recorded)+f.count(queueFull)+f.count(tooLong) != 102 {
			t.Errorf("%d are too long, %d recorded, %d dropped", f.count(tooLong), f.count(recorded),
				f.count(queueFull))
		}
		if f.queued.Load() != 0 {
			t.Errorf("%d bytes are left in the queue", f.queued.Load())
		}
	})
	if values := readValues(t, path); len(values) < 15 {
		t.Errorf("%d are recorded", len(values))
	}
}

func TestConfig(t *testing.T) {
	for want, c := range map[string]Config{
		"":                                     {Sample: 1, MaxBytes: 1},
		"RATELIMIT_RECORD_SAMPLE: 0 is not":    {MaxBytes: 1},
		"RATELIMIT_RECORD_SAMPLE: 1.01 is not": {Sample: 1.01, MaxBytes: 1},
		"RATELIMIT_RECORD_MAX_BYTES: 0 is not": {Sample: 1},
	} {
		if err := c.Validate(); err == nil != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// BenchmarkDecide compares a decision without a recording with one outside and one in its sample.
func BenchmarkDecide(b *testing.B) {
	log, _ := logtest.NewNullLogger()
	r, err := New(Config{File: filepath.Join(b.TempDir(), "r.jsonl"), Sample: 1, MaxBytes: 1 << 30}, refuseMallory,
		NewCounts(prometheus.NewRegistry()),
		Ports{Clock: wallClock{}, Log: logrus.NewEntry(log)})
	must.Succeed(b, err)
	b.Cleanup(r.Close)
	outside := &Recorder{decide: refuseMallory}
	request := newRequest("user-1234567")
	for name, decider := range map[string]decide.Func{
		"off": refuseMallory, "outside": outside.Decide, "sampled": r.Decide,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := decider(b.Context(), request); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkReader measures the reading of lines.
func BenchmarkReader(b *testing.B) {
	line := head +
		`[{"entries":[{"key":"customer","value":"user-1234567"}]},{"entries":[{"key":"path","value":"/images/1.png"}]}],"answer":"OK"}` + "\n"
	recording := strings.Repeat(line, 10_000)
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	r := NewReader(strings.NewReader(recording))
	for b.Loop() {
		if _, _, err := r.Next(); err != nil {
			r = NewReader(strings.NewReader(recording))
		}
	}
}
