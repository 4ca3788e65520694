package authapi

import (
	"net/netip"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/adapters/rest/jsonbody"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/each"
)

type deviceList struct {
	Devices []device `json:"devices"`
	pageInfo
}

// pageInfo is the position of a page in its list.
type pageInfo struct {
	Total  int `json:"total"`
	Limit  int `json:"limit"`
	Offset int `json:"offset"`
}

type device struct {
	ID          auth.DeviceID       `json:"id"`
	Identity    auth.DeviceIdentity `json:"identity"`
	TrustStatus auth.TrustStatus    `json:"trustStatus"`
	Revoked     bool                `json:"revoked"`
	FirstSeen   string              `json:"firstSeen"`
	LastSeen    string              `json:"lastSeen"`
	Name        string              `json:"name,omitempty"`
	Metadata    deviceMetadata      `json:"metadata"`
}

type deviceMetadata struct {
	DeviceType      string `json:"deviceType"`
	Browser         string `json:"browser"`
	OperatingSystem string `json:"operatingSystem"`
	LastIPAddress   string `json:"lastIpAddress"`
}

func (a *API) listDevices(c *fiber.Ctx, caller auth.Session) error {
	page, err := readPageRequest(c)
	if err != nil {
		return err
	}
	found, total, err := a.use.Devices.ListDevices(c.UserContext(), caller, page)
	if err != nil {
		return err
	}
	return sendJSON(c, deviceList{each.MapRef(found, deviceOf), pageInfo{total, page.Limit, page.Offset}})
}

// readPageRequest reads the parameters limit and offset of a list of devices or sessions. The
// default is the longest page.
func readPageRequest(c *fiber.Ctx) (auth.PageRequest, error) {
	page := auth.PageRequest{Limit: auth.MaxPage}
	problems := []error{
		readNumber("limit", queryParam(c, "limit"), &page.Limit),
		readNumber("offset", queryParam(c, "offset"), &page.Offset),
	}
	return page, fieldError(map[string]string{}, append(problems, page.Validate())...)
}

// DeviceShape returns the JSON shape of a device.
func DeviceShape(d *auth.Device) any { return deviceOf(d) }

func deviceOf(d *auth.Device) device {
	return device{
		ID: d.ID, Identity: d.Identity, TrustStatus: d.TrustStatus, Revoked: d.Revoked,
		FirstSeen: FormatTime(d.FirstSeen), LastSeen: FormatTime(d.LastSeen), Name: d.Name,
		Metadata: deviceMetadata{d.Type, d.Browser, d.OS, formatAddress(d.LastIPAddress)},
	}
}

// formatAddress formats an address; empty for an unknown one.
func formatAddress(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

type markResponse struct {
	Message string       `json:"message"`
	Device  markedDevice `json:"device"`
}

type markedDevice struct {
	ID          auth.DeviceID    `json:"id"`
	TrustStatus auth.TrustStatus `json:"trustStatus"`
}

func (a *API) markDevice(c *fiber.Ctx, caller auth.Session, b *jsonbody.Object) error {
	id, badID := pathID[auth.DeviceID](c)
	status, badStatus := auth.ParseTrustStatus(b.Text("trustStatus"))
	if err := fieldError(b.Problems(), badID, badStatus); err != nil {
		return err
	}
	d, err := a.use.Devices.SetTrust(c.UserContext(), caller, id, status)
	if err != nil {
		return err
	}
	message := "the device is marked"
	if d.MarkUnproven {
		message = "the device is marked; the mark counts after the next code on the device"
	}
	return sendJSON(c, markResponse{message, markedDevice{d.ID, d.TrustStatus}})
}

type renameResponse struct {
	Message string        `json:"message"`
	Device  renamedDevice `json:"device"`
}

type renamedDevice struct {
	ID   auth.DeviceID `json:"id"`
	Name string        `json:"name"`
}

func (a *API) renameDevice(c *fiber.Ctx, caller auth.Session, b *jsonbody.Object) error {
	id, badID := pathID[auth.DeviceID](c)
	name, badName := auth.ParseDeviceName(b.PresentText("name"))
	if err := fieldError(b.Problems(), badID, badName); err != nil {
		return err
	}
	d, err := a.use.Devices.Rename(c.UserContext(), caller, id, name)
	return reply(c, err, renameResponse{"the device is renamed", renamedDevice{d.ID, d.Name}})
}

type revokeResponse struct {
	Message             string `json:"message"`
	SessionsInvalidated int    `json:"sessionsInvalidated"`
}

func (a *API) revokeDevice(c *fiber.Ctx, caller auth.Session, id auth.DeviceID) error {
	ended, err := a.use.Devices.Revoke(c.UserContext(), caller, id)
	return reply(c, err, revokeResponse{"the device is revoked", ended})
}

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
