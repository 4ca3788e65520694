package authapi_test

import (
	"github.com/tollgate-dev/tollgate/adapters/rest/authapi"
	"github.com/tollgate-dev/tollgate/core/auth/access"
	"github.com/tollgate-dev/tollgate/core/auth/audit"
	"github.com/tollgate-dev/tollgate/core/auth/credentials"
	"github.com/tollgate-dev/tollgate/core/auth/devices"
	"github.com/tollgate-dev/tollgate/core/auth/signin"
	"github.com/tollgate-dev/tollgate/core/auth/stepup"
)

// The use cases implement the interfaces of the handlers.
var (
	_ authapi.Access      = (*access.Checker)(nil)
	_ authapi.Refusals    = (*audit.Refusals)(nil)
	_ authapi.SignIn      = (*signin.Service)(nil)
	_ authapi.Credentials = (*credentials.Service)(nil)
	_ authapi.StepUp      = (*stepup.Service)(nil)
	_ authapi.Devices     = (*devices.Service)(nil)
	_ authapi.Trail       = (*audit.Trail)(nil)
)
