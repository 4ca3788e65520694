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

// page is what the metrics look like now.
func page(t *testing.T, r *prometheus.Registry) string {
	t.Helper()
	answer := httptest.NewRecorder()
	r.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if answer.Code != http.StatusOK {
		t.Fatalf("status %d: %s", answer.Code, answer.Body)
	}
	return "\n" + answer.Body.String()
}

func contains(t *testing.T, page string, samples ...string) {
	t.Helper()
	for _, sample := range samples {
		if !strings.Contains(page, "\n"+sample+"\n") {
			t.Errorf("%s is not there", sample)
		}
	}
}

func TestBuildAndProcess(t *testing.T) {
	r := prometheus.New(prometheus.Build{Version: "v1.2.3"})
	got := page(t, r)
	contains(t, got, `tollgate_build_info{goversion="`+runtime.Version()+`",revision="unknown",version="v1.2.3"} 1`)
	for _, name := range []string{"\ngo_goroutines ", "\nprocess_start_time_seconds "} {
		if !strings.Contains(got, name) {
			t.Errorf("%q is not there", name)
		}
	}
}

// TestReadersAreBounded checks that one reader too many is refused while the others
// wait, and let in again afterwards.
func TestReadersAreBounded(t *testing.T) {
	const most = 5
	r := prometheus.New(prometheus.Build{})
	began, leave := make(chan struct{}, most), make(chan struct{})
	r.MustRegister(metrics.NewGaugeFunc(metrics.GaugeOpts{Name: "slow", Help: "Waits."}, func() float64 {
		began <- struct{}{}
		<-leave
		return 1
	}))
	h := r.Handler()
	read := func() int {
		answer := httptest.NewRecorder()
		h.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		return answer.Code
	}
	codes := make(chan int, most)
	for range most {
		go func() { codes <- read() }()
	}
	for range most {
		<-began
	}
	oneMore := make(chan int, 1)
	go func() { oneMore <- read() }()
	select {
	case code := <-oneMore:
		if code != http.StatusServiceUnavailable {
			t.Errorf("one more is answered %d", code)
		}
	case <-began:
		t.Error("one more is let in")
	}
	close(leave)
	for range most {
		if code := <-codes; code != http.StatusOK {
			t.Errorf("one who waited is answered %d", code)
		}
	}
	if code := read(); code != http.StatusOK {
		t.Errorf("afterwards one is answered %d", code)
	}
}

// TestLogLevels wants each level there before anything was logged, and a line
// below the log's level not counted. Another service's log is its own.
func TestLogLevels(t *testing.T) {
	r, other := prometheus.New(prometheus.Build{}), prometheus.New(prometheus.Build{})
	log := logrus.New()
	log.SetOutput(io.Discard)
	prometheus.CountLog(log, r)
	prometheus.CountLog(logrus.New(), other)
	contains(t, page(t, r), `tollgate_log_entries_total{level="error"} 0`, `tollgate_log_entries_total{level="fatal"} 0`)
	log.Error("broken")
	log.WithField("a", "b").Error("broken")
	log.Warn("odd")
	log.Debug("not written")
	contains(t, page(t, r), `tollgate_log_entries_total{level="error"} 2`,
		`tollgate_log_entries_total{level="warning"} 1`, `tollgate_log_entries_total{level="debug"} 0`)
	contains(t, page(t, other), `tollgate_log_entries_total{level="error"} 0`)
}
