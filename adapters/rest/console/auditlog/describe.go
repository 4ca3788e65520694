package auditlog

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/assessment"
	"github.com/tollgate-dev/tollgate/core/auth/risk"
)

// names are the details whose names do not say in words what they are.
var names = map[string]string{
	audit.DetailActor: "Done by", "url": "URL", "ipAddress": "IP address", "userAgent": "Browser",
	"sessionId": "Session", "deviceId": "Device", "challengeId": "Code",
	assessment.DetailFactors:        "Score",
	risk.GeographicAnomaly.String(): "Place", risk.IPReputation.String(): "Network reputation",
	risk.DeviceFamiliarity.String(): "Device", risk.LoginVelocity.String(): "Number of sign-ins",
}

// values are the values that are names in the API.
var values = map[string]string{
	string(auth.EmailOTP):      "a code by e-mail",
	string(auth.SMSOTP):        "a code by text message",
	string(auth.PasskeyMethod): "a passkey", string(auth.FactorPasskey): "a passkey",
	"passkey_sign_count":          "its count of signatures went back, so there seems to be a copy",
	string(auth.AuthenticatorApp): "the authenticator app", string(auth.CompanySignIn): "the company sign-in",
	string(auth.DeviceTrusted):   "trusted",
	string(auth.DeviceUntrusted): "not trusted",
	string(auth.DevicePending):   "not verified yet",
}

// MethodOf returns in words how somebody was verified.
func MethodOf(m auth.StepUpMethod) string { return values[string(m)] }

// describe returns the details of an event in words, ordered by name; details of details follow
// their own. The ids in them, which help only those who look for them, are apart. nameOf returns
// the e-mail address of a person.
func describe(details audit.Details, nameOf func(id string) (string, error)) (fields, ids []site.Field, err error) {
	details = mergeReasons(details)
	for _, name := range slices.Sorted(maps.Keys(details)) {
		if name == audit.DetailAction {
			continue
		}
		if inner, ok := details[name].(audit.Details); ok {
			for _, part := range slices.Sorted(maps.Keys(inner)) {
				value := text(inner[part])
				if pair, ok := inner[part].(audit.List); ok && name == audit.DetailChanges && len(pair) == 2 {
					value = text(pair[0]) + " → " + text(pair[1])
				}
				fields = append(fields, site.Field{Name: words(name) + ", " + lowerFirst(words(part)), Value: value})
			}
			continue
		}
		field := site.Field{Name: words(name), Value: text(details[name])}
		if name == audit.DetailActor {
			if field.Value, err = nameOf(field.Value); err != nil {
				return nil, nil, err
			}
		}
		if strings.HasSuffix(name, "Id") || strings.HasSuffix(name, "Identity") {
			ids = append(ids, field)
			continue
		}
		fields = append(fields, field)
	}
	return fields, ids, nil
}

// mergeReasons returns the details of an event with the points and the reason of each part of a
// score in one text.
func mergeReasons(details audit.Details) audit.Details {
	points, scored := details[assessment.DetailFactors].(audit.Details)
	reasons, explained := details[risk.DetailReasons].(audit.Details)
	if !scored || !explained {
		return details
	}
	merged, parts := maps.Clone(details), maps.Clone(points)
	for name, reason := range reasons {
		parts[name] = audit.Text(text(points[name]) + " points: " + text(reason))
	}
	delete(merged, risk.DetailReasons)
	merged[assessment.DetailFactors] = parts
	return merged
}

// words returns the name of a detail in words: "riskScore" is "Risk score".
func words(name string) string {
	if known, ok := names[name]; ok {
		return known
	}
	var b strings.Builder
	for i, r := range name {
		switch {
		case i == 0:
			r = unicode.ToUpper(r)
		case unicode.IsUpper(r):
			b.WriteByte(' ')
			r = unicode.ToLower(r)
		}
		b.WriteRune(r)
	}
	return b.String()
}

// lowerFirst returns a text that begins in lower case, unless it begins with an abbreviation.
func lowerFirst(s string) string {
	if len(s) > 1 && unicode.IsUpper(rune(s[1])) {
		return s
	}
	return strings.ToLower(s[:min(len(s), 1)]) + s[min(len(s), 1):]
}

// text returns a value of an event in words.
func text(value audit.Value) string {
	switch v := value.(type) {
	case audit.Text:
		if level, err := auth.ParseTrustLevel(string(v)); err == nil {
			return strings.ToLower(site.LevelOf(level).Name)
		}
		return cmp.Or(values[string(v)], string(v))
	case audit.Flag:
		if v {
			return "yes"
		}
		return "no"
	case nil:
		return "none"
	case audit.List:
		parts := make([]string, len(v))
		for i, one := range v {
			parts[i] = text(one)
		}
		return strings.Join(parts, ", ")
	case audit.Details:
		if b, err := json.Marshal(v); err == nil {
			return string(b)
		}
	}
	return fmt.Sprint(value)
}
