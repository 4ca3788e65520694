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
	form     nameFormat
	to       destination
	times    bool // response times are sent too
	log      *logrus.Entry
	failing  bool
	warned   bool // of names that are too long
}

// destination is where statistics go. Its methods are called one at a time.
type destination interface {
	// open returns a sender for one flush, which closes it.
	open(ctx context.Context) (statsd.Sender, error)
	// last is called before the last flush.
	last()
	// close is called after the last flush.
	close()
}

// opener is a destination of which nothing is kept between flushes.
type opener func(context.Context) (statsd.Sender, error)

func (o opener) open(ctx context.Context) (statsd.Sender, error) { return o(ctx) }

func (opener) last() {}

func (opener) close() {}

// form is how names and tags are written.
type nameFormat struct {
	mogrifiers mogrifiers
	tags       []statsd.Tag // behind the value
	suffix     string       // of the name
	room       int          // for a line, in bytes
}

// ToDaemon returns a sink that sends to the metrics daemon of the settings,
// which must be valid.
func ToDaemon(c Config, changes *statistics.Changes, log *logrus.Entry) (*Sink, error) {
	s, err := newSink(c, changes, log)
	if err != nil {
		return nil, err
	}
	s.times = true
	if c.UsesTCP() {
		s.form.room = maxLine
		s.to = &tcpStream{network: c.Protocol, address: c.daemonAddress()}
	} else {
		s.to = opener(func(ctx context.Context) (statsd.Sender, error) { return dialUDP(ctx, c.daemonAddress()) })
	}
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
	s.to = opener(func(context.Context) (statsd.Sender, error) { return newLineWriter(w), nil })
	return s, nil
}

func newSink(c Config, changes *statistics.Changes, log *logrus.Entry) (*Sink, error) {
	s := &Sink{changes: changes, interval: c.FlushInterval, log: log, form: nameFormat{room: maxPacket}}
	tags, err := parseTags(c.ExtraTags)
	if err != nil {
		return nil, fmt.Errorf("EXTRA_TAGS: %w", err)
	}
	if !c.Tagged {
		s.form.suffix = nameSuffix(tags)
		return s, nil
	}
	for _, tag := range append(c.datadogTags(), tags...) {
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
		s.sendUntilDone(ctx)
	}()
	<-ctx.Done()
	select {
	case <-ended:
	case <-time.After(lastFlush): // standard output that nobody reads, say
		s.log.Warn("the last statistics could not be sent in time")
	}
	return nil
}

func (s *Sink) sendUntilDone(ctx context.Context) {
	ticker := time.NewTicker(s.interval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			s.logFailure(s.sendAll(ctx))
		case <-ctx.Done():
			s.to.last()
			s.logFailure(s.sendAll(context.WithoutCancel(ctx)))
			s.to.close()
			return
		}
	}
}

// tell logs when sending begins to fail, and when it works again.
func (s *Sink) logFailure(err error) {
	switch {
	case err != nil && !s.failing:
		s.log.WithError(err).Warn("statistics cannot be sent")
	case err == nil && s.failing:
		s.log.Info("statistics are sent again")
	}
	s.failing = err != nil
}

// flush sends what was counted since the last time. What could not be sent because the daemon's name is
// not known, or because it takes no more, is sent the next time.
func (s *Sink) sendAll(ctx context.Context) error {
	sender, err := s.to.open(ctx)
	if err != nil {
		return err
	}
	all, err := statsd.NewClientWithSender(sender, "", statsd.SuffixOctothorpe)
	if err != nil {
		return fmt.Errorf("statsd client: %w", err)
	}
	client := all.NewSubStatter("")
	client.SetSamplerFunc(func(float32) bool { return true }) // what there is has been sampled already
	if s.sendCounters(client) && s.times {
		s.sendTimes(client)
	}
	if err := all.Close(); err != nil {
		return fmt.Errorf("send statistics: %w", err)
	}
	return nil
}

// sendCounters reports whether all were taken; Close returns why not.
func (s *Sink) sendCounters(client statsd.SubStatter) bool {
	for name, by := range s.changes.Counters() {
		name, tags, ok := s.form.formatName(name)
		if !ok {
			s.warnAboutName(name)
			continue
		}
		if client.Inc(name, int64(by), 1, tags...) != nil { //nolint:gosec // counts stay far below the bound
			return false
		}
	}
	return true
}

func (s *Sink) sendTimes(client statsd.SubStatter) {
	name, tags, ok := s.form.formatName(statistics.ResponseTime)
	if !ok {
		return
	}
	sample, rate := s.changes.Times()
	for _, took := range sample {
		if client.TimingDuration(name, took, float32(rate), tags...) != nil { // Close returns why
			return
		}
	}
}

// warn tells once that there are names too long for a packet.
func (s *Sink) warnAboutName(name string) {
	if !s.warned {
		s.log.WithField("name", name).Warn("a statistic is not sent, its name is too long for a packet")
	}
	s.warned = true
}

// write returns how a statistic is written; false if no packet can hold it.
func (f *nameFormat) formatName(name string) (string, []statsd.Tag, bool) {
	written, tags := name, f.tags
	if len(f.mogrifiers) > 0 {
		var made []statsd.Tag
		written, made = f.mogrifiers.applyFirst(name)
		tags = append(tags[:len(tags):len(tags)], made...)
	}
	written += f.suffix
	size := len(written) + maxValue
	for _, tag := range tags {
		size += len(tag[0]) + len(tag[1]) + len(":,")
	}
	if size > f.room {
		return name, nil, false
	}
	return written, tags, true
}
