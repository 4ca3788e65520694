package ratelimitapi

import (
	"strconv"
	"strings"

	"github.com/tollgate-dev/tollgate/adapters/internal/jsonstring"
	"github.com/tollgate-dev/tollgate/core/jsonvalue"
	"github.com/tollgate-dev/tollgate/core/ratelimit"
)

// appendJSON appends the response to a decision as proto3 JSON: lower camel case, without zero
// values (contract L-27). protojson inserts spaces at random and is several times slower.
func appendJSON(dst []byte, d *ratelimit.Decision, headers []headerField, metadata jsonvalue.Object) ([]byte, error) {
	dst = append(dst, `{"overallCode":`...)
	dst = appendCode(dst, d.Code)
	for i := range d.Statuses {
		if i == 0 {
			dst = append(dst, `,"statuses":[`...)
		} else {
			dst = append(dst, ',')
		}
		dst = appendStatus(dst, &d.Statuses[i])
	}
	if len(d.Statuses) > 0 {
		dst = append(dst, ']')
	}
	if len(headers) > 0 {
		dst = appendHeaders(dst, headers)
	}
	if metadata != nil {
		var err error
		if dst, err = appendMetadata(dst, metadata); err != nil {
			return nil, err
		}
	}
	return append(dst, '}'), nil
}

func appendCode(dst []byte, c ratelimit.Code) []byte {
	if c == ratelimit.OverLimit {
		return append(dst, `"OVER_LIMIT"`...)
	}
	return append(dst, `"OK"`...)
}

func appendStatus(dst []byte, s *ratelimit.Status) []byte {
	dst = append(dst, `{"code":`...)
	dst = appendCode(dst, s.Code)
	if s.HasLimit() {
		dst = append(dst, `,"currentLimit":`...)
		dst = appendLimit(dst, s.Limit, limitName(s))
	}
	if s.Remaining > 0 {
		dst = append(dst, `,"limitRemaining":`...)
		dst = strconv.AppendUint(dst, uint64(s.Remaining), 10)
	}
	if s.HasLimit() {
		dst = append(dst, `,"durationUntilReset":"`...)
		dst = strconv.AppendInt(dst, wholeSeconds(s.UntilReset), 10)
		dst = append(dst, `s"`...)
	}
	return append(dst, '}')
}

// appendLimit appends a limit and its name, which may be empty.
func appendLimit(dst []byte, l ratelimit.Limit, name string) []byte {
	dst = append(dst, '{')
	if name != "" {
		dst = append(dst, `"name":`...)
		dst = jsonstring.Append(dst, name)
		dst = append(dst, ',')
	}
	if l.RequestsPerUnit > 0 {
		dst = append(dst, `"requestsPerUnit":`...)
		dst = strconv.AppendUint(dst, uint64(l.RequestsPerUnit), 10)
		dst = append(dst, ',')
	}
	dst = append(dst, `"unit":"`...)
	dst = append(dst, strings.ToUpper(l.Unit.String())...)
	return append(dst, `"}`...)
}

// appendHeaders appends headers. Their names need no escaping.
func appendHeaders(dst []byte, headers []headerField) []byte {
	dst = append(dst, `,"responseHeadersToAdd":[`...)
	for i, h := range headers {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"key":"`...)
		dst = append(dst, h.name...)
		dst = append(dst, `","value":`...)
		dst = jsonstring.Append(dst, h.value)
		dst = append(dst, '}')
	}
	return append(dst, ']')
}
