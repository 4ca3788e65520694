package decisionlog_test

import (
	"bytes"
	"errors"
	"io"
	"net/netip"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/decisionlog"
	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/access/deciding"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/trustlevel"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestCallsAreReadAgain reads calls of each kind of subject as they were written.
func TestCallsAreReadAgain(t *testing.T) {
	var out bytes.Buffer
	log := logrus.New()
	log.SetOutput(&out)
	log.SetFormatter(&logrus.JSONFormatter{FieldMap: logrus.FieldMap{logrus.FieldKeyMsg: "@message", logrus.FieldKeyTime: "@timestamp"}})
	l := decisionlog.New(logrus.NewEntry(log))
	subjects := []access.Subject{
		{}, access.NewSubject(access.Member{Kind: access.Person, ID: "ada@example.com", Trust: trustlevel.LimitedTrust}),
		access.NewSubject(access.Member{Kind: access.Service, ID: "ci", Trust: trustlevel.FullTrust}),
		access.NewSubject(access.Member{Kind: access.Foreign, ID: "https://login.example a b", Trust: trustlevel.Unverified}),
	}
	q := deciding.Question{Call: access.NewCall("tools/call", "forecast"), From: netip.MustParseAddr("192.0.2.7")}
	for _, s := range subjects {
		log.Info("something else")
		l.DecidedCall(t.Context(), &q, &deciding.Answer{
			Decision: access.Decision{Effect: access.Deny, Reason: access.ByDefault, Server: "com.example/a"}, Subject: s,
		})
	}
	l.DecidedCall(t.Context(), &q, &deciding.Answer{Decision: access.Decision{Effect: access.Deny, Reason: access.NotListed}})
	r := decisionlog.NewReader(&out)
	for _, s := range subjects {
		got, err := r.Next()
		must.Succeed(t, err)
		if got.Subject.String() != s.String() || got.Subject.Kind() != s.Kind() || got.Subject.Trust() != s.Trust() || !got.ByRules ||
			got.Listing.Name.String() != "com.example/a" || got.Call.Tool() != "forecast" || got.From != q.From || got.At.IsZero() {
			t.Errorf("%+v is read as %+v", s, got)
		}
	}
	if got, err := r.Next(); err != nil || got.ByRules {
		t.Errorf("a server that is not listed is read as %+v, %v", got, err)
	}
	if _, err := r.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("the end is %v", err)
	}
}

// TestWrongLines: a line that is wrong is named by its number.
func TestWrongLines(t *testing.T) {
	const begin = `{"@message":"a call of a server was decided","reason":"rule"`
	for _, wrong := range []string{
		"x", begin, begin + `,"server":"com.example/a","subject":"group:x"}`, begin + `,"server":"com.example/a","trust":"x"}`,
		begin + `,"server":"com.example/a","address":"x"}`, begin + `,"server":"x"}`, strings.Repeat(" ", 2<<20),
	} {
		_, err := decisionlog.NewReader(strings.NewReader("{}\n" + wrong + "\n")).Next()
		if !fault.Is(err, fault.Invalid) || !strings.HasPrefix(err.Error(), "line 2") {
			t.Errorf("%.80s: %v", wrong, err)
		}
	}
}
