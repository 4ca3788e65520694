package eventlog

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/event"
	"github.com/tollgate-dev/tollgate/core/registry/notifying"
	"github.com/tollgate-dev/tollgate/test/must"
)

func TestDeliveries(t *testing.T) {
	name, err := registry.ParseName("com.example/a")
	must.Succeed(t, err)
	got := logLines(t, func(log *logrus.Entry) {
		d := New(log)
		tried := event.Delivery{
			Webhook: "w", Event: "e", Type: event.Published, Name: name, State: event.Delivered, Attempts: 1,
		}
		d.Report(notifying.Attempted{Delivery: tried})
		tried.State, tried.Problem = event.Pending, "the receiver answered with the status 500"
		d.Report(notifying.Attempted{Delivery: tried})
		tried.State, tried.Attempts = event.Dead, 2
		d.Report(notifying.Attempted{Delivery: tried})
		d.Report(notifying.Counted{Pending: 3, Dead: 4})
		d.Report(notifying.DeliveryFailed{Err: errors.New("no database")})
		d.Report(notifying.DeliveryFailed{Err: errors.New("no database yet")})
		d.Report(notifying.Counted{Pending: 3, Dead: 4})
		d.Report(notifying.DeliveryFailed{Err: errors.New("no database again")})
	})
	const fields = ` event=e problem="the receiver answered with the status 500" serverName=com.example/a type=published webhook=w`
	want := []string{
		`level=info msg="an event could not be delivered; the next attempt follows" attempt=1` + fields,
		`level=warning msg="an event could not be delivered and is dead" attempt=2` + fields,
		`level=warning msg="events could not be delivered; the next attempt follows" error="no database"`,
		`level=warning msg="events could not be delivered; the next attempt follows" error="no database again"`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("the log has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
