package authapi

import (
	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/core/auth"
)

type sessionList struct {
	Sessions []session `json:"sessions"`
	pageInfo
}

// session is a session of the list, which has Current, or that of the caller (contract A-1), which
// has UserID and ExpiresAt.
type session struct {
	ID             auth.SessionID      `json:"id"`
	UserID         auth.UserID         `json:"userId,omitempty"`
	TrustLevel     string              `json:"trustLevel"`
	DeviceIdentity auth.DeviceIdentity `json:"deviceIdentity"`
	CreatedAt      string              `json:"createdAt"`
	LastActivity   string              `json:"lastActivity"`
	ExpiresAt      string              `json:"expiresAt,omitempty"`
	IPAddress      string              `json:"ipAddress"`
	Current        *bool               `json:"current,omitempty"`
}

func newSession(s *auth.Session) session {
	return session{
		ID: s.ID, TrustLevel: s.TrustLevel.String(), DeviceIdentity: s.DeviceIdentity,
		CreatedAt: FormatTime(s.CreatedAt), LastActivity: FormatTime(s.LastActivity), IPAddress: formatAddress(s.IPAddress),
	}
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
		s, current := newSession(&found[i]), found[i].ID == caller.ID
		s.Current = &current
		list.Sessions = append(list.Sessions, s)
	}
	return sendJSON(c, list)
}

func (a *API) endSession(c *fiber.Ctx, caller auth.Session, id auth.SessionID) error {
	err := a.use.SignIn.Terminate(c.UserContext(), caller, id)
	return reply(c, err, messageResponse{"the session is ended"})
}

func (a *API) getSession(c *fiber.Ctx, caller auth.Session) error {
	return sendJSON(c, SessionShape(&caller))
}

// SessionShape returns the JSON shape of a session, with all that its person may see.
func SessionShape(s *auth.Session) any {
	own := newSession(s)
	own.UserID, own.ExpiresAt = s.UserID, FormatTime(s.ExpiresAt)
	return own
}
