package pluginhost

import (
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/plugins/pluginclient"
	"github.com/tollgate-dev/tollgate/plugins/sdk/handshake"
)

// TestNamesThatAPluginMayDeclare requires that a plugin may declare names that begin with its own, and
// shared ones, but no setting of another plugin, of the service or of the machine.
func TestNamesThatAPluginMayDeclare(t *testing.T) {
	t.Parallel()
	test := spec{name: "otp-test", kind: pluginclient.Courier}
	test.owners = ownersOf([]spec{
		test, {name: "otp-test-more", kind: pluginclient.Courier}, {name: "mine", kind: pluginclient.Ownership},
	})
	cfg := Config{Shared: map[string]string{"PRODUCT_NAME": "Example"}}
	for name, own := range map[string]bool{
		"OTP_TEST_DIR": true, "OTP_TEST_MORE": true, "PRODUCT_NAME": true,
		"DATABASE_URL": false, "SECRET_KEY": false, "AWS_SECRET_ACCESS_KEY": false, "SMTP_PASSWORD": false, "SMS_TOKEN": false,
		"OTP_OTHER_TOKEN": false, "OTP_TEST_MORE_TOKEN": false, "OTP_TESTER_TOKEN": false, "PATH": false,
		"OTP_TEST_SETTINGS": false, "otp_test_token": false, "OTP_TEST_=SECRET_KEY": false, "TEST_TOKEN": false, "": false,
		"TOLLGATE_PLUGIN": false, "PKG_MINE_TOKEN": false, "OTP_TEST_" + strings.Repeat("A", 56): false,
	} {
		err := test.checkDeclared([]handshake.Setting{{Name: "OTP_TEST_OWN"}, {Name: name}}, cfg)
		if (err == nil) != own {
			t.Errorf("%s: %v, want it allowed: %t", name, err, own)
		}
	}
	for _, taken := range []string{"smtp", "otp-s", "sms"} {
		s := spec{name: taken, kind: pluginclient.Courier}
		s.owners = ownersOf([]spec{s})
		for _, name := range []string{"SMTP_PASSWORD", "SMS_TOKEN"} {
			if s.checkDeclared([]handshake.Setting{{Name: name}}, cfg) == nil {
				t.Errorf("the plugin %s may declare %s", taken, name)
			}
		}
	}
}
