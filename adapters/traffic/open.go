package traffic

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/ratelimit/decide"
	"github.com/tollgate-dev/tollgate/ports/clock"
)

// Sources are the dependencies of a recording.
type Sources struct {
	Root    auth.RootSecret // of the hashes of values
	Clock   clock.Clock
	Metrics prometheus.Registerer
	Log     *logrus.Entry
}

// Open returns what decides rate limit calls: the function itself, or a Recorder around it if
// RATELIMIT_RECORD is set. The cleanup ends the recording.
func Open(c Config, decides decide.Func, s Sources) (decide.Func, func(), error) {
	counts := NewCounts(s.Metrics)
	if !c.On() {
		return decides, func() {}, nil
	}
	ports := Ports{Clock: s.Clock, Log: s.Log}
	if c.Hash {
		key, err := s.Root.Derive("recorded rate limit requests")
		if err != nil {
			return nil, nil, errors.New(
				"RATELIMIT_RECORD_HASH: set SECRET_KEY to at least 32 characters: without the database there is no other secret")
		}
		ports.Sum = key.Sum
	}
	r, err := New(c, decides, counts, ports)
	if err != nil {
		return nil, nil, err
	}
	return r.Decide, r.Close, nil
}
