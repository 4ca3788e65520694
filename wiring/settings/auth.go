package settings

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/authorizing"
	"github.com/tollgate-dev/tollgate/core/auth/federating"
	"github.com/tollgate-dev/tollgate/core/auth/people"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/toolserver"
	"github.com/tollgate-dev/tollgate/plugins/sdk/publicdial"
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

// oauthBindings returns the settings of the authorization server.
func (s *Settings) oauthBindings() []binding {
	c := &s.OAuth
	clients := func(text string) (authorizing.Clients, error) {
		return fault.OneOf("clients", text, authorizing.ClientsRegistered, authorizing.ClientsOfHosts, authorizing.ClientsOpen)
	}
	return []binding{
		s.bind(&c.On, "OAUTH", "off", "the authorization server, which issues tokens for approved tool servers: off or on; on needs PUBLIC_URL").
			as("text", oneOf(&c.On, "on", "off")),
		s.bind(&c.Clients, "OAUTH_CLIENTS", string(authorizing.ClientsOfHosts),
			"which clients there may be besides the registered ones: registered (no others), hosts (with a document at OAUTH_CLIENT_HOSTS), open (with any document)").
			as("text", word(&c.Clients, clients, "registered, hosts or open")),
		s.bind(&c.Hosts, "OAUTH_CLIENT_HOSTS", "vscode.dev,claude.ai",
			"hosts of the documents of clients, or whole addresses of documents, separated by commas; a port other than 443 is part of the host").
			as("a comma-separated list", documentHosts(&c.Hosts)),
		s.bind(&c.AllListed, "OAUTH_RESOURCES", "declared",
			"declared: tokens are issued for the resources that operators have declared; listed: also for each https remote of a listed version").
			as("text", oneOf(&c.AllListed, "listed", "declared")),
		s.bind(&c.AlwaysAsk, "OAUTH_CONSENT", "remember", "remember: a person agrees to a client once in 90 days; always: each time").
			as("text", oneOf(&c.AlwaysAsk, "always", "remember")),
		s.bind(&c.ReuseByClient, "ID_JAG_REUSE", "off",
			"off: an assertion of a company provider is good once; client: the same client may use it again until it ends").
			as("text", oneOf(&c.ReuseByClient, "client", "off")),
	}
}

// documentHosts returns a function that sets a field to the hosts, and the addresses of documents, of a list.
func documentHosts(field *[]string) func(string) error {
	return func(text string) error {
		list := strings.Split(text, ",")
		for i, one := range list {
			list[i] = strings.TrimSpace(one)
			at, err := url.Parse("https://" + strings.TrimPrefix(list[i], "https://"))
			if err != nil || at.Hostname() == "" || at.User != nil || strings.ContainsAny(list[i], " @!?#") ||
				at.Path != "" && !strings.HasPrefix(list[i], "https://") {
				return fmt.Errorf("%.60q is neither a host nor the https address of a document", list[i])
			}
		}
		*field = list
		return nil
	}
}

// completeOAuth sets what the authorization server takes from settings of others.
func (s *Settings) completeOAuth() {
	in := &s.SignIn
	s.OAuth.ReuseGrace, s.OAuth.SessionTTL, s.OAuth.SessionMaxAge = in.RefreshReuseGrace, in.RefreshTokenTTL, in.RefreshTokenMaxAge
	s.OAuth.Issuer = originOf(s.IDTokens.PublicURL)
	s.Proxies.Issues = s.OAuth.On
	if s.OAuth.On {
		s.Tokens.OAuthIssuer = s.OAuth.Issuer
	}
}

// originOf returns a URL as the origin that clients compare: in lower case, without the usual port and a slash.
func originOf(text string) string {
	u, err := url.Parse(strings.TrimRight(text, "/"))
	if err != nil {
		return text
	}
	u.Scheme, u.Host = strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	if usual := map[string]string{"https": ":443", "http": ":80"}[u.Scheme]; usual != "" {
		u.Host = strings.TrimSuffix(u.Host, usual)
	}
	return u.String()
}

