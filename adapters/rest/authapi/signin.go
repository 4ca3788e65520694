package authapi

import (
	"context"
	"net/netip"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/signin"
)

// SignIn begins, renews and ends sessions. *signin.Service is one; the errors
// are documented there.
type SignIn interface {
	Login(ctx context.Context, in signin.Login) (signin.Result, error)
	VerifyMFA(ctx context.Context, in signin.MFAAnswer) (signin.Result, error)
	Refresh(ctx context.Context, secret auth.RefreshSecret, from netip.Addr) (signin.Result, error)
	SignOut(ctx context.Context, caller auth.Session, id auth.SessionID) error
	Terminate(ctx context.Context, caller auth.Session, id auth.SessionID) error
}

type loginAnswer struct {
	AccessToken  string `json:"accessToken"`
	RefreshToken string `json:"refreshToken"`
	TrustLevel   string `json:"trustLevel"`
	ExpiresIn    int64  `json:"expiresIn"` // seconds
	RequiresMFA  bool   `json:"requiresMFA"`
}

// mfaAnswer is the answer of a login that waits for its second factor.
type mfaAnswer struct {
	RequiresMFA bool        `json:"requiresMFA"`
	UserID      auth.UserID `json:"userId"`
	Message     string      `json:"message"`
}

func (a *API) login(c *fiber.Ctx) error {
	b, err := readBody(c)
	if err != nil {
		return err
	}
	in, err := readLogin(b)
	if err != nil {
		return err
	}
	in.DeviceToken, in.Address = deviceToken(c), rest.Address(c)
	r, err := a.signIn.Login(c.UserContext(), in)
	if err != nil {
		return err
	}
	if r.MFARequired {
		return answer(c, mfaAnswer{true, r.UserID, "a code of your authenticator is needed"})
	}
	return answer(c, loginAnswer{
		AccessToken: string(r.AccessToken), RefreshToken: string(r.RefreshToken),
		TrustLevel: r.TrustLevel.String(), ExpiresIn: seconds(r.ExpiresIn),
	})
}

// readLogin reads the body of a login. It looks at all fields, so that what is
// wrong is told at once.
func readLogin(b body) (signin.Login, error) {
	var in signin.Login
	var email, password, device error
	in.Email, email = auth.ParseEmail(b.text("email"))
	in.Password, password = auth.NewPassword("password", b.text("password"))
	in.Device, device = readDevice(b)
	return in, b.err(email, password, device)
}

func readDevice(b body) (auth.DeviceInfo, error) {
	info := b.object("deviceInfo")
	return auth.NewDeviceInfo(auth.DeviceFields{
		UserAgent: info.option("userAgent"), ScreenResolution: info.option("screenResolution"),
		Timezone: info.option("timezone"), Language: info.option("language"),
	})
}

// verifiedAnswer is the answer of a second step.
type verifiedAnswer struct {
	AccessToken  string `json:"accessToken"`
	RefreshToken string `json:"refreshToken"`
	TrustLevel   string `json:"trustLevel"`
	ExpiresIn    int64  `json:"expiresIn"` // seconds
}

func (a *API) verifyMFA(c *fiber.Ctx) error {
	b, err := readBody(c)
	if err != nil {
		return err
	}
	var in signin.MFAAnswer
	var user, device error
	in.UserID, user = auth.ParseUUID[auth.UserID]("userId", b.text("userId"))
	in.Code = auth.OTP(b.text("mfaCode"))
	in.Device, device = readDevice(b)
	if err := b.err(user, device); err != nil {
		return err
	}
	in.DeviceToken, in.Address = deviceToken(c), rest.Address(c)
	r, err := a.signIn.VerifyMFA(c.UserContext(), in)
	if err != nil {
		return err
	}
	giveDeviceToken(c, r.DeviceToken)
	return answer(c, verifiedAnswer{
		AccessToken: string(r.AccessToken), RefreshToken: string(r.RefreshToken),
		TrustLevel: r.TrustLevel.String(), ExpiresIn: seconds(r.ExpiresIn),
	})
}

type refreshAnswer struct {
	AccessToken  string `json:"accessToken"`
	RefreshToken string `json:"refreshToken"`
	ExpiresIn    int64  `json:"expiresIn"` // seconds
}

func (a *API) refresh(c *fiber.Ctx) error {
	b, err := readBody(c)
	if err != nil {
		return err
	}
	secret := auth.RefreshSecret(b.text("refreshToken"))
	if err := b.err(); err != nil {
		return err
	}
	r, err := a.signIn.Refresh(c.UserContext(), secret, rest.Address(c))
	if err != nil {
		return err
	}
	return answer(c, refreshAnswer{
		AccessToken: string(r.AccessToken), RefreshToken: string(r.RefreshToken), ExpiresIn: seconds(r.ExpiresIn),
	})
}

func (a *API) logout(c *fiber.Ctx, caller auth.Session) error {
	b, err := readBody(c)
	if err != nil {
		return err
	}
	id, err := auth.ParseUUID[auth.SessionID]("sessionId", b.text("sessionId"))
	if err := b.err(err); err != nil {
		return err
	}
	if err := a.signIn.SignOut(c.UserContext(), caller, id); err != nil {
		return err
	}
	return answer(c, done{"signed out"})
}

func seconds(d time.Duration) int64 { return int64(d / time.Second) }
