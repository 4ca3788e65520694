package traffic

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/ratelimit"
)

// fileMode lets only the user of the service read recordings: they contain values of callers.
const fileMode = 0o600

// storage is an open file. *os.File implements it.
type storage interface {
	io.WriteCloser
	Truncate(size int64) error
	Stat() (os.FileInfo, error)
}

// file is a recording that grows. A new file begins when it has its greatest size.
type file struct {
	path    string
	maxSize int64
	to      storage // nil while the file is not open
	size    int64
	checked time.Time // when follow last looked at the path
	// open opens the file at the path; openFile, except in tests.
	open func(path string, now time.Time) (opened, error)
}

// opened is a file that was opened, and what it has.
type opened struct {
	to   storage
	size int64
	last time.Time // of the last line; zero without one
}

// openFile opens a recording to append to it, or creates it. A last line that is incomplete,
// because the process was killed, is removed. A recording with a time after now is renamed first:
// lines are in order of time. The error says so if the file is not a recording.
func openFile(path string, now time.Time) (opened, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() { // opening a pipe would wait for its reader
		return opened{}, fmt.Errorf("%s is not a regular file", path)
	}
	// #nosec G304 -- the operator names the file
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, fileMode)
	if err != nil {
		return opened{}, fmt.Errorf("open the recording: %w", err)
	}
	o, err := readEnd(f)
	if err == nil {
		err = f.Chmod(fileMode)
	}
	if err == nil && o.last.After(now) {
		_ = f.Close() // nothing was written
		if err := os.Rename(path, path+".1"); err != nil {
			return opened{}, fmt.Errorf("rename the recording: %w", err)
		}
		return openFile(path, now)
	}
	if err != nil {
		_ = f.Close() // nothing was written
		return opened{}, fmt.Errorf("continue the recording %s: %w", path, err)
	}
	return o, nil
}

// readEnd returns the size of a recording and the time of its last line. It removes what follows
// the last line.
func readEnd(f *os.File) (opened, error) {
	info, err := f.Stat()
	if err != nil {
		return opened{}, err
	}
	o := opened{to: f, size: info.Size()}
	end := make([]byte, min(o.size, 2*(maxLine+1)))
	if _, err := f.ReadAt(end, o.size-int64(len(end))); err != nil && !errors.Is(err, io.EOF) {
		return opened{}, err
	}
	complete := bytes.LastIndexByte(end, '\n') + 1
	if o.last, err = lastTime(end[:complete]); err != nil {
		return opened{}, err
	}
	rest := end[complete:]
	if len(rest) == 0 {
		return o, nil
	}
	if !isBeginning(rest) {
		return opened{}, errors.New("it does not end with a recorded request")
	}
	o.size -= int64(len(rest))
	return o, f.Truncate(o.size)
}

// lastTime returns the time of the last one of complete lines; zero without one.
func lastTime(lines []byte) (time.Time, error) {
	if len(lines) == 0 {
		return time.Time{}, nil
	}
	lines = lines[:len(lines)-1]
	var p parser
	last, err := p.parseLine(lines[bytes.LastIndexByte(lines, '\n')+1:])
	if err != nil {
		return time.Time{}, fmt.Errorf("its last line is not a recorded request: %w", err)
	}
	return last.at, nil
}

// isBeginning reports whether a text is the beginning of a line.
func isBeginning(text []byte) bool {
	n := min(len(text), len(lineBegins))
	return len(text) <= maxLine && string(text[:n]) == lineBegins[:n]
}

// start opens the file and returns the time of its last line.
func (f *file) start(now time.Time) (time.Time, error) {
	o, err := f.open(f.path, now)
	if err != nil {
		return time.Time{}, err
	}
	f.to, f.size = o.to, o.size
	return o.last, nil
}

// checkInterval is the time between two looks at the path.
const checkInterval = time.Second

// follow closes a file that the path does not name any more because it was renamed or removed, for
// example by logrotate. The next write opens the path again. A file that was truncated goes on with
// its own size.
func (f *file) follow(now time.Time) {
	if f.to == nil || now.Sub(f.checked) < checkInterval {
		return
	}
	f.checked = now
	own, err := f.to.Stat()
	if err != nil {
		return // the next write shows what is wrong
	}
	named, err := os.Stat(f.path)
	switch {
	case errors.Is(err, os.ErrNotExist), err == nil && !os.SameFile(own, named):
		f.close()
		f.size = 0
	case err == nil:
		f.size = min(f.size, named.Size())
	}
}

// hasRoom reports whether a line fits into the file after others that are not written yet. A file
// without lines has room for one of any length.
func (f *file) hasRoom(others, line int) bool {
	size := f.size + int64(others)
	return size == 0 || size+int64(line) <= f.maxSize
}

// write appends lines. If that fails, the file does not have any of them, or the next start removes
// the rest.
func (f *file) write(lines []byte, now time.Time) error {
	if f.to == nil {
		if _, err := f.start(now); err != nil {
			return err
		}
	}
	n, err := f.to.Write(lines)
	if err == nil {
		f.size += int64(n)
		return nil
	}
	if n > 0 && f.to.Truncate(f.size) != nil {
		f.close() // the next start removes an incomplete line
	}
	return fmt.Errorf("write the recording: %w", err)
}

// rotate renames the file to FILE.1. The next write creates a new one.
func (f *file) rotate() error {
	f.close()
	if err := os.Rename(f.path, f.path+".1"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("rename the recording: %w", err)
	}
	f.size = 0
	return nil
}

func (f *file) close() {
	if f.to != nil {
		_ = f.to.Close() // what was written is written; an error of the disk shows at the next write
		f.to = nil
	}
}

// Reader reads a recording. It is not safe for concurrent use.
type Reader struct {
	lines  *bufio.Reader
	number int
	parser parser
}

// NewReader returns a Reader of a recording.
func NewReader(r io.Reader) *Reader {
	return &Reader{lines: bufio.NewReaderSize(r, maxLine+1)}
}

// Next returns the next request and its time. The request is valid until the next call.
//
// Errors: io.EOF after the last line; fault.Invalid with the number of a line that is malformed;
// and those of the reader.
func (r *Reader) Next() (time.Time, *ratelimit.Request, error) {
	line, err := r.lines.ReadSlice('\n')
	switch {
	case errors.Is(err, io.EOF) && len(line) == 0:
		return time.Time{}, nil, io.EOF
	case err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull):
		return time.Time{}, nil, fmt.Errorf("read line %d: %w", r.number+1, err)
	}
	r.number++
	if errors.Is(err, bufio.ErrBufferFull) {
		return time.Time{}, nil, r.AtLine(fmt.Errorf("it is longer than %d bytes", maxLine))
	}
	e, err := r.parser.parseLine(bytes.TrimSuffix(line, []byte{'\n'}))
	if err != nil {
		return time.Time{}, nil, r.AtLine(err)
	}
	return e.at, &e.request, nil
}

// AtLine returns fault.Invalid with the number of the last line and what is wrong with it. It
// returns other faults than fault.Invalid as they are: they are not about the line.
func (r *Reader) AtLine(err error) error {
	what := err.Error()
	if f, ok := fault.As(err); ok {
		if f.Kind != fault.Invalid {
			return err
		}
		what = f.Message
	}
	return fault.Newf(fault.Invalid, "line %d: %s", r.number, what)
}
