package instance

import (
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/uptrace/bun/driver/pgdriver"
)

// Postgres is a PostgreSQL server that belongs to one test, which may kill, freeze and start it
// again. Its methods are not safe for concurrent use.
type Postgres struct {
	Address string // host:port, the same for the server's whole life

	dir, bin   string
	credential *syscall.Credential // the account of the server process; nil for the account of the test
	cmd        *exec.Cmd
	thaw       func() // ends the guard of a frozen server; nil while it runs
}

// postgresFolder returns the folder of PostgreSQL's programs, or "" if it is not installed.
func postgresFolder() string {
	folders, _ := filepath.Glob("/usr/lib/postgresql/*/bin") // the pattern is well formed
	if path, err := exec.LookPath("postgres"); err == nil {
		folders = append(folders, filepath.Dir(path))
	}
	for _, folder := range slices.Backward(folders) {
		if _, err := os.Stat(filepath.Join(folder, "initdb")); err == nil {
			return folder
		}
	}
	return ""
}

// PostgresInstalled reports whether PostgreSQL is installed.
func PostgresInstalled() bool { return postgresFolder() != "" }

// NewPostgres creates a server with an empty cluster. The server is not started yet. Its files are
// in a folder for the servers of one process, which the account of PostgreSQL must be able to
// enter, and which the caller removes.
func NewPostgres(folder string) (*Postgres, error) {
	dir, err := os.MkdirTemp(folder, "postgres-")
	if err != nil {
		return nil, fmt.Errorf("folder of PostgreSQL: %w", err)
	}
	p := &Postgres{Address: net.JoinHostPort("127.0.0.1", FreePort()), dir: dir, bin: postgresFolder()}
	if os.Geteuid() == 0 { // PostgreSQL refuses to run as root
		if err := p.runAs("postgres"); err != nil {
			return nil, err
		}
	}
	return p, p.copyCluster(filepath.Join(folder, "cluster"))
}

// making is locked while a process makes the cluster that its servers begin with.
var making sync.Mutex

// copyCluster copies an empty cluster, which is much faster than initdb. The first call makes it.
func (p *Postgres) copyCluster(template string) error {
	making.Lock()
	defer making.Unlock()
	commands := []*exec.Cmd{exec.Command("cp", "-a", template, p.dir+"/data")}
	if _, err := os.Stat(template); err != nil {
		commands = []*exec.Cmd{
			p.newCommand("initdb", "-D", p.dir+"/data", "-U", "tollgate", "--auth=trust", "--encoding=UTF8",
				"--locale=C", "--no-sync"),
			exec.Command("cp", "-a", p.dir+"/data", template),
		}
	}
	for _, cmd := range commands {
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", cmd.Path, err, out)
		}
	}
	return nil
}

// NewStandby creates a server that follows the changes of p, and starts it. p is stopped while its
// files are copied. Until Promote the standby can only be read.
func (p *Postgres) NewStandby() (*Postgres, error) {
	dir, err := os.MkdirTemp(filepath.Dir(p.dir), "postgres-")
	if err != nil {
		return nil, fmt.Errorf("folder of PostgreSQL: %w", err)
	}
	s := &Postgres{Address: net.JoinHostPort("127.0.0.1", FreePort()), dir: dir, bin: p.bin, credential: p.credential}
	if err := s.follow(p); err != nil {
		s.Remove()
		return nil, err
	}
	return s, nil
}

// follow copies the files of a server and starts as its standby.
func (p *Postgres) follow(primary *Postgres) error {
	if c := p.credential; c != nil {
		if err := os.Chown(p.dir, int(c.Uid), int(c.Gid)); err != nil {
			return fmt.Errorf("folder of PostgreSQL: %w", err)
		}
	}
	primary.Stop()
	host, port, _ := net.SplitHostPort(primary.Address) // made by NewPostgres
	script := `cp -a "$1" data && touch data/standby.signal && echo "primary_conninfo = 'host=$2 port=$3 user=tollgate'" >>data/postgresql.auto.conf`
	copying := exec.Command("/bin/sh", "-c", script, "sh", primary.dir+"/data", host, port)
	copying.Dir = p.dir
	copying.SysProcAttr = &syscall.SysProcAttr{Credential: p.credential}
	if out, err := copying.CombinedOutput(); err != nil {
		return fmt.Errorf("copy the files of PostgreSQL: %w\n%s", err, out)
	}
	if err := primary.Start(); err != nil {
		return err
	}
	return p.Start()
}

