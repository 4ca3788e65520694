package authapi

import (
	"context"
	"net/netip"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/adapters/rest/jsonbody"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/pairing"
	"github.com/tollgate-dev/tollgate/core/auth/passkeys"
	"github.com/tollgate-dev/tollgate/core/auth/signin"
	"github.com/tollgate-dev/tollgate/core/registry/delegating"
)

// SignIn begins, renews and ends sessions. *signin.Service documents the errors; the service passes
// it with metrics, which another adapter counts.
type SignIn interface {
	Login(ctx context.Context, in signin.Login) (signin.Result, error)
	VerifyMFA(ctx context.Context, in signin.MFAAnswer) (signin.Result, error)
	LoginByPasskey(ctx context.Context, in passkeys.Answer, from signin.Origin) (signin.Result, error)
	Refresh(ctx context.Context, secret auth.RefreshSecret, from netip.Addr) (signin.Result, error)
	SignOut(ctx context.Context, caller auth.Session, id auth.SessionID) error
	Terminate(ctx context.Context, caller auth.Session, id auth.SessionID) error
}

type loginResponse struct {
	AccessToken  string `json:"accessToken"`
	RefreshToken string `json:"refreshToken"`
	TrustLevel   string `json:"trustLevel"`
	ExpiresIn    int64  `json:"expiresIn"` // seconds
	RequiresMFA  bool   `json:"requiresMFA"`
}

// mfaResponse is the response to a login that needs a second factor.
type mfaResponse struct {
	RequiresMFA bool        `json:"requiresMFA"`
	UserID      auth.UserID `json:"userId"`
	Message     string      `json:"message"`
}

func (a *API) logIn(c *fiber.Ctx, b *jsonbody.Object) error {
	in, err := readLogin(b)
	if err != nil {
		return err
	}
	in.DeviceToken, in.Address = readDeviceToken(c), rest.Address(c)
	r, err := a.use.SignIn.Login(c.UserContext(), in)
	if err != nil {
		return err
	}
	if r.MFARequired {
		return sendJSON(c, mfaResponse{true, r.UserID, "enter a code from your authenticator"})
	}
	return sendLogin(c, r)
}

func sendLogin(c *fiber.Ctx, r signin.Result) error {
	return sendJSON(c, loginResponse{
		AccessToken: string(r.AccessToken), RefreshToken: string(r.RefreshToken),
		TrustLevel: r.TrustLevel.String(), ExpiresIn: wholeSeconds(r.ExpiresIn),
	})
}

// readLogin reads the body of a login. Its error names all invalid fields.
func readLogin(b *jsonbody.Object) (signin.Login, error) {
	var in signin.Login
	var email, password, device error
	in.Email, email = auth.ParseEmail(b.Text("email"))
	in.Password, password = auth.NewPassword("password", b.Text("password"))
	in.Device, device = readDevice(b)
	return in, fieldError(b.Problems(), email, password, device)
}

func readDevice(b *jsonbody.Object) (auth.DeviceInfo, error) {
	return auth.NewDeviceInfo(readDeviceFields(b))
}

func readDeviceFields(b *jsonbody.Object) auth.DeviceFields {
	info := b.Nested("deviceInfo")
	return auth.DeviceFields{
		UserAgent: info.OptionalText("userAgent"), ScreenResolution: info.OptionalText("screenResolution"),
		Timezone: info.OptionalText("timezone"), Language: info.OptionalText("language"),
	}
}

// verifiedResponse is the response to a second factor, and to a refresh without the trust level.
type verifiedResponse struct {
	AccessToken  string `json:"accessToken"`
	RefreshToken string `json:"refreshToken"`
	TrustLevel   string `json:"trustLevel,omitempty"`
	ExpiresIn    int64  `json:"expiresIn"` // seconds
}

func (a *API) verifyMFA(c *fiber.Ctx, b *jsonbody.Object) error {
	var in signin.MFAAnswer
	var user, device error
	in.UserID, user = auth.ParseUUID[auth.UserID]("userId", b.Text("userId"))
	in.Code, in.TrustDevice = auth.OTP(b.Text("mfaCode")), b.Flag("trustDevice")
	in.Device, device = readDevice(b)
	if err := fieldError(b.Problems(), user, device); err != nil {
		return err
	}
	in.DeviceToken, in.Address = readDeviceToken(c), rest.Address(c)
	r, err := a.use.SignIn.VerifyMFA(c.UserContext(), in)
	if err != nil {
		return err
	}
	setDeviceToken(c, r.DeviceToken)
	return sendJSON(c, newVerified(r))
}

