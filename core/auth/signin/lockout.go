package signin

import (
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/lockout"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// errLockedByOperator refuses a person whom only an operator lets in again: until the end of all time, as far as one can write
// it.
func errLockedByOperator() error {
	return lockout.Refusal(time.Date(9999, time.December, 31, 23, 59, 59, 0, time.UTC))
}

func errCredentials() error {
	return fault.New(fault.Unauthenticated, auth.CodeInvalidCredentials, "e-mail address or password is wrong")
}
