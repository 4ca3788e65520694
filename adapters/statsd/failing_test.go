package statsd

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"testing"

	"github.com/cactus/go-statsd-client/v5/statsd"
	"github.com/sirupsen/logrus"
	"github.com/sirupsen/logrus/hooks/test"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/ratelimit/decide"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
	"github.com/tollgate-dev/tollgate/core/ratelimit/statistics"
	"github.com/tollgate-dev/tollgate/test/must"
)

// noSeries are statistics without series.
type noSeries struct{ stats decide.Stats }

func (*noSeries) Current() *ruleset.Set            { return nil }
func (*noSeries) Loaded() uint64                   { return 0 }
func (*noSeries) Refused() uint64                  { return 0 }
func (n *noSeries) Stats() *decide.Stats           { return &n.stats }
func (*noSeries) Series() iter.Seq[*decide.Series] { return func(func(*decide.Series) bool) {} }
func (*noSeries) UnknownDomains() iter.Seq2[ratelimit.Domain, uint64] {
	return func(func(ratelimit.Domain, uint64) bool) {}
}

// TestNothingIsLostWhileHostIsUnknown checks that counts that could not be sent are sent later, and
// that the log has one line when sending begins to fail and one when it works again.
func TestNothingIsLostWhileHostIsUnknown(t *testing.T) {
	var counted noSeries
	var sent bytes.Buffer
	log, logged := test.NewNullLogger()
	s, err := newSink(Config{}, statistics.New(&counted, &counted, statistics.Options{}).NewChanges(),
		logrus.NewEntry(log))
	must.Succeed(t, err)
	for _, failure := range []error{errors.New("no such host"), errors.New("no such host"), nil, nil} {
		s.to = opener(func(context.Context) (statsd.Sender, error) { return newLineWriter(&sent), failure })
		counted.stats.GlobalShadow.Add(2)
		s.logFailure(s.sendAll(t.Context()))
	}
	if got := sent.String(); got !=
		"ratelimit.service.global_shadow_mode:6|c\nratelimit.service.global_shadow_mode:2|c\n" {
		t.Errorf("the sink sent %q", got)
	}
	if n := len(logged.AllEntries()); n != 2 {
		t.Errorf("the log has %d lines, want 2", n)
	}
}
