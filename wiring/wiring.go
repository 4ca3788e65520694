// Package wiring connects the parts of the service. It has one Wire injector for each way of
// running, and decides nothing that a caller of the service would see. service.go shows what runs
// in the service, ratelimit.go what the rate limit service is made of, operator.go what operator
// commands work with, and choose.go what depends on the environment.
package wiring

import (
	"context"
	"io"

	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/eventlog"
	"github.com/tollgate-dev/tollgate/adapters/lifecycle"
	"github.com/tollgate-dev/tollgate/adapters/prometheus"
	"github.com/tollgate-dev/tollgate/adapters/runtimedir"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
	"github.com/tollgate-dev/tollgate/wiring/settings"
)

// Build is what the program says about itself; a part that is not known is empty.
type Build struct {
	Version  string
	Revision string // the commit of the source
	Time     string // of the commit, RFC 3339
}

// Open builds the service: it connects to the stores, brings the schema up to date and opens the
// listeners, which answer from Run on. build is shown in the metrics. The cleanup closes everything
// again.
func Open(
	ctx context.Context, s settings.Settings, parts settings.Parts, build Build, log *logrus.Entry,
) (*lifecycle.Process, func(), error) {
	metrics := prometheus.New(prometheus.Build{Version: build.Version, Revision: build.Revision})
	prometheus.CountLog(log.Logger, metrics)
	for _, w := range s.Warnings {
		log.Warn(w)
	}
	if !parts.API() {
		return injectRateLimit(ctx, s, parts, metrics, log)
	}
	return injectService(ctx, s, parts, build, metrics, log)
}

// NewLog returns the service's log, written to w.
func NewLog(s settings.Service, w io.Writer) *logrus.Entry {
	return eventlog.NewLog(w, s.LogLevel, s.LogFormat)
}

// CheckRules reads the rate limit rules of a directory as the service would, and returns them with
// warnings about rules that are accepted, but look wrong. The error is ruleset.Faults if rules are
// wrong, and fault.NotFound if there is no rule file.
func CheckRules(ctx context.Context, s settings.Settings, dir string) (*ruleset.Set, []string, error) {
	files := runtimedir.Config{Root: dir, IgnoreDotFiles: s.RuleFiles.IgnoreDotFiles}
	unused := NewLog(s.Service, io.Discard) // only Watch writes to the log
	sources, warnings, err := runtimedir.New(files, unused).Read(ctx)
	if err != nil {
		return nil, nil, err
	}
	set, err := ruleset.Compile(sources, s.Rules)
	return set, warnings, err
}
