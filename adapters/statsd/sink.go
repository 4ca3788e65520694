// Package statsd sends the statistics of the rate limit service to a metrics daemon, in the plain
// or the tagged form, or writes them to standard output. It sends the changes since the last time,
// periodically and once at the end. It never delays a call.
package statsd

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/cactus/go-statsd-client/v5/statsd"
	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/core/ratelimit/statistics"
)

// Sink sends statistics to one destination.
type Sink struct {
	changes  *statistics.Changes
	interval time.Duration
	form     nameFormat
	to       destination
	times    bool // also send response times
	log      *logrus.Entry
	failing  bool
	warned   bool // about names that are too long
}

// destination is the receiver of statistics. Its methods are not called concurrently.
type destination interface {
	// open returns a sender for one flush, which closes it.
	open(ctx context.Context) (statsd.Sender, error)
	// last is called before the last flush.
	last()
	// close is called after the last flush.
	close()
}

// opener is a destination that keeps nothing between flushes.
type opener func(context.Context) (statsd.Sender, error)

func (o opener) open(ctx context.Context) (statsd.Sender, error) { return o(ctx) }

func (opener) last() {}

func (opener) close() {}

// nameFormat describes how names and tags are written.
type nameFormat struct {
	mogrifiers mogrifiers
	tags       []statsd.Tag // written after the value
	suffix     string       // appended to the name
	room       int          // maximum length of a line in bytes
}

// Open returns a sink to the metrics daemon if that is enabled, else to standard output.
func Open(c Config, changes *statistics.Changes, log *logrus.Entry) (*Sink, error) {
	if c.ToDaemon() {
		return ToDaemon(c, changes, log)
	}
	return ToWriter(c, changes, os.Stdout, log)
}

// ToDaemon returns a sink that sends to the metrics daemon. The settings must be valid.
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

// ToWriter returns a sink that writes a line in the plain statsd format for each counter that grew.
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

// lastFlush is the maximum time of the last flush.
const lastFlush = 3 * time.Second

// Run sends statistics until ctx ends, and then once more.
func (s *Sink) Run(ctx context.Context) error {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.sendUntilDone(ctx)
	}()
	<-ctx.Done()
	select {
	case <-ended:
	case <-time.After(lastFlush): // for example, no program reads standard output
		s.log.Warn("the last statistics could not be sent in time and are lost")
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

// logFailure logs when sending starts to fail, and when it works again.
func (s *Sink) logFailure(err error) {
	switch {
	case err != nil && !s.failing:
		s.log.WithError(err).Warn("statistics cannot be sent; trying again at the next interval")
	case err == nil && s.failing:
		s.log.Info("statistics are sent again")
	}
	s.failing = err != nil
}

// sendAll sends the changes since the last time. What cannot be sent, because the name of the
// daemon cannot be looked up or the daemon does not read, is sent the next time.
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
	client.SetSamplerFunc(func(float32) bool { return true }) // the values are sampled already
	if s.sendCounters(client) && s.times {
		s.sendTimes(client)
	}
	if err := all.Close(); err != nil {
		return fmt.Errorf("send statistics: %w", err)
	}
	return nil
}

// sendCounters reports whether all counters were sent. If not, Close returns the error.
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
		if client.TimingDuration(name, took, float32(rate), tags...) != nil { // Close returns the error
			return
		}
	}
}

// warnAboutName logs once that names are too long for a packet.
func (s *Sink) warnAboutName(name string) {
	if !s.warned {
		s.log.WithField("name", name).Warn("a statistic is not sent because its name is too long for a packet")
	}
	s.warned = true
}

// formatName returns the name and tags of a statistic, or false if they do not fit in a packet.
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

// parseTags parses key:value pairs. Like the Envoy rate limit service, it ignores pairs without a
// value.
func parseTags(pairs []string) ([]statsd.Tag, error) {
	var tags []statsd.Tag
	for _, pair := range pairs {
		key, value, ok := strings.Cut(strings.TrimSpace(pair), ":")
		switch {
		case !ok || key == "":
			return nil, fmt.Errorf("%q must have the form key:value", pair)
		case strings.ContainsAny(key, ":|,=@#\n"):
			return nil, fmt.Errorf("the key of %q contains a character that is not allowed in tags", pair)
		case slices.ContainsFunc(tags, func(t statsd.Tag) bool { return t[0] == key }):
			return nil, fmt.Errorf("%q is given twice", key)
		case value != "":
			tags = append(tags, statsd.Tag{key, value})
		}
	}
	return tags, nil
}

// cleanTag replaces the characters that end a tag in the tagged form.
func cleanTag(value string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == ',' || r == '|' {
			return '_'
		}
		return r
	}, value)
}

// nameSuffix returns the tags as a suffix of a name of plain statsd, like the library of the Envoy
// rate limit service: .__key=value, sorted by key.
func nameSuffix(tags []statsd.Tag) string {
	sorted := slices.Clone(tags)
	slices.SortFunc(sorted, func(a, b statsd.Tag) int { return strings.Compare(a[0], b[0]) })
	var b strings.Builder
	for _, tag := range sorted {
		b.WriteString(".__" + tag[0] + "=")
		b.WriteString(strings.NewReplacer(".", "_", ":", "_").Replace(cleanTag(tag[1])))
	}
	return b.String()
}
