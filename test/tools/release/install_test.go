package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/instance"
	"github.com/tollgate-dev/tollgate/test/must"
)

// machine is a Debian in a folder, on which the package is installed: a layer above another root
// folder, so that everything that changes is in one folder and the other root stays as it is.
type machine struct {
	root    string
	changes string
}

// newMachine returns a machine above the Debian that the test runs on. In a long test it is above a
// new one, if debootstrap is installed.
func newMachine(t *testing.T) machine {
	t.Helper()
	if os.Getuid() != 0 || here.os != "linux" {
		t.Skip("needs root on Linux")
	}
	for _, name := range []string{"dpkg", "systemd-sysusers", "systemd-tmpfiles", "setpriv", "unshare", "chroot"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("needs Debian with systemd: %v", err)
		}
	}
	base := "/"
	if bootstrap, err := exec.LookPath("debootstrap"); err == nil && !testing.Short() {
		base = newDebian(t, bootstrap)
	}
	parent := t.TempDir()
	mount(t, "tmpfs", parent, "mode=0755") // a layer must not be inside the other one
	m := machine{root: filepath.Join(parent, "root"), changes: filepath.Join(parent, "changes")}
	work := filepath.Join(parent, "work")
	for _, folder := range []string{m.root, m.changes, work} {
		must.Succeed(t, os.Mkdir(folder, 0o755))
	}
	options := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", base, m.changes, work)
	mount(t, "overlay", m.root, options)
	return m
}

