package authapi

import (
	"maps"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest/jsonbody"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// readBody reads the body of a request, which must be a JSON object. Its members are read with
// fieldError, so that one response names every invalid field (contract A-3).
func readBody(c *fiber.Ctx) (*jsonbody.Object, error) {
	b, err := jsonbody.ReadStrictly(c)
	if err != nil {
		return nil, err
	}
	return b, fieldError(b.Problems())
}

// fieldError returns an error with the problems of all fields of a request, or nil. unreadable are
// those of fields that could not be read (invalid_input), others are errors of constructors for the
// values that were read. They are ignored for fields that could not be read. An error among others
// that is not about fields is returned alone.
func fieldError(unreadable map[string]string, others ...error) error {
	invalid := map[string]string{} // fields that break a rule (validation_error)
	for _, err := range others {
		if err == nil {
			continue
		}
		f, ok := fault.As(err)
		if !ok {
			return err
		}
		fields := f.Details.Inner("fields")
		if f.Kind != fault.Invalid || fields == nil {
			return err
		}
		problems := invalid
		if f.Code == auth.CodeInvalidInput {
			problems = unreadable
		}
		for name := range fields {
			if unreadable[name] == "" {
				problems[name] = fields.Text(name)
			}
		}
	}
	code := auth.CodeValidation
	if len(unreadable) > 0 {
		code = auth.CodeInvalidInput
		maps.Copy(invalid, unreadable)
	}
	if len(invalid) == 0 {
		return nil
	}
	return auth.InvalidFields(code, invalid)
}
