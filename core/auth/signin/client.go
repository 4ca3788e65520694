package signin

import "github.com/mileusna/useragent"

// client is what a user agent tells of a device, for its owner to recognise it by.
type client struct{ device, browser, os string }

// clientOf reads a user agent. What cannot be read is "unknown".
func clientOf(userAgent string) client {
	parsed := useragent.Parse(userAgent)
	c := client{device: "unknown", browser: parsed.Name, os: parsed.OS}
	switch {
	case parsed.Bot:
		c.device = "bot"
	case parsed.Tablet:
		c.device = "tablet"
	case parsed.Mobile:
		c.device = "mobile"
	case parsed.Desktop:
		c.device = "desktop"
	}
	if c.browser == "" {
		c.browser = "unknown"
	}
	if c.os == "" {
		c.os = "unknown"
	}
	return c
}
