// Package statsd sends the statistics of the rate limit service to a metrics
// daemon, plain or tagged, or writes them to standard output: what was counted
// since the last time, at an interval and once at the end. It works beside the
// calls and is never in their way.
package statsd

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/cactus/go-statsd-client/v5/statsd"
	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/core/ratelimit/statistics"
)

// Sink sends statistics to one place.
type Sink struct {
	changes  *statistics.Changes
	interval time.Duration
	form     form
	open     func(context.Context) (statsd.Sender, error)
	times    bool // response times are sent too
	log      *logrus.Entry
	failing  bool
	warned   bool // of names that are too long
}

// form is how names and tags are written.
type form struct {
	mogrifiers mogrifiers
	tags       []statsd.Tag // behind the value
	suffix     string       // of the name
}

// ToDaemon returns a sink that sends to the metrics daemon of the settings,
// which must be valid.
func ToDaemon(c Config, changes *statistics.Changes, log *logrus.Entry) (*Sink, error) {
	s, err := newSink(c, changes, log)
	if err != nil {
		return nil, err
	}
	s.open = func(ctx context.Context) (statsd.Sender, error) { return dial(ctx, c.address()) }
	s.times = true
	return s, nil
}

// ToWriter returns a sink that writes a line for each counter that grew, as
// plain statsd has it.
func ToWriter(c Config, changes *statistics.Changes, w io.Writer, log *logrus.Entry) (*Sink, error) {
	c.Tagged = false
	s, err := newSink(c, changes, log)
	if err != nil {
		return nil, err
	}
	s.open = func(context.Context) (statsd.Sender, error) { return newLines(w), nil }
	return s, nil
}

func newSink(c Config, changes *statistics.Changes, log *logrus.Entry) (*Sink, error) {
	s := &Sink{changes: changes, interval: c.FlushInterval, log: log}
	tags, err := parseTags(c.ExtraTags)
	if err != nil {
		return nil, fmt.Errorf("EXTRA_TAGS: %w", err)
	}
	if !c.Tagged {
		s.form.suffix = nameSuffix(tags)
		return s, nil
	}
	for _, tag := range tags {
		s.form.tags = append(s.form.tags, statsd.Tag{tag[0], cleanTag(tag[1])})
	}
	s.form.mogrifiers, err = newMogrifiers(c.Mogrifiers)
	return s, err
}

// lastFlush is how long the flush at the end may take.
const lastFlush = 3 * time.Second

// Run sends until the context ends, and once more then.
func (s *Sink) Run(ctx context.Context) error {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.run(ctx)
	}()
	<-ctx.Done()
	select {
	case <-ended:
	case <-time.After(lastFlush): // standard output that nobody reads, say
		s.log.Warn("the last statistics could not be sent in time")
	}
	return nil
}

func (s *Sink) run(ctx context.Context) {
	ticker := time.NewTicker(s.interval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			s.tell(s.flush(ctx))
		case <-ctx.Done():
			s.tell(s.flush(context.WithoutCancel(ctx)))
			return
		}
	}
}

// tell logs when sending begins to fail, and when it works again.
func (s *Sink) tell(err error) {
	switch {
	case err != nil && !s.failing:
		s.log.WithError(err).Warn("statistics cannot be sent")
	case err == nil && s.failing:
		s.log.Info("statistics are sent again")
	}
	s.failing = err != nil
}

// flush sends what was counted since the last time. What could not be sent
// because the daemon's name is not known is sent the next time.
func (s *Sink) flush(ctx context.Context) error {
	sender, err := s.open(ctx)
	if err != nil {
		return err
	}
	all, err := statsd.NewClientWithSender(sender, "", statsd.SuffixOctothorpe)
	if err != nil {
		return fmt.Errorf("statsd client: %w", err)
	}
	client := all.NewSubStatter("")
	client.SetSamplerFunc(func(float32) bool { return true }) // what there is has been sampled already
	for name, by := range s.changes.Counters() {
		if name, tags, ok := s.form.write(name); ok {
			_ = client.Inc(name, int64(by), 1, tags...) //nolint:gosec // Close tells of what failed; counts stay far below the bound
		} else {
			s.warn(name)
		}
	}
	if s.times {
		s.sendTimes(client)
	}
	if err := all.Close(); err != nil {
		return fmt.Errorf("send statistics: %w", err)
	}
	return nil
}

func (s *Sink) sendTimes(client statsd.SubStatter) {
	name, tags, ok := s.form.write(statistics.ResponseTime)
	if !ok {
		return
	}
	sample, rate := s.changes.Times()
	for _, took := range sample {
		_ = client.TimingDuration(name, took, float32(rate), tags...) // Close tells of what failed
	}
}

// warn tells once that there are names too long for a packet.
func (s *Sink) warn(name string) {
	if !s.warned {
		s.log.WithField("name", name).Warn("a statistic is not sent, its name is too long for a packet")
	}
	s.warned = true
}

// write returns how a statistic is written; false if no packet can hold it.
func (f *form) write(name string) (string, []statsd.Tag, bool) {
	written, tags := name, f.tags
	if len(f.mogrifiers) > 0 {
		var made []statsd.Tag
		written, made = f.mogrifiers.apply(name)
		tags = append(tags[:len(tags):len(tags)], made...)
	}
	written += f.suffix
	size := len(written) + maxValue
	for _, tag := range tags {
		size += len(tag[0]) + len(tag[1]) + len(":,")
	}
	if size > maxPacket {
		return name, nil, false
	}
	return written, tags, true
}