// pairedResponse is the response to the code of a command.
type pairedResponse struct {
	verifiedResponse

	Email auth.Email `json:"email"`
}

// deviceResponse is the response to the request of a command (RFC 8628, section 3.2).
type deviceResponse struct {
	DeviceCode string `json:"deviceCode"`
	UserCode   string `json:"userCode"`
	Page       string `json:"verificationPath"`
	ExpiresIn  int64  `json:"expiresIn"` // seconds
	Interval   int64  `json:"interval"`
}

// beginDevice begins the sign-in of a command that its person approves in a browser.
func (a *API) beginDevice(c *fiber.Ctx, b *jsonbody.Object) error {
	from, err := readOrigin(c, b)
	if err != nil {
		return err
	}
	secret, code, err := a.use.Pairing.Begin(c.UserContext(), from)
	return reply(c, err, deviceResponse{
		string(secret), code, "/console/sign-in/command", wholeSeconds(pairing.TTL), wholeSeconds(pairing.Interval),
	})
}

// readOrigin reads what a command says about itself. It has the errors of all fields of the body.
func readOrigin(c *fiber.Ctx, b *jsonbody.Object) (from signin.Origin, err error) {
	from.Device, err = readDevice(b)
	from.DeviceToken, from.Address = readDeviceToken(c), rest.Address(c)
	return from, fieldError(b.Problems(), err)
}

// pollDevice begins the session of a command when its person has approved it.
func (a *API) pollDevice(c *fiber.Ctx, b *jsonbody.Object) error {
	secret := auth.LinkSecret(b.Text("deviceCode"))
	from, err := readOrigin(c, b)
	if err != nil {
		return err
	}
	r, email, err := a.use.Pairing.Exchange(c.UserContext(), secret, from)
	if err != nil {
		return err
	}
	setDeviceToken(c, r.DeviceToken)
	return sendJSON(c, pairedResponse{newVerified(r), email})
}

func newVerified(r signin.Result) verifiedResponse {
	return verifiedResponse{
		AccessToken: string(r.AccessToken), RefreshToken: string(r.RefreshToken),
		TrustLevel: r.TrustLevel.String(), ExpiresIn: wholeSeconds(r.ExpiresIn),
	}
}

func (a *API) refreshTokens(c *fiber.Ctx, b *jsonbody.Object) error {
	secret := auth.RefreshSecret(b.Text("refreshToken"))
	if err := fieldError(b.Problems()); err != nil {
		return err
	}
	r, err := a.use.SignIn.Refresh(c.UserContext(), secret, rest.Address(c))
	if err != nil {
		return err
	}
	return sendJSON(c, verifiedResponse{
		AccessToken: string(r.AccessToken), RefreshToken: string(r.RefreshToken), ExpiresIn: wholeSeconds(r.ExpiresIn),
	})
}

func (a *API) logOut(c *fiber.Ctx, caller auth.Session, b *jsonbody.Object) error {
	id, err := auth.ParseUUID[auth.SessionID]("sessionId", b.Text("sessionId"))
	if err := fieldError(b.Problems(), err); err != nil {
		return err
	}
	err = a.use.SignIn.SignOut(c.UserContext(), caller, id)
	return reply(c, err, messageResponse{"signed out"})
}

func wholeSeconds(d time.Duration) int64 { return int64(d / time.Second) }

type workloadResponse struct {
	AccessToken string `json:"accessToken"`
	ExpiresIn   int64  `json:"expiresIn"` // seconds
}

// proveWorkload returns a token of a service account for an ID token of one of its workloads.
func (a *API) proveWorkload(c *fiber.Ctx, b *jsonbody.Object) error {
	r := delegating.WorkloadRequest{
		Client:  delegating.Client{Address: rest.Address(c), Key: rest.Client(c).String()},
		Service: b.Text("serviceAccount"), Token: b.Text("token"),
	}
	if err := fieldError(b.Problems()); err != nil {
		return err
	}
	t, err := a.use.Workloads.ProveWorkload(c.UserContext(), r)
	return reply(c, err, workloadResponse{t.Text, wholeSeconds(auth.WorkloadTTL)})
}
