package pluginhost

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/test/must"
)

func FuzzManifest(f *testing.F) {
	files, err := filepath.Glob("testdata/wrong/*.yaml")
	must.Succeed(f, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		must.Succeed(f, err)
		f.Add(text)
	}
	f.Add([]byte("plugins:\n  - {name: otp-a, kind: courier, file: b, env: {A: b}, limits: {call_timeout: 3s}}\n"))
	cfg := Config{Dir: "/plugins", CallTimeout: 10 * time.Second}.withPace()
	f.Fuzz(func(t *testing.T, text []byte) {
		specs, err := parseManifest(text, cfg)
		if err != nil {
			return
		}
		seen := map[string]bool{}
		for _, s := range specs {
			if seen[s.name] || !pluginName.MatchString(s.name) || s.kind == "" || filepath.Dir(s.path) != cfg.Dir ||
				s.sum != nil && len(s.sum) != sha256Bytes || s.limits.start <= 0 || s.limits.call <= 0 ||
				s.limits.message < 1 {
				t.Errorf("accepted %+v", s)
			}
			seen[s.name] = true
		}
	})
}

func FuzzLines(f *testing.F) {
	for _, seed := range []string{
		"plain\n", `{"@message":"m","@level":"warn","@timestamp":"x","a":[1]}` + "\n", `{"@message":5}`,
		"[ERROR] a\n\n[",
		"panic: a\ngoroutine 1\n", strings.Repeat("x", maxLine+1), "\xff\n{\n",
		`{"@message":"fatal","@level":"fatal","plugin":1,"kind":2,"msg":3}`,
	} {
		f.Add([]byte(seed), uint8(3))
	}
	f.Fuzz(func(t *testing.T, output []byte, step uint8) {
		var logged bytes.Buffer
		log := logrus.New()
		log.SetOutput(&logged)
		log.SetLevel(logrus.TraceLevel)
		log.SetFormatter(&logrus.JSONFormatter{})
		l := &logWriter{log: log.WithField(fieldPlugin, "mine"), defaultLevel: logrus.WarnLevel}
		for rest := output; len(rest) > 0; {
			n := min(int(step)+1, len(rest))
			if written, err := l.Write(rest[:n]); err != nil || written != n {
				t.Fatalf("Write = %d, %v", written, err)
			}
			rest = rest[n:]
		}
		l.flushLine()
		count := 0
		for line := range strings.Lines(logged.String()) {
			var entry map[string]any
			if err := json.Unmarshal([]byte(line), &entry); err != nil {
				t.Fatalf("line %q: %v", line, err)
			}
			if entry["plugin"] != "mine" {
				t.Errorf("line %q is not marked as the plugin's", line)
			}
			count++
		}
		if most := bytes.Count(output, []byte{'\n'}) + 1; count > most {
			t.Errorf("%d lines out of %d", count, most)
		}
	})
}

func TestLineIsCutNotSplit(t *testing.T) {
	t.Parallel()
	var logged bytes.Buffer
	log := logrus.New()
	log.SetOutput(&logged)
	l := &logWriter{log: logrus.NewEntry(log), defaultLevel: logrus.InfoLevel}
	for range 100 {
		_, _ = l.Write(bytes.Repeat([]byte("x"), 1000))
	}
	_, _ = l.Write([]byte("\nend\n"))
	if n := strings.Count(logged.String(), "level=info"); n != 2 {
		t.Errorf("%d lines, want 2", n)
	}
	if n := strings.Count(logged.String(), "x"); n != maxLine {
		t.Errorf("%d characters kept, want %d", n, maxLine)
	}
}
