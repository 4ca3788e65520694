package catalogue

import (
	"regexp"

	"github.com/tollgate-dev/tollgate/core/fault"
)

var callbackForm = regexp.MustCompile(`^[A-Za-z_$.][A-Za-z0-9_$.]{0,63}$`)

// ParseCallback returns the name of the function that a JSONP answer calls. An empty name means no
// callback. It returns fault.Invalid unless the name has 1 to 64 letters, digits, "_", "$" and ".",
// the first not a digit (contract M-7).
func ParseCallback(s string) (string, error) {
	if s != "" && !callbackForm.MatchString(s) {
		return "", fault.New(fault.Invalid,
			"callback must have 1 to 64 letters, digits, \"_\", \"$\" and \".\", and must not begin with a digit")
	}
	return s, nil
}
