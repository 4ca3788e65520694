package prometheus_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	metrics "github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/prometheus"
)

// readPage returns the page of metrics, with a line break before its first line.
func readPage(t *testing.T, r *prometheus.Registry) string {
	t.Helper()
	answer := httptest.NewRecorder()
	r.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if answer.Code != http.StatusOK {
		t.Fatalf("status %d: %s", answer.Code, answer.Body)
	}
	return "\n" + answer.Body.String()
}

// checkSamples fails the test for each sample that is not a line of the page.
func checkSamples(t *testing.T, page string, samples ...string) {
	t.Helper()
	for _, sample := range samples {
		if !strings.Contains(page, "\n"+sample+"\n") {
			t.Errorf("the page has no sample %s", sample)
		}
	}
}

func TestBuildAndProcess(t *testing.T) {
	r := prometheus.New(prometheus.Build{Version: "v1.2.3"})
	got := readPage(t, r)
	checkSamples(t, got, `tollgate_build_info{goversion="`+runtime.Version()+`",revision="unknown",version="v1.2.3"} 1`)
	for _, name := range []string{"\ngo_goroutines ", "\nprocess_start_time_seconds "} {
		if !strings.Contains(got, name) {
			t.Errorf("the page has no metric %q", name)
		}
	}
}

// TestConcurrentReadersAreLimited checks that a reader above the limit is refused while the others
// wait, and that readers are accepted again afterwards.
func TestConcurrentReadersAreLimited(t *testing.T) {
	const limit = 5
	r := prometheus.New(prometheus.Build{})
	began, release := make(chan struct{}, limit), make(chan struct{})
	r.MustRegister(metrics.NewGaugeFunc(metrics.GaugeOpts{Name: "slow", Help: "Waits."}, func() float64 {
		began <- struct{}{}
		<-release
		return 1
	}))
	h := r.Handler()
	readStatus := func() int {
		answer := httptest.NewRecorder()
		h.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		return answer.Code
	}
	codes := make(chan int, limit)
	for range limit {
		go func() { codes <- readStatus() }()
	}
	for range limit {
		<-began
	}
	extra := make(chan int, 1)
	go func() { extra <- readStatus() }()
	select {
	case code := <-extra:
		if code != http.StatusServiceUnavailable {
			t.Errorf("the reader above the limit gets status %d, want 503", code)
		}
	case <-began:
		t.Error("the reader above the limit is accepted")
	}
	close(release)
	for range limit {
		if code := <-codes; code != http.StatusOK {
			t.Errorf("a reader below the limit gets status %d, want 200", code)
		}
	}
	if code := readStatus(); code != http.StatusOK {
		t.Errorf("a reader after all others gets status %d, want 200", code)
	}
}

// TestLogLevels checks that each level has a sample before the first log line, that lines below the
// level of the log are not counted, and that lines of another log are not counted.
func TestLogLevels(t *testing.T) {
	r, other := prometheus.New(prometheus.Build{}), prometheus.New(prometheus.Build{})
	log := logrus.New()
	log.SetOutput(io.Discard)
	prometheus.CountLog(log, r)
	prometheus.CountLog(logrus.New(), other)
	checkSamples(t, readPage(t, r), `tollgate_log_entries_total{level="error"} 0`,
		`tollgate_log_entries_total{level="fatal"} 0`)
	log.Error("broken")
	log.WithField("a", "b").Error("broken")
	log.Warn("odd")
	log.Debug("not written")
	checkSamples(t, readPage(t, r), `tollgate_log_entries_total{level="error"} 2`,
		`tollgate_log_entries_total{level="warning"} 1`, `tollgate_log_entries_total{level="debug"} 0`)
	checkSamples(t, readPage(t, other), `tollgate_log_entries_total{level="error"} 0`)
}
