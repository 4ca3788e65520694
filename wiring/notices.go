package wiring

import (
	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/eventlog"
	"github.com/tollgate-dev/tollgate/adapters/prometheus"
	"github.com/tollgate-dev/tollgate/core/auth/notices"
	"github.com/tollgate-dev/tollgate/core/auth/stepup"
	"github.com/tollgate-dev/tollgate/plugins/couriersettings"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/throttle"
	"github.com/tollgate-dev/tollgate/wiring/settings"
)

// newNotifier returns a Notifier that uses the couriers of one-time codes. It returns nil if
// NOTICES is off or no courier is configured.
func newNotifier(
	a settings.Auth, b couriersettings.Brand, c stepup.Couriers, p noticePorts,
) *notices.Notifier {
	reporter := prometheus.NewNotices(eventlog.NewNotices(p.Log), p.Metrics.Auth)
	var notifier *notices.Notifier
	if a.NoticesOn() && (c.Email != nil || c.SMS != nil) {
		notifier = notices.New(b.Name, notices.Ports{
			Accounts: p.Accounts, Devices: p.Devices, Couriers: notices.Couriers(c), Throttle: p.Throttle, Reporter: reporter,
			Waiter: p.Waiter,
		})
	}
	prometheus.WatchNotices(notifier, p.Metrics.Auth)
	return notifier
}

// noticePorts are the dependencies of notices other than couriers.
type noticePorts struct {
	Accounts authstore.Accounts
	Devices  authstore.Devices
	Throttle throttle.Throttle
	Waiter   clock.Waiter
	Metrics  partMetrics
	Log      *logrus.Entry
}