// validateOAuth returns an error that begins with the variable whose value does not fit.
func (s *Settings) validateOAuth() error {
	at, err := url.Parse(s.OAuth.Issuer)
	switch {
	case !s.OAuth.On:
		return nil
	case s.OAuth.Issuer == "":
		return errors.New("PUBLIC_URL: OAUTH=on needs it, since clients compare it with the issuer of their tokens")
	case err != nil || at.Path+at.RawQuery+at.Fragment != "":
		return errors.New("PUBLIC_URL: with OAUTH=on it must have no path and no query, since the issuer is its origin")
	case at.Scheme != "https" && !publicdial.IsLoopback(at.Hostname()):
		return errors.New("PUBLIC_URL: with OAUTH=on it must begin with https://; http:// is possible on localhost only")
	case !s.Console.On:
		return errors.New("CONSOLE: with OAUTH=on it must be on, since people sign in and agree there")
	case len(s.IDTokens.AuthorizationServers) > 0:
		return errors.New("OAUTH_AUTHORIZATION_SERVERS: it cannot be set with OAUTH=on: this service is the authorization server")
	case s.Tokens.Audience == s.OAuth.Issuer:
		return errors.New("TOKEN_AUDIENCE: with OAUTH=on it must not be the origin of PUBLIC_URL, which is the audience of other tokens")
	}
	return nil
}

// accessBindings returns the settings of decisions about calls.
func (s *Settings) accessBindings() []binding {
	c := &s.Access
	effect := func(text string) (access.Effect, error) {
		return fault.OneOf("effect", text, access.Deny, access.Allow)
	}
	mode := func(text string) (access.Mode, error) {
		return fault.OneOf("mode", text, access.Enforce, access.Observe)
	}
	return []binding{
		s.bind(&c.Default, "ACCESS_DEFAULT", "deny",
			"what becomes of a call that no access rule matches: deny or allow").
			as("text", word(&c.Default, effect, "deny or allow")),
		s.bind(&c.Unlisted, "ACCESS_UNLISTED", "deny",
			"what becomes of a call of a server that the registry does not list: deny or allow").
			as("text", word(&c.Unlisted, effect, "deny or allow")),
		s.bind(&c.Mode, "ACCESS_MODE", "enforce",
			"enforce, or observe: no access rule decides, and what each would have done is shown").
			as("text", word(&c.Mode, mode, "enforce or observe")),
		s.bind(&c.OnChange, "TOOLS_ON_CHANGE", "notify",
			"what becomes of tools that a server shows otherwise than they were approved: notify; deny: calls of them are denied; quarantine: the version is put in quarantine").
			as("text", word(&c.OnChange, toolserver.ParseOnChange, "notify, deny or quarantine")),
		s.bind(&c.AwayAllows, "DECIDE_AWAY", "deny",
			"what becomes of a call whose caller is not in memory while the database is away: deny or allow").
			as("text", oneOf(&c.AwayAllows, "allow", "deny")),
		s.bind(&c.StaleMax, "DECIDE_STALE_MAX", "5m",
			"while rules and listings cannot be read, how old those may be by which calls are decided, 1s to 720h; then DECIDE_AWAY decides"),
		s.bind(&s.Proxies.On, "DECIDE", "off", "whether proxies may ask for decisions about calls: off or on").
			as("text", oneOf(&s.Proxies.On, "on", "off")),
		s.bind(&c.LogsAll, "DECIDE_LOG", "denied",
			"denied: denials and challenges are in the audit log; all: every decision is also a line of the log").
			as("text", oneOf(&c.LogsAll, "all", "denied")),
	}
}

// Couriers holds the settings of the delivery of codes and notices. Those of a courier itself are
// declared by its plugin.
type Couriers struct {
	Email     string `env:"OTP_EMAIL_PLUGIN" desc:"plugin that delivers codes by e-mail; default: otp-log in the embedded environment, no plugin in production"`
	SMS       string `env:"OTP_SMS_PLUGIN" desc:"plugin that delivers codes by SMS; same default as OTP_EMAIL_PLUGIN"`
	Notices   bool   `env:"-"`
	PublicURL string `env:"-"` // links in notices begin with it; empty without one
}

// pluginVariable returns a function for the values of variables that plugins declare. It returns an
// error for a variable that the service reads.
func (e environment) pluginVariable(vars []Variable) func(name string, secret bool) (string, error) {
	return func(name string, secret bool) (string, error) {
		if slices.ContainsFunc(vars, func(v Variable) bool { return v.Name == name || v.Secret && v.Name+"_FILE" == name }) {
			return "", fmt.Errorf("%s: it is a setting of the service, which no plugin gets", name)
		}
		if !secret {
			return e.values[name], nil
		}
		return e.secret(name)
	}
}
