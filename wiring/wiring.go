// Package wiring puts the parts of the service together: one Wire injector for
// each environment and each way of running, and the order in which the parts
// start and stop. It decides nothing that a caller of the service would see.
package wiring

import (
	"context"
	"fmt"
	"io"

	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/pluginhost"
	"github.com/tollgate-dev/tollgate/adapters/prometheus"
	"github.com/tollgate-dev/tollgate/adapters/runtimedir"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
	"github.com/tollgate-dev/tollgate/wiring/settings"
)

// Open puts a service together: connects to what it depends on, brings the
// schema up to date and takes its addresses. The metrics tell of the build. The
// cleanup gives all of it back.
func Open(ctx context.Context, s settings.Settings, parts Parts, build prometheus.Build, log *logrus.Entry) (*Service, func(), error) {
	metrics := prometheus.New(build)
	prometheus.CountLog(log.Logger, metrics)
	for _, w := range s.Warnings {
		log.Warn(w)
	}
	switch {
	case !parts.API():
		return injectRateLimit(ctx, s, parts, metrics, log)
	case s.Service.Environment == settings.Production:
		return injectProduction(ctx, s, parts, metrics, log)
	default:
		return injectEmbedded(ctx, s, parts, metrics, log)
	}
}

// CheckRules reads the rate limit rules of a directory as the service would, and
// returns them with warnings about what is taken, but looks wrong. The error is
// ruleset.Faults when rules are wrong, and fault.NotFound when there is no rule file.
func CheckRules(ctx context.Context, s settings.Settings, dir string) (*ruleset.Set, []string, error) {
	files := runtimedir.Config{Root: dir, IgnoreDotFiles: s.RuleFiles.IgnoreDotFiles}
	sources, warnings, err := runtimedir.New(files, NewLog(s.Service, io.Discard)).Read(ctx) // the log is of Watch alone
	if err != nil {
		return nil, nil, err
	}
	set, err := ruleset.Compile(sources, ruleOptions(s.RateLimit))
	return set, warnings, err
}

// Plugins starts every plugin once and tells how each stands. A folder that is
// not there, with which the service does without plugins, is fault.NotFound.
func Plugins(ctx context.Context, s settings.Settings, log *logrus.Entry) ([]pluginhost.Status, error) {
	if s.Plugins.Missing() {
		return nil, fault.Newf(fault.NotFound, "", "the plugin folder %s (PLUGIN_DIR) does not exist", s.Plugins.Dir)
	}
	host, cleanup, err := pluginhost.Open(s.Plugins, log)
	if err != nil {
		return nil, fmt.Errorf("plugins: %w", err)
	}
	defer cleanup()
	if err := host.StartAll(ctx); err != nil {
		return nil, fmt.Errorf("plugins: %w", err)
	}
	return host.Status(), nil
}
