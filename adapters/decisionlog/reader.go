package decisionlog

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net/netip"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/toolserver"
	"github.com/tollgate-dev/tollgate/core/trustlevel"
)

// callMessage is the message of a line about a call of a server.
const callMessage = "a call of a server was decided"

// maxLine is the greatest length of a line that a Reader accepts, in bytes.
const maxLine = 1 << 20

// Call is a call of a server that was decided, as far as a log says it: without groups and grants of
// the caller.
type Call struct {
	access.Question

	Listing access.Listing
	ByRules bool // a rule or the default decided; otherwise rules do not matter
}

// Reader reads the calls of a log in JSON that Log wrote. It passes other lines over.
type Reader struct {
	scanner *bufio.Scanner
	line    int
}

// NewReader returns a reader.
func NewReader(in io.Reader) *Reader {
	s := bufio.NewScanner(in)
	s.Buffer(nil, maxLine)
	return &Reader{scanner: s}
}

// callLine are the fields of a line.
type callLine struct {
	Message string    `json:"@message"`
	Time    time.Time `json:"@timestamp"`
	Reason  string    `json:"reason"`
	Subject string    `json:"subject"`
	Trust   string    `json:"trust"`
	Server  string    `json:"server"`
	Method  string    `json:"method"`
	Tool    string    `json:"tool"`
	Address string    `json:"address"`
	Client  string    `json:"client"`
}

// Next returns the next call, or io.EOF. It returns fault.Invalid, with the number of the line, for
// one that is wrong.
func (r *Reader) Next() (Call, error) {
	for r.scanner.Scan() {
		r.line++
		var l callLine
		if err := json.Unmarshal(r.scanner.Bytes(), &l); err != nil {
			return Call{}, fault.Newf(fault.Invalid, "line %d is not JSON of a log: set LOG_FORMAT=json", r.line)
		}
		if l.Message != callMessage {
			continue
		}
		call, err := l.call()
		if err != nil {
			err = fault.Newf(fault.Invalid, "line %d: %v", r.line, err)
		}
		return call, err
	}
	if err := r.scanner.Err(); err != nil {
		return Call{}, fault.Newf(fault.Invalid, "line %d cannot be read: %v", r.line+1, err)
	}
	return Call{}, io.EOF
}

func (l *callLine) call() (Call, error) {
	c := Call{}
	switch access.Reason(l.Reason) {
	case access.ByRule, access.ByDefault, access.InsufficientTrust:
		c.ByRules = true
	default:
		return c, nil
	}
	member := access.Member{}
	kind, id, _ := strings.Cut(l.Subject, ":")
	kinds := map[string]access.SubjectKind{"": access.Anonymous, "person": access.Person, "service": access.Service, "jwt": access.Foreign}
	var known bool
	if member.Kind, known = kinds[kind]; !known {
		return c, fault.Newf(fault.Invalid, "the subject %.60q is none", l.Subject)
	}
	member.ID = id
	var levelErr, addressErr, serverErr error
	if l.Trust != "" {
		member.Trust, levelErr = trustlevel.Parse(l.Trust)
	}
	if l.Address != "" {
		c.From, addressErr = netip.ParseAddr(l.Address)
	}
	c.Listing.Name, serverErr = toolserver.ParseName(l.Server)
	subject := access.NewSubject(member).WithClient(l.Client)
	if member.Kind == access.Anonymous {
		subject = access.Subject{}
	}
	c.Subject, c.At, c.Call = &subject, l.Time, access.NewCall(l.Method, l.Tool)
	return c, errors.Join(levelErr, addressErr, serverErr)
}
