package auditlog

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/auth/audit"
)

// names are the details whose names do not say in words what they are.
var names = map[string]string{
	"actor": "Done by", "url": "URL", "ipAddress": "IP address", "userAgent": "Browser", "sessionId": "Session", "deviceId": "Device",
	"geographicAnomaly": "Place", "ipReputation": "Network reputation", "deviceFamiliarity": "Device", "loginVelocity": "Number of sign-ins",
}

// actionDetail is the detail that says what was done. It is in the heading of an event.
const actionDetail = "action"

// people are the details that name a person by id.
var people = []string{audit.Actor, "decidedBy", "submittedBy"}

// describe returns the details of an event in words, ordered by name; details of details follow their
// own. nameOf returns the e-mail address of a person.
func describe(details map[string]any, nameOf func(id string) (string, error)) (fields []site.Field, err error) {
	for _, name := range slices.Sorted(maps.Keys(details)) {
		if name == actionDetail {
			continue
		}
		if inner, ok := details[name].(map[string]any); ok {
			for _, part := range slices.Sorted(maps.Keys(inner)) {
				fields = append(fields, site.Field{Name: words(name) + ", " + lowerFirst(words(part)), Value: text(inner[part])})
			}
			continue
		}
		value := text(details[name])
		if slices.Contains(people, name) {
			if value, err = nameOf(value); err != nil {
				return nil, err
			}
		}
		fields = append(fields, site.Field{Name: words(name), Value: value})
	}
	return fields, nil
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
func text(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case bool:
		if v {
			return "yes"
		}
		return "no"
	case nil:
		return "none"
	case []any:
		parts := make([]string, len(v))
		for i, one := range v {
			parts[i] = text(one)
		}
		return strings.Join(parts, ", ")
	case []string:
		return strings.Join(v, ", ")
	case map[string]any:
		if b, err := json.Marshal(v); err == nil {
			return string(b)
		}
	}
	return fmt.Sprint(value)
}