// Promote makes a standby a server that can be written.
func (p *Postgres) Promote() error {
	db := p.Open()
	defer func() { _ = db.Close() }() // the connection was only used for the call
	if _, err := db.Exec("SELECT pg_promote()"); err != nil {
		return fmt.Errorf("promote: %w", err)
	}
	return nil
}

func (p *Postgres) runAs(name string) error {
	account, err := user.Lookup(name)
	if err != nil {
		return fmt.Errorf("account of PostgreSQL: %w", err)
	}
	uid, errUID := strconv.ParseUint(account.Uid, 10, 32)
	gid, errGID := strconv.ParseUint(account.Gid, 10, 32)
	p.credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return errors.Join(errUID, errGID, os.Chown(p.dir, int(uid), int(gid)))
}

func (p *Postgres) newCommand(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(p.bin, program), args...)
	cmd.Dir = p.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: p.credential}
	// it ends at once, with the processes of its connections, and returns its shared memory
	endWithTest(cmd, syscall.SIGQUIT)
	return cmd
}

// URL returns the URL of the server's database, with an address of the caller's choice.
func (p *Postgres) URL(address string) string {
	u := url.URL{
		Scheme: "postgres", User: url.User("tollgate"), Host: address, Path: "/postgres", RawQuery: "sslmode=disable",
	}
	return u.String()
}

// Open returns connections to the server, for a client that is not the service.
func (p *Postgres) Open() *sql.DB {
	return sql.OpenDB(pgdriver.NewConnector(pgdriver.WithDSN(p.URL(p.Address))))
}

// Start starts the server and waits until it accepts connections.
func (p *Postgres) Start() error {
	_, port, _ := net.SplitHostPort(p.Address) // made by NewPostgres
	p.cmd = p.newCommand("postgres", "-D", p.dir+"/data", "-p", port, "-k", p.dir,
		// files that Remove deletes
		"-c", "listen_addresses=127.0.0.1", "-c", "fsync=off", "-c", "dynamic_shared_memory_type=mmap")
	if err := p.cmd.Start(); err != nil {
		p.cmd = nil
		return fmt.Errorf("start postgres: %w", err)
	}
	db := p.Open()
	defer func() { _ = db.Close() }() // the connection was only used for the ping
	var err error
	for end := time.Now().Add(startTimeout); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if err = db.Ping(); err == nil {
			return nil
		}
	}
	p.Stop()
	return fmt.Errorf("postgres does not answer: %w", err)
}

// Stop ends the server and all its connections at once. It does nothing if the server does not run.
func (p *Postgres) Stop() {
	if p.cmd == nil {
		return
	}
	_ = p.Thaw()                             // a frozen process would not end
	_ = p.cmd.Process.Signal(syscall.SIGINT) // it may have ended by itself
	_ = p.cmd.Wait()                         // likewise
	p.cmd = nil
}

// Remove ends the server and deletes its files.
func (p *Postgres) Remove() {
	p.Stop()
	_ = os.RemoveAll(p.dir) // a temporary folder; the system removes what is left
}

// Freeze suspends the server and the processes that serve its connections.
func (p *Postgres) Freeze() error {
	ids, err := p.signalAll(syscall.SIGSTOP)
	if err != nil {
		return err
	}
	// A process that is suspended does not notice that its server was killed with the test.
	p.thaw, err = Guard(ids...)
	return err
}

// Thaw resumes a frozen server.
func (p *Postgres) Thaw() error {
	if p.thaw != nil {
		p.thaw()
		p.thaw = nil
	}
	_, err := p.signalAll(syscall.SIGCONT)
	return err
}

// signalAll sends a signal to the server, which then starts no more processes, and to the processes
// that it started. It returns the ids of all.
func (p *Postgres) signalAll(s syscall.Signal) (ids []string, err error) {
	if err := p.cmd.Process.Signal(s); err != nil {
		return nil, fmt.Errorf("signal postgres: %w", err)
	}
	ids = append(ids, strconv.Itoa(p.cmd.Process.Pid))
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		// The name of the program, in parentheses, may hold anything (proc_pid_stat(5)).
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		if len(fields) < 2 || fields[1] != ids[0] {
			continue
		}
		id := filepath.Base(filepath.Dir(path))
		if pid, err := strconv.Atoi(id); err == nil {
			_ = syscall.Kill(pid, s) // it may have ended
			ids = append(ids, id)
		}
	}
	return ids, nil
}
