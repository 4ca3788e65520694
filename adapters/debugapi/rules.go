package debugapi

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/ratelimit/reload"
)

// newRulesHandler returns a handler that writes one rule per line in the format of the Envoy rate
// limit service. Properties that the format does not have follow at the end of the line.
func newRulesHandler(rules *reload.Rules) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		setTextHeaders(w)
		set := rules.Current()
		if set == nil {
			_, _ = fmt.Fprintln(w, "no configuration is loaded") // the client may have disconnected
			return
		}
		var b strings.Builder
		for r := range set.Rules() {
			writeRule(&b, r)
		}
		_, _ = w.Write([]byte(b.String())) // the client may have disconnected
	})
}

func writeRule(b *strings.Builder, r *ratelimit.Rule) {
	unit, requests := "UNKNOWN", uint32(0) // an unlimited rule, as the Envoy rate limit service writes it
	if !r.Unlimited {
		unit, requests = strings.ToUpper(r.Limit.Unit.String()), r.Limit.RequestsPerUnit
	}
	fmt.Fprintf(b, "%s.%s: unit=%s requests_per_unit=%d, shadow_mode: %t, quota_mode: %t",
		replaceControls(string(r.Domain)), replaceControls(r.Path), unit, requests, r.Shadow, r.Quota)
	if r.Unlimited {
		b.WriteString(", unlimited: true")
	}
	if r.Limit.Algorithm != ratelimit.FixedWindow {
		fmt.Fprintf(b, ", algorithm: %s", r.Limit.Algorithm)
	}
	if r.Limit.Burst > 0 {
		fmt.Fprintf(b, ", burst: %d", r.Limit.Burst)
	}
	if r.Lease != ratelimit.LeaseDefault {
		fmt.Fprintf(b, ", lease: %s", r.Lease)
	}
	if r.Name != "" {
		fmt.Fprintf(b, ", name: %s", replaceControls(string(r.Name)))
	}
	for _, name := range r.Replaces {
		fmt.Fprintf(b, ", replaces: %s", replaceControls(string(name)))
	}
	b.WriteByte('\n')
}

// replaceControls replaces control characters by underscores.
func replaceControls(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '_'
		}
		return r
	}, s)
}
