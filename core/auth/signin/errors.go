package signin

import (
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/lockout"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// errLockedByOperator returns the error for an account that an operator has locked. Its
// lockoutUntil is the greatest date that the format can hold, because only an operator can end the
// lock.
func errLockedByOperator() error {
	return lockout.Refusal(time.Date(9999, time.December, 31, 23, 59, 59, 0, time.UTC))
}

func errCredentials() error {
	return fault.New(fault.Unauthenticated, "e-mail address or password is wrong").WithCode(auth.CodeInvalidCredentials)
}
