package account

import (
	"testing"

	"github.com/tollgate-dev/tollgate/core/auth"
)

func TestNameDevice(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, browser, system, want string }{
		{"Laptop", "Firefox", "Linux", "Laptop"},
		{"", "Firefox", "Linux", "Firefox on Linux"},
		{"", "Firefox", "", "Firefox"},
		{"", "", "Linux", "Linux"},
		{"", "", "", "Unknown device"},
	} {
		if got := nameDevice(auth.Device{Name: c.name, Browser: c.browser, OS: c.system}); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

// TestDeviceTrust checks that the page offers to withdraw trust exactly from devices that have it.
func TestDeviceTrust(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status    auth.TrustStatus
		confirmed bool
		trust     string
		trusted   bool
	}{
		{auth.DevicePending, false, "Not verified yet", false},
		{auth.DevicePending, true, "Verified", false},
		{auth.DeviceTrusted, false, "Trusted, but not verified yet", true},
		{auth.DeviceUntrusted, false, "Not trusted", false},
		{auth.DeviceUntrusted, true, "Not trusted", false},
	} {
		view := newDeviceView(auth.Device{ID: "a", TrustStatus: c.status, Confirmed: c.confirmed}, "a")
		if view.Trust != c.trust || view.Trusted != c.trusted || !view.Current {
			t.Errorf("%s, confirmed %t: %+v, want %q", c.status, c.confirmed, view, c.trust)
		}
	}
}
