package authapi

import (
	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/core/auth"
)

type sessionList struct {
	Sessions []session `json:"sessions"`
	pageInfo
}

type session struct {
	ID             auth.SessionID      `json:"id"`
	TrustLevel     string              `json:"trustLevel"`
	DeviceIdentity auth.DeviceIdentity `json:"deviceIdentity"`
	CreatedAt      string              `json:"createdAt"`
	LastActivity   string              `json:"lastActivity"`
	IPAddress      string              `json:"ipAddress"`
	Current        bool                `json:"current"`
}

func (a *API) listSessions(c *fiber.Ctx, caller auth.Session) error {
	page, err := readPageRequest(c)
	if err != nil {
		return err
	}
	found, total, err := a.use.Devices.ListSessions(c.UserContext(), caller, page)
	if err != nil {
		return err
	}
	list := sessionList{Sessions: make([]session, 0, len(found)), pageInfo: pageInfo{total, page.Limit, page.Offset}}
	for i := range found {
		s := &found[i]
		list.Sessions = append(list.Sessions, session{
			ID: s.ID, TrustLevel: s.TrustLevel.String(), DeviceIdentity: s.DeviceIdentity,
			CreatedAt: FormatTime(s.CreatedAt), LastActivity: FormatTime(s.LastActivity),
			IPAddress: formatAddress(s.IPAddress), Current: s.ID == caller.ID,
		})
	}
	return sendJSON(c, list)
}

func (a *API) endSession(c *fiber.Ctx, caller auth.Session) error {
	id, err := pathID[auth.SessionID](c)
	if err != nil {
		return err
	}
	if err := a.use.SignIn.Terminate(c.UserContext(), caller, id); err != nil {
		return err
	}
	return sendJSON(c, messageResponse{"the session is ended"})
}

// ownSession is the session of the caller (contract A-1).
type ownSession struct {
	ID             auth.SessionID      `json:"id"`
	UserID         auth.UserID         `json:"userId"`
	TrustLevel     string              `json:"trustLevel"`
	DeviceIdentity auth.DeviceIdentity `json:"deviceIdentity"`
	CreatedAt      string              `json:"createdAt"`
	LastActivity   string              `json:"lastActivity"`
	ExpiresAt      string              `json:"expiresAt"`
	IPAddress      string              `json:"ipAddress"`
}

func (a *API) getSession(c *fiber.Ctx, caller auth.Session) error {
	return sendJSON(c, SessionShape(&caller))
}

// SessionShape returns the JSON shape of a session, with all that its person may see.
func SessionShape(s *auth.Session) any {
	return ownSession{
		ID: s.ID, UserID: s.UserID, TrustLevel: s.TrustLevel.String(), DeviceIdentity: s.DeviceIdentity,
		CreatedAt: FormatTime(s.CreatedAt), LastActivity: FormatTime(s.LastActivity),
		ExpiresAt: FormatTime(s.ExpiresAt), IPAddress: formatAddress(s.IPAddress),
	}
}
