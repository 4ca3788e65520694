package sdk_test

import (
	"testing"

	"github.com/tollgate-dev/tollgate/plugins/sdk"
)

func TestKindHasAName(t *testing.T) {
	for kind, want := range map[sdk.Kind]string{sdk.OTP: "otp", sdk.Notice: "notice", 7: "kind 7"} {
		if got := kind.String(); got != want {
			t.Errorf("the name of kind %d is %q, want %q", uint8(kind), got, want)
		}
	}
}
