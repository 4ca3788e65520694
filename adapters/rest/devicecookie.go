package rest

import (
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/core/auth"
)

// The names of the cookie with the device token (contract A-37). Browsers accept a name with the
// prefix __Secure- only over TLS, so that no one who reads or writes plain HTTP of a sibling domain
// can put another value in its place (RFC 6265bis, 4.1.3.1).
const (
	secureDeviceCookie = "__Secure-tollgate_device"
	plainDeviceCookie  = "tollgate_device" // over plain HTTP, and from versions that had no other name
)

// DeviceCookieName returns the name of the cookie for a device token in the response to a request.
func DeviceCookieName(c *fiber.Ctx) string {
	if Secure(c) {
		return secureDeviceCookie
	}
	return plainDeviceCookie
}

// DeviceCookie returns the device token in the cookies of a request; empty without one. The plain
// name counts only without the other one.
func DeviceCookie(c *fiber.Ctx) auth.DeviceSecret {
	token := c.Cookies(secureDeviceCookie)
	if token == "" {
		token = c.Cookies(plainDeviceCookie)
	}
	return auth.DeviceSecret(strings.Clone(token))
}
