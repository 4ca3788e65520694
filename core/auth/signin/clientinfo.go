package signin

import "github.com/mileusna/useragent"

// clientInfo is the kind of device, the browser and the operating system that a user agent names.
// It helps the owner to recognise the device.
type clientInfo struct{ device, browser, os string }

// parseUserAgent returns what a user agent names. A part that it does not name is "unknown".
func parseUserAgent(userAgent string) clientInfo {
	parsed := useragent.Parse(userAgent)
	c := clientInfo{device: "unknown", browser: parsed.Name, os: parsed.OS}
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
