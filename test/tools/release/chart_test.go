package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/must"
)

// TestChart reads the chart back: its files are below a folder with its name, and its version is
// that of the release.
func TestChart(t *testing.T) {
	s, out := example(t), t.TempDir()
	s.version = "v1.2.3-rc.1-4-gabc"
	must.Succeed(t, s.writeChart(out, t.TempDir()))
	content, err := os.ReadFile(filepath.Join(out, "tollgate-1.2.3-rc.1+4.gabc.tgz"))
	must.Succeed(t, err)
	compressed, err := gzip.NewReader(bytes.NewReader(content))
	must.Succeed(t, err)
	found := map[string]string{}
	for archive := tar.NewReader(compressed); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		must.Succeed(t, err)
		text, err := io.ReadAll(archive)
		must.Succeed(t, err)
		found[h.Name] = string(text)
	}
	for _, name := range []string{"values.yaml", "values.schema.json", "templates/deployment.yaml", "templates/tests/ready.yaml"} {
		if want, err := os.ReadFile(filepath.Join(root, chartFolder, name)); err != nil || found["tollgate/"+name] != string(want) {
			t.Errorf("the archive has not %s as it is in the repository (%v)", name, err)
		}
	}
	for _, line := range []string{"name: tollgate\n", "\nversion: 1.2.3-rc.1+4.gabc\n", "\nappVersion: 1.2.3-rc.1+4.gabc\n"} {
		if !strings.Contains(found["tollgate/Chart.yaml"], line) {
			t.Errorf("Chart.yaml has not %q:\n%s", line, found["tollgate/Chart.yaml"])
		}
	}
}
