package authapi

import (
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/core/auth"
)

// Cookie and header of the device token (contract A-37).
const (
	deviceHeader = "X-Device-Token"
	deviceTTL    = 365 * 24 * time.Hour
)

// readDeviceToken returns the device token in the header or the cookie of a request; empty without
// one.
func readDeviceToken(c *fiber.Ctx) auth.DeviceSecret {
	if token := c.Get(deviceHeader); token != "" {
		return auth.DeviceSecret(strings.Clone(token))
	}
	return rest.DeviceCookie(c)
}

// setDeviceToken sends a device token as a cookie, which is sent only below /auth and not readable
// by scripts, and as a header for clients without cookies. It does nothing for an empty token.
func setDeviceToken(c *fiber.Ctx, token auth.DeviceSecret) {
	if token == "" {
		return
	}
	c.Set(deviceHeader, string(token))
	c.Cookie(&fiber.Cookie{
		Name: rest.DeviceCookieName(c), Value: string(token), Path: root, MaxAge: int(deviceTTL / time.Second),
		Secure: rest.Secure(c), HTTPOnly: true, SameSite: fiber.CookieSameSiteStrictMode,
	})
}
