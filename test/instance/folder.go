package instance

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
)

// runVariable is the environment variable in which test/run.sh passes its process id.
const runVariable = "TEST_RUN"

// folders is the number of folders that NewFolder has created.
var folders atomic.Int64

// NewFolder creates a temporary folder for this process, which the caller removes. It first removes
// those of the same name that processes left which were killed.
func NewFolder(name string) (string, error) {
	removeAbandoned(name)
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("%s-%s-%d", name, processID(os.Getpid()), folders.Add(1)))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", fmt.Errorf("temporary folder: %w", err)
	}
	return dir, nil
}

// RunFolder returns a temporary folder for the test processes of one run: those below one test/run.sh, or else those
// of one go test, which have the same parent. It first removes those that other runs left.
func RunFolder(name string) (string, error) {
	removeAbandoned(name)
	run, err := strconv.Atoi(os.Getenv(runVariable))
	if err != nil {
		run = os.Getppid()
	}
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("%s-%s-%d", name, processID(run), 0))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("temporary folder: %w", err)
	}
	return dir, nil
}

// removeAbandoned removes the folders of processes that have ended.
func removeAbandoned(name string) {
	prefix := filepath.Join(os.TempDir(), name+"-")
	found, _ := filepath.Glob(prefix + "*") // the pattern is well formed
	for _, dir := range found {
		id := ownedFolder.FindStringSubmatch(strings.TrimPrefix(dir, prefix))
		if id == nil {
			continue
		}
		if pid, err := strconv.ParseInt(id[2], idBase, 0); err == nil && processID(int(pid)) != id[1] {
			_ = os.RemoveAll(dir) // another user's stays
		}
	}
}

// ownedFolder matches what follows the name of a folder: the process, with its start time, and a
// number.
var ownedFolder = regexp.MustCompile(`^(([0-9a-z]+)-[0-9a-z]+)-[0-9]+$`)

// idBase is the base of the numbers of a process, so that names are short.
const idBase = 36

// processID identifies a process. It contains the start time of the process if the system has
// /proc, because systems reuse process ids.
func processID(pid int) string {
	id := strconv.FormatInt(int64(pid), idBase)
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return id
	}
	// The name of the program, in parentheses, may hold anything (proc_pid_stat(5)). The start time
	// is the 20th field after it.
	if fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:])); len(fields) > 19 {
		if start, err := strconv.ParseInt(fields[19], 10, 64); err == nil {
			return id + "-" + strconv.FormatInt(start, idBase)
		}
	}
	return id
}
