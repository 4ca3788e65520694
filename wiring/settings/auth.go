package settings

import (
	"strconv"
	"strings"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/federating"
	"github.com/tollgate-dev/tollgate/core/auth/people"
)

// authBindings returns the settings of sign-in, step-up and what else authentication does.
func (s *Settings) authBindings() []binding {
	in := &s.SignIn
	return []binding{
		s.bind(&in.AccessTokenTTL, "ACCESS_TOKEN_TTL", "15m", "lifetime of an access token").onlyIn(apiPart),
		s.bind(&in.RefreshTokenTTL, "REFRESH_TOKEN_TTL", "168h", "lifetime of a session after its last refresh"),
		s.bind(&in.RefreshTokenMaxAge, "REFRESH_TOKEN_MAX_AGE", "720h", "maximum lifetime of a session"),
		s.bind(&in.RefreshReuseGrace, "REFRESH_REUSE_GRACE", "0s",
			"how long a repeated refresh returns the same new token; 0 = a repeated refresh is a replay"),
		s.bind(&in.Lockout.Threshold, "LOCKOUT_THRESHOLD", "5",
			"number of failed sign-ins that locks an account, 1 to 100"),
		s.bind(&in.Lockout.Window, "LOCKOUT_WINDOW", "15m", "time within which failed sign-ins are counted together"),
		s.bind(&in.Lockout.Duration, "LOCKOUT_DURATION", "15m", "how long an account stays locked"),
		s.bind(&in.DeviceBinding, "DEVICE_BINDING", "preferred",
			"trust levels for which a confirmed device must show its device token: preferred (above "+
				"LIMITED_TRUST), required (above UNVERIFIED), off (none)"),
		s.bind(&in.MFAPolicy, "MFA_POLICY", "always",
			"when a person with an authenticator needs a code at login: always, or risk (only if a score is "+
				"above its bound of FULL_TRUST in RISK_POLICY)"),
		s.bind(&in.MFAPendingTTL, "MFA_PENDING_TTL", "5m",
			"how long a login waits for the code of the authenticator"),
		s.bind(&in.Risk.HighRiskCountries, "HIGH_RISK_COUNTRIES", "",
			"high-risk countries: ISO 3166 codes, comma separated"),
		s.bind(&in.PasswordsOff, "PASSWORD_SIGN_IN", "on",
			"on, or off: people sign in at their company only, and no password is accepted").
			as("text", oneOf(&in.PasswordsOff, "off", "on")),
		s.bind(&in.History, "RISK_HISTORY", "on",
			"score of the person's history: off (nothing is read or learnt), shadow (it is recorded and changes "+
				"nothing), on (it may lower the trust level; it is silent before 500 sign-ins)"),
		s.bind(&s.People.InvitationTTL, "INVITATION_TTL", "72h", "how long an invitation is good, 1h to 720h"),
		s.bind(&s.StepUp.CodeTTL, "OTP_TTL", "10m", "lifetime of a step-up code"),
		s.bind(&s.StepUp.Attempts, "OTP_ATTEMPTS", "3", "attempts per challenge"),
		s.bind(&s.Credentials.ReauthenticationMaxAge, "REAUTHENTICATION_MAX_AGE", "5m",
			"how long a password or a code counts for a second factor, a passkey, a token or a company sign-in that is added, 1s to 24h"),
		s.bind(&s.Passkeys.RPID, "WEBAUTHN_RP_ID", "",
			"relying party id of passkeys: the host of PUBLIC_URL or a parent domain of it; empty for the host"),
		s.bind(&s.Couriers.Notices, "NOTICES", "on",
			"on, or off: people get no notices about new devices, locks and replays").
			as("text", oneOf(&s.Couriers.Notices, "on", "off")),
		s.bind(&s.Retention.Audit, "AUDIT_RETENTION", "8760h", "how long an audit event is kept; 0 = forever"),
		s.bind(&s.Retention.Sessions, "SESSION_RETENTION", "8760h",
			"how long a session is kept after its end, so that the risk score can use it, and how long a device "+
				"that is revoked or was never confirmed is kept after it was last seen; 0 = forever"),
		s.bind(&s.Retention.Interval, "RETENTION_INTERVAL", "1h",
			"how often each instance removes old records; 0 = never"),
	}
}

// passwordQueue is how many password hashes may wait for a core: a few seconds of work on one.
const passwordQueue = 128

// completeAuth sets what use cases of authentication take from settings of others.
func (s *Settings) completeAuth() {
	in := &s.SignIn
	s.StepUp.Learn, s.StepUp.AccessTokenTTL = in.History.Learns(), in.AccessTokenTTL
	s.Credentials.Lockout, s.Credentials.Issuer = in.Lockout, auth.Issuer(strings.ReplaceAll(s.Brand.Name, ":", ""))
	s.Passwords.Queue = passwordQueue
	s.Cookies.SessionTTL = in.RefreshTokenTTL
	s.Retention.Lockout = max(in.Lockout.Window, in.Lockout.Duration)
	s.Tokens.TokenLife = in.AccessTokenTTL
	s.People.Product, s.People.Console = s.Brand.Name, s.consoleURL()
	s.Passkeys.PublicURL, s.Passkeys.Name = strings.TrimSuffix(s.IDTokens.PublicURL, "/"), s.Brand.Name
	s.Passkeys.PasswordsOff, s.Passkeys.ReauthenticationMaxAge = in.PasswordsOff, s.Credentials.ReauthenticationMaxAge
	s.Couriers.PublicURL, s.Proxies.PublicURL = s.IDTokens.PublicURL, s.IDTokens.PublicURL
	s.Access.On = s.Proxies.On
	s.Companies = federating.Config{Console: s.People.Console, Public: s.IDTokens.PublicURL != "",
		PasswordsOff: in.PasswordsOff,
		SessionTTL:   in.RefreshTokenTTL, SessionMaxAge: in.RefreshTokenMaxAge,
		ReauthenticationMaxAge: s.Credentials.ReauthenticationMaxAge}
}

// consoleURL returns the address of the console: below PUBLIC_URL, else on this machine.
func (s *Settings) consoleURL() people.ConsoleURL {
	base := strings.TrimSuffix(s.IDTokens.PublicURL, "/")
	if base == "" {
		base = "http://localhost:" + strconv.Itoa(s.REST.Port)
		if s.REST.TLS.Cert != "" {
			base = "https" + strings.TrimPrefix(base, "http")
		}
	}
	return people.ConsoleURL(base + "/console/")
}
