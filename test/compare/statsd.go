package main

import (
	"bufio"
	"fmt"
	"maps"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	flushInterval = "1s"            // of both services
	quietTime     = 3 * time.Second // without a change, after which the counters are complete
	pollInterval  = 100 * time.Millisecond
)

// statsd is a server that adds up the counters of rules which a service sends.
type statsd struct {
	listener net.Listener

	mu       sync.Mutex
	counters map[string]uint64
	changed  time.Time
}

func listenStatsd() (*statsd, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for statistics: %w", err)
	}
	s := &statsd{listener: l, counters: map[string]uint64{}, changed: time.Now()}
	go func() {
		for {
			connection, err := l.Accept()
			if err != nil {
				return // it is closed
			}
			go s.read(connection)
		}
	}()
	return s, nil
}

// settings are those with which a service sends its statistics here.
func (s *statsd) settings() []string {
	host, port, _ := net.SplitHostPort(s.listener.Addr().String()) // a TCP address has both
	return []string{
		"USE_STATSD=true", "STATSD_PROTOCOL=tcp", "STATSD_HOST=" + host, "STATSD_PORT=" + port,
		"STATS_FLUSH_INTERVAL=" + flushInterval,
	}
}

func (s *statsd) close() { _ = s.listener.Close() } // nothing is sent anymore

func (s *statsd) read(connection net.Conn) {
	defer connection.Close()
	for lines := bufio.NewScanner(connection); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ":")
		number, isCounter := strings.CutSuffix(value, "|c")
		n, err := strconv.ParseUint(number, 10, 64)
		if !isCounter || err != nil || n == 0 || !strings.HasPrefix(name, "ratelimit.service.rate_limit.") {
			continue
		}
		s.mu.Lock()
		s.counters[name] += n
		s.changed = time.Now()
		s.mu.Unlock()
	}
}

// wait returns the counters when they do not change anymore.
func (s *statsd) wait() map[string]uint64 {
	for {
		s.mu.Lock()
		quiet, counters := time.Since(s.changed), maps.Clone(s.counters)
		s.mu.Unlock()
		if quiet > quietTime {
			return counters
		}
		time.Sleep(pollInterval)
	}
}
