package authapi

import (
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/core/auth"
)

// The names under which a device token travels (contract A-37).
const (
	deviceCookie = "tollgate_device"
	deviceHeader = "X-Device-Token"
	deviceTTL    = 365 * 24 * time.Hour
)

// deviceToken returns the device token that a request shows, by header or by
// cookie; empty when it shows none.
func deviceToken(c *fiber.Ctx) auth.DeviceSecret {
	token := c.Get(deviceHeader)
	if token == "" {
		token = c.Cookies(deviceCookie)
	}
	return auth.DeviceSecret(strings.Clone(token))
}

// giveDeviceToken hands a device its token, as a cookie that only /auth sees
// and no script reads, and as a header for clients without cookies.
func giveDeviceToken(c *fiber.Ctx, token auth.DeviceSecret) {
	if token == "" {
		return
	}
	c.Set(deviceHeader, string(token))
	c.Cookie(&fiber.Cookie{
		Name: deviceCookie, Value: string(token), Path: root, MaxAge: int(deviceTTL / time.Second),
		Secure: rest.Secure(c), HTTPOnly: true, SameSite: fiber.CookieSameSiteStrictMode,
	})
}
