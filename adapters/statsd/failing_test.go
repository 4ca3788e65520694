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
)

type none struct{ stats decide.Stats }

func (*none) Current() *ruleset.Set            { return nil }
func (*none) Loaded() uint64                   { return 0 }
func (*none) Refused() uint64                  { return 0 }
func (n *none) Stats() *decide.Stats           { return &n.stats }
func (*none) Series() iter.Seq[*decide.Series] { return func(func(*decide.Series) bool) {} }
func (*none) UnknownDomains() iter.Seq2[ratelimit.Domain, uint64] {
	return func(func(ratelimit.Domain, uint64) bool) {}
}

// TestNothingIsLostWhileTheNameIsUnknown: what could not be sent is sent when
// it can be, and the log tells of the beginning and the end, once each.
func TestNothingIsLostWhileTheNameIsUnknown(t *testing.T) {
	var counted none
	var sent bytes.Buffer
	log, said := test.NewNullLogger()
	s, err := newSink(Config{}, statistics.New(&counted, &counted, statistics.Options{}).NewChanges(), logrus.NewEntry(log))
	if err != nil {
		t.Fatal(err)
	}
	for _, failure := range []error{errors.New("no such host"), errors.New("no such host"), nil, nil} {
		s.to = opener(func(context.Context) (statsd.Sender, error) { return newLineWriter(&sent), failure })
		counted.stats.GlobalShadow.Add(2)
		s.logFailure(s.sendAll(t.Context()))
	}
	if got := sent.String(); got != "ratelimit.service.global_shadow_mode:6|c\nratelimit.service.global_shadow_mode:2|c\n" {
		t.Errorf("sent %q", got)
	}
	if n := len(said.AllEntries()); n != 2 {
		t.Errorf("the log has %d lines", n)
	}
}
