package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/must"
)

// unit is the values of each key of the section [Service] of a unit.
type unit map[string][]string

// value returns the value of a key that is set once.
func (u unit) value(key string) string { return strings.Join(u[key], "\n") }

// bySystemd are the keys whose effect needs systemd itself: filters of system calls, name spaces of
// users, control groups, a limit that root of a container cannot raise, and the order of starts
// and stops.
var bySystemd = []string{
	"ExecStart", "LimitNOFILE", "Restart", "RestartSec", "KillMode", "TimeoutStopSec", "TasksMax",
	"PrivateUsers", "ProtectClock", "ProtectControlGroups", "ProtectHostname", "ProtectKernelLogs", "ProtectKernelModules", "RemoveIPC",
	"RestrictAddressFamilies", "RestrictNamespaces", "RestrictRealtime", "RestrictSUIDSGID", "LockPersonality",
	"MemoryDenyWriteExecute", "SystemCallArchitectures", "SystemCallFilter", "SystemCallErrorNumber",
}

// mounts are the shell commands, on a machine whose root is in $root, that do what a key with a
// value does to the files that the service sees.
var mounts = map[string]string{
	"ProtectSystem=strict":               `mount --bind "$root" "$root"; mount -o remount,bind,ro "$root"`,
	"StateDirectory=tollgate":            `mount --bind "$state" "$root/var/lib/tollgate"; mount -o remount,bind,rw "$root/var/lib/tollgate"`,
	"PrivateTmp=true":                    `mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"; mount -t tmpfs -o mode=1777 tmpfs "$root/var/tmp"`,
	"ProtectHome=true":                   `for folder in home root; do mount -t tmpfs -o ro,mode=0755 tmpfs "$root/$folder"; done`,
	"PrivateDevices=true":                `mount -t tmpfs -o mode=0755 tmpfs "$root/dev"; for device in null zero full random urandom; do : >"$root/dev/$device"; mount --bind "/dev/$device" "$root/dev/$device"; done`,
	"ProtectProc=invisible":              `mount -t proc -o hidepid=invisible,subset=pid proc "$root/proc"`,
	"ProcSubset=pid":                     `: # with ProtectProc`,
	"ProtectKernelTunables=true":         `mount -t tmpfs -o ro tmpfs "$root/sys"`,
	"StateDirectoryMode=0700":            `chmod 0700 "$state"`,
	"UMask=0077":                         `umask 0077`,
	"CapabilityBoundingSet=":             `set -- --bounding-set=-all --inh-caps=-all "$@"`,
	"NoNewPrivileges=true":               `set -- --no-new-privs "$@"`,
	"User=tollgate":                      `set -- --reuid="$user" --clear-groups "$@"`,
	"Group=tollgate":                     `set -- --regid="$group" "$@"`,
	"WorkingDirectory=/var/lib/tollgate": `: # by env --chdir`,
}

// order is that in which the commands of mounts run: what is mounted read-only comes before what
// is mounted in it, and the programs that mount are outside of it.
var order = []string{
	"StateDirectoryMode", "ProtectSystem", "StateDirectory", "PrivateTmp", "ProtectHome",
	"PrivateDevices", "ProtectProc", "ProcSubset", "ProtectKernelTunables", "UMask", "CapabilityBoundingSet", "NoNewPrivileges", "User", "Group", "WorkingDirectory",
}

func readUnit(t *testing.T, path string) unit {
	t.Helper()
	text, err := os.ReadFile(path)
	must.Succeed(t, err)
	_, section, _ := strings.Cut(string(text), "[Service]\n")
	section, _, _ = strings.Cut(section, "\n[")
	u := unit{}
	for line := range strings.Lines(section) {
		if name, value, found := strings.Cut(strings.TrimSpace(line), "="); found && !strings.HasPrefix(line, "#") {
			u[name] = append(u[name], value)
		}
	}
	return u
}

// command returns the start of the service on a machine, under the restrictions of the unit. It
// fails if the unit has a restriction that the test does not know.
func (u unit) command(t *testing.T, m machine) *exec.Cmd {
	t.Helper()
	state := filepath.Join(m.root, "var/lib", u.value("StateDirectory"))
	must.Succeed(t, os.MkdirAll(state, 0o700))
	ids := strings.Fields(m.run(t, "sh", "-c", `id -u "$1"; id -g "$1"; chown "$1:" "/var/lib/$2"`, "sh",
		u.value("User"), u.value("StateDirectory")))
	lines := []string{"set -e", "root=$1 state=$2 user=$3 group=$4; shift 4"}
	known := append(slices.Clone(bySystemd), "Environment", "EnvironmentFile")
	for _, key := range order {
		command, found := mounts[key+"="+u.value(key)]
		if !found {
			t.Errorf("the test has no command for %s=%s", key, u.value(key))
		}
		lines, known = append(lines, command), append(known, key)
	}
	for key := range u {
		if !slices.Contains(known, key) {
			t.Errorf("the test does not know the key %s of the unit", key)
		}
	}
	lines = append(lines, `exec chroot "$root" setpriv "$@"`)
	arguments := []string{"--mount", "sh", "-c", strings.Join(lines, "\n"), "sh",
		m.root, state, ids[0], ids[1], "env", "-i", "--chdir=" + u.value("WorkingDirectory"), "PATH=/usr/sbin:/usr/bin"}
	arguments = append(arguments, strings.Fields(u.value("Environment"))...)
	file := filepath.Join(m.root, strings.TrimPrefix(u.value("EnvironmentFile"), "-"))
	text, err := os.ReadFile(file)
	must.Succeed(t, err)
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			arguments = append(arguments, line)
		}
	}
	return exec.Command("unshare", append(arguments, strings.Fields(u.value("ExecStart"))...)...)
}