// mount mounts a file system until the test ends, or skips the test where that is not permitted.
func mount(t *testing.T, kind, folder, options string) {
	t.Helper()
	if err := syscall.Mount(kind, folder, kind, 0, options); err != nil {
		t.Skipf("needs a system that may mount: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(folder, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

// newDebian installs a small Debian with systemd into a folder, from the source of this machine.
func newDebian(t *testing.T, bootstrap string) string {
	t.Helper()
	script := `set -euo pipefail; here=$1; . "$here/install.sh"; name=$(codename); read -r uri key <<<"$(debian_source "$name")"
exec "$2" --variant=minbase --include=systemd,ca-certificates ${key:+--keyring="$key"} "$name" "$3" "$uri"`
	folder := filepath.Join(t.TempDir(), "debian")
	servers := filepath.Join(root, "test", "servers")
	c := exec.CommandContext(t.Context(), "bash", "-c", script, "bash", servers, bootstrap, folder)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("debootstrap: %v\n%s", err, out)
	}
	return folder
}

// run runs a command on the machine, which must succeed.
func (m machine) run(t *testing.T, args ...string) string {
	t.Helper()
	// In a namespace of its own, /proc is that of the machine, and ends with the command.
	script := `set -e; mount -t proc proc "$0/proc"; mount --rbind /dev "$0/dev"; exec chroot "$0" "$@"`
	args = append([]string{"--mount", "--pid", "--fork", "sh", "-c", script, m.root}, args...)
	c := exec.CommandContext(t.Context(), "unshare", args...)
	c.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C"}
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// changed returns the files that differ from those of the machine before, without folders and what
// dpkg and the system keep about what has happened.
func (m machine) changed(t *testing.T) (paths []string) {
	t.Helper()
	kept := regexp.MustCompile(`^/(var/lib/dpkg/|var/log/|var/cache/|etc/(passwd|group|shadow|gshadow)-?$|etc/\.pwd\.lock$|run/|tmp/)`)
	err := filepath.WalkDir(m.changes, func(path string, entry fs.DirEntry, err error) error {
		if name := strings.TrimPrefix(path, m.changes); err == nil && !entry.IsDir() && !kept.MatchString(name) {
			paths = append(paths, name)
		}
		return err
	})
	must.Succeed(t, err)
	return paths
}

// TestDeb installs the package on a machine, runs the service as its unit says, removes the package
// and then its configuration, and compares what is left with what was there before.
func TestDeb(t *testing.T) {
	m := newMachine(t)
	writeDeb(t, filepath.Join(m.root, "tmp"))
	m.run(t, "dpkg", "--install", "/tmp/tollgate_1.2.3-1_"+here.arch+".deb")
	if told := m.run(t, "/usr/bin/tollgate", "--version"); !strings.Contains(told, "version") {
		t.Errorf("tollgate --version prints %q", told)
	}
	checkInstalled(t, m)
	checkService(t, m)

	m.run(t, "dpkg", "--remove", "tollgate")
	left := m.changed(t)
	for _, path := range left {
		if !strings.HasPrefix(path, "/etc/tollgate/") && !strings.HasPrefix(path, "/var/lib/tollgate/") {
			t.Errorf("after the removal there is %s", path)
		}
	}
	if !slices.Contains(left, "/etc/tollgate/tollgate.env") || !slices.Contains(left, "/var/lib/tollgate/tollgate.db") {
		t.Errorf("after the removal there must be settings and data, but there are %v", left)
	}
	m.run(t, "dpkg", "--purge", "tollgate")
	if _, err := os.Stat(filepath.Join(m.root, "etc/tollgate")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after the purge there is /etc/tollgate (%v)", err)
	}
	left = m.changed(t)
	for _, path := range left {
		if !strings.HasPrefix(path, "/var/lib/tollgate/") {
			t.Errorf("after the purge there is %s", path)
		}
	}
	if !slices.Contains(left, "/var/lib/tollgate/tollgate.db") {
		t.Errorf("after the purge there must be data, but there are %v", left)
	}
}

// writeDeb writes the package into a folder, with the programs that a service runs without settings,
// and small ones in place of the others.
func writeDeb(t *testing.T, out string) {
	t.Helper()
	s, files := collectPrograms(t)
	for i, f := range files {
		if f.executable && f.name != "tollgate" && f.name != "plugins/pkg-npm" {
			files[i].from = filepath.Join(smallPrograms(t), here.os, here.arch, f.name)
		}
	}
	must.Succeed(t, s.writePackage(out, "deb", here, files))
}

// collectPrograms returns the source of the tests and its files with the real programs.
func collectPrograms(t *testing.T) (source, []file) {
	t.Helper()
	s, folder := example(t), filepath.Join(programs(t), here.os, here.arch)
	completions, err := writeCompletions(t.Context(), folder, t.TempDir())
	must.Succeed(t, err)
	files, err := s.collect(here, folder, completions)
	must.Succeed(t, err)
	return s, files
}

// checkInstalled checks the user, owners and modes, and that no link enables the service.
func checkInstalled(t *testing.T, m machine) {
	t.Helper()
	shown := m.run(t, "stat", "--format=%n %a %U:%G", "/etc/tollgate", "/etc/tollgate/tollgate.env",
		"/etc/tollgate/secrets", "/usr/lib/tollgate/tollgate", "/usr/lib/tollgate/plugins/otp-email")
	want := `/etc/tollgate 750 root:tollgate
/etc/tollgate/tollgate.env 640 root:root
/etc/tollgate/secrets 750 root:tollgate
/usr/lib/tollgate/tollgate 755 root:root
/usr/lib/tollgate/plugins/otp-email 755 root:root
`
	if shown != want {
		t.Errorf("the files are\n%swant\n%s", shown, want)
	}
	user := m.run(t, "getent", "passwd", "tollgate")
	if !strings.HasSuffix(user, ":/var/lib/tollgate:/usr/sbin/nologin\n") {
		t.Errorf("the user is %q", user)
	}
	enabled := filepath.Join(m.root, "etc/systemd/system/multi-user.target.wants/tollgate.service")
	if _, err := os.Lstat(enabled); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the service must not be enabled (%v)", err)
	}
}

// checkService starts the service under the restrictions of its unit, reads its health and the page
// of the first account, and stops it.
func checkService(t *testing.T, m machine) {
	t.Helper()
	ports := map[string]string{"PORT": "", "RATELIMIT_HTTP_PORT": "", "GRPC_PORT": "", "DEBUG_PORT": ""}
	settings := "HOST=127.0.0.1\nLOG_FORMAT=json\n"
	for name := range ports {
		ports[name] = instance.FreePort()
		settings += name + "=" + ports[name] + "\n"
	}
	file := filepath.Join(m.root, "etc/tollgate/tollgate.env")
	must.Succeed(t, os.WriteFile(file, []byte(settings), 0o640))
	u := readUnit(t, filepath.Join(m.root, "usr/lib/systemd/system/tollgate.service"))
	c := u.command(t, m)
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	must.Succeed(t, err)
	defer log.Close()
	c.Stdout, c.Stderr = log, log
	must.Succeed(t, c.Start())
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	text := func() string {
		content, _ := os.ReadFile(log.Name()) // empty until it is written
		return string(content)
	}
	defer func() {
		if t.Failed() {
			t.Logf("the service logged\n%s", text())
		}
	}()
	base := "http://127.0.0.1:" + ports["PORT"]
	await.Until(t, "the service is healthy", func() bool { return get(base+"/health") != "" || len(ended) > 0 })
	setup := regexp.MustCompile(`/console/setup\?code=[^"\s\\]+`)
	await.Until(t, "the address of the first account is in the log", func() bool {
		return setup.MatchString(text()) || len(ended) > 0
	})
	page := get(base + setup.FindString(text()))
	if !strings.Contains(page, "<form") || !strings.Contains(page, "password") {
		t.Errorf("the page of the first account is %q", page)
	}
	checkProcess(t, m, u, c.Process.Pid)
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if err := await.Receive(t, "the end of the service", ended); err != nil {
		t.Errorf("the service ended with %v", err)
	}
}

// get returns the body of a response with status 200, and else nothing.
func get(url string) string {
	response, err := http.Get(url)
	if err != nil {
		return ""
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		return ""
	}
	return string(body)
}

// checkProcess checks what the kernel says about the process of the service: its user, no
// capabilities, and no way to new ones.
func checkProcess(t *testing.T, m machine, u unit, pid int) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	must.Succeed(t, err)
	id := strings.TrimSpace(m.run(t, "id", "-u", u.value("User")))
	for _, want := range []string{
		"Name:\ttollgate", "Uid:\t" + id + "\t" + id, "NoNewPrivs:\t1", "CapEff:\t0000000000000000",
		"CapBnd:\t0000000000000000",
	} {
		if !bytes.Contains(status, []byte("\n"+want)) && !bytes.HasPrefix(status, []byte(want)) {
			t.Errorf("the process lacks %q:\n%s", want, status)
		}
	}
}
