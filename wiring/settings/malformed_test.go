package settings_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/test/must"
	"github.com/tollgate-dev/tollgate/wiring/settings"
)

// accepted are values that look malformed and are not, by variable: those that the Envoy rate limit
// service accepts, standard variables that may be set for other programs, and names of files, which
// are opened later.
var accepted = map[string][]string{
	"EXPIRATION_JITTER_MAX_SECONDS":    {"-1"},                    // 0 is used, with a warning
	"XDS_CLIENT_BACKOFF_RANDOM_FACTOR": {"Inf", "1.5"},            // 1 is used, with a warning
	"OTEL_PROPAGATORS":                 {",", "a,,b", "@ !", " "}, // checked with TRACING_ENABLED
	"IP_REPUTATION_LISTS":              {"@ !"},
}

// malformedValues returns values that no setting of a form may have.
func malformedValues(v settings.Variable) []string {
	switch {
	case strings.HasPrefix(v.Form, "a duration"):
		return []string{"-1s", "soon", "5", "100000000h"}
	case strings.HasPrefix(v.Form, "a whole number"):
		values := []string{"-1", "x", "1.5", "99999999999999999999"}
		if strings.HasSuffix(v.Name, "PORT") {
			values = append(values, "65536")
		}
		return values
	case v.Form == "a number":
		return []string{"-1", "x", "NaN", "Inf", "1.5"}
	case v.Form == "true or false":
		return []string{"maybe", "2"}
	case strings.HasPrefix(v.Form, "a comma"):
		return []string{",", "a,,b", "@ !", " "}
	default:
		return nil
	}
}

// TestEverySettingRefusesMalformedValues requires that a malformed value of any setting is an error
// that has its name, also if the setting belongs to a store or plugin that is not used.
func TestEverySettingRefusesMalformedValues(t *testing.T) {
	all, err := settings.Describe(nil)
	must.Succeed(t, err)
	tried := 0
	for _, v := range all {
		for _, value := range malformedValues(v) {
			tried++
			_, err := settings.Read([]string{v.Name + "=" + value})
			_, isFault := fault.As(err) // of which a command would print only the message
			switch {
			case slices.Contains(accepted[v.Name], value):
				if err != nil {
					t.Errorf("%s=%q is an error, and the test says that it is accepted: %v", v.Name, value, err)
				}
			case err == nil:
				t.Errorf("%s=%q is accepted", v.Name, value)
			case !strings.Contains(err.Error(), v.Name) || isFault:
				t.Errorf("%s=%q: %q does not have the name", v.Name, value, err)
			}
		}
	}
	t.Logf("%d values of %d settings", tried, len(all))
	if tried < 400 {
		t.Errorf("only %d values were tried", tried)
	}
}

// TestOtherMalformedValues has values that only their setting refuses.
func TestOtherMalformedValues(t *testing.T) {
	for _, variable := range []string{
		"RESERVED_NAMESPACES=com.example", "RESERVED_NAMESPACES=com.example/*, org.example/*",
		"RESERVED_NAMESPACES=*.example/x",
		"KVSTORE_PERSECOND_TYPE=ring", "KVSTORE_PERSECOND_SOCKET_TYPE=udp",
		"TRUSTED_PROXIES=10.0.0.0/8,", "TRACING_SAMPLING_RATE=1.01", "NEAR_LIMIT_RATIO=-0.1",
	} {
		name, _, _ := strings.Cut(variable, "=")
		_, err := settings.Read([]string{variable})
		if _, isFault := fault.As(err); err == nil || isFault || !strings.HasPrefix(err.Error(), name) {
			t.Errorf("%s: %v", variable, err)
		}
	}
}
