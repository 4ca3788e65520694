package registry

import (
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/core/fault"
)

func TestStatusUpdateBody(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", MaxStatusMessage)
	good := map[string]StatusUpdate{
		`{"status":"active"}`:                                         {StatusActive, ""},
		`{"status":"active","statusMessage":""}`:                      {StatusActive, ""},
		`{"status":"active","statusMessage":null}`:                    {StatusActive, ""},
		` {"statusMessage":"use 2","status":"deprecated"} `:           {StatusDeprecated, "use 2"},
		`{"status":"deleted","statusMessage":"` + long + `"}`:         {StatusDeleted, long},
		`{"status":"deleted","statusMessage":"quoted \"so\" \u2026"}`: {StatusDeleted, "quoted \"so\" …"},
	}
	for body, want := range good {
		parsed, err := ParseStatusUpdateBody([]byte(body))
		if err != nil {
			t.Errorf("%s: ParseStatusUpdateBody = %v, want none", body, err)
			continue
		}
		if got, err := parsed.Update(); err != nil || got != want || got.Status() != want.status ||
			got.Message() != want.message {
			t.Errorf("%s: Update = %+v, %v, want %+v", body, got, err, want)
		}
	}
	unreadable := []string{"", "[]", "null", `"active"`, `{"status":`, `{"status":"deleted","statusMessage":"a\u0000"}`}
	for _, body := range unreadable {
		if _, err := ParseStatusUpdateBody([]byte(body)); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: ParseStatusUpdateBody = %v, want a fault of kind Invalid", body, err)
		}
	}
	bad := map[string]string{
		`{}`:                                                   "status is required",
		`{"status":null}`:                                      "status is required",
		`{"status":1}`:                                         "status must be a string",
		`{"status":"removed"}`:                                 "status must be active, deprecated or deleted",
		`{"status":"Active"}`:                                  "status must be active, deprecated or deleted",
		`{"status":"deleted","statusMessage":1}`:               "statusMessage must be a string",
		`{"status":"deleted","message":"x"}`:                   "message is not a property",
		`{"status":"deleted","status":"active"}`:               "status occurs twice",
		`{"status":"active","statusMessage":"x"}`:              "statusMessage is allowed with",
		`{"status":"deleted","statusMessage":"` + long + `x"}`: "statusMessage must have at most 500",
	}
	for body, want := range bad {
		parsed, err := ParseStatusUpdateBody([]byte(body))
		if err != nil {
			t.Errorf("%s: ParseStatusUpdateBody = %v, want none", body, err)
			continue
		}
		_, err = parsed.Update()
		if !fault.Is(err, fault.Invalid) || codeOf(err) != "" || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: Update = %v, want a fault without code that says %q", body, err, want)
		}
	}
}
