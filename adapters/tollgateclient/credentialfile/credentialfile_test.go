package credentialfile

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/must"
)

func TestRoundTrip(t *testing.T) {
	f := New(filepath.Join(t.TempDir(), "a", "b", "credentials.json"))
	if c, err := f.Read(); err != nil || !reflect.DeepEqual(c, Contents{}) {
		t.Fatalf("a missing file contains %+v, %v", c, err)
	}
	want := Contents{
		Device: Device{"ua"},
		SignIn: &SignIn{
			"work", "https://example.com", true, "ca.pem", "e", &Tokens{"a", "r", time.Unix(1, 0).UTC(), true}, &Challenge{
				"c", "SMS_OTP",
			},
		},
		DeviceTokens: []DeviceToken{{"u", "e", "t"}},
	}
	must.Succeed(t, f.Update(t.Context(), func(c *Contents) { *c = want }))
	if got, err := f.Read(); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("read %+v, %v", got, err)
	}
	for path, mode := range map[string]os.FileMode{
		f.Path(): 0o600, f.Path() + ".lock": 0o600, filepath.Dir(f.Path()): 0o700,
	} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: mode %#o, want %#o, %v", path, info.Mode().Perm(), mode, err)
		}
	}
	if entries, err := os.ReadDir(filepath.Dir(f.Path())); err != nil || len(entries) != 2 {
		t.Errorf("the folder contains %v, %v", entries, err)
	}
}

// TestUnusableFiles checks that errors name the file, and that the file is not overwritten.
func TestUnusableFiles(t *testing.T) {
	for name, spoil := range map[string]func(path string) error{
		"readable by others": func(path string) error { return os.WriteFile(path, []byte("{}"), 0o644) },
		"readable by group":  func(path string) error { return os.WriteFile(path, []byte("{}"), 0o640) },
		"no credentials":     func(path string) error { return os.WriteFile(path, []byte("nonsense"), 0o600) },
		"a folder":           func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		f := New(filepath.Join(t.TempDir(), "credentials.json"))
		must.Succeed(t, spoil(f.Path()))
		if _, err := f.Read(); err == nil || !strings.Contains(err.Error(), f.Path()) {
			t.Errorf("%s: %v", name, err)
		}
		if err := f.Update(t.Context(), func(*Contents) {}); err == nil || !strings.Contains(err.Error(), f.Path()) {
			t.Errorf("%s: Update returned %v", name, err)
		}
	}
}

// TestParallelUpdates checks that no change is lost.
func TestParallelUpdates(t *testing.T) {
	path := filepath.Join(t.TempDir(), "credentials.json")
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			err := New(path).Update(t.Context(), func(c *Contents) {
				c.KeepDeviceToken(DeviceToken{"https://example.com", string(rune('a' + i)), "t"})
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if c, err := New(path).Read(); err != nil || len(c.DeviceTokens) != 8 {
		t.Errorf("after eight changes: %+v, %v", c, err)
	}
}

// TestDeviceTokens checks that a device token belongs to one service and one person.
func TestDeviceTokens(t *testing.T) {
	var c Contents
	for _, d := range []DeviceToken{{"u1", "e1", "1"}, {"u1", "e2", "2"}, {"u2", "e1", "3"}, {"u1", "e1", "4"}} {
		c.KeepDeviceToken(d)
	}
	for _, want := range []DeviceToken{{"u1", "e1", "4"}, {"u1", "e2", "2"}, {"u2", "e1", "3"}, {"u2", "e2", ""}} {
		if got := c.DeviceToken(want.URL, want.Email); got != want.Token {
			t.Errorf("%+v: %q", want, got)
		}
	}
	if len(c.DeviceTokens) != 3 {
		t.Errorf("the stored tokens are %+v", c.DeviceTokens)
	}
}
