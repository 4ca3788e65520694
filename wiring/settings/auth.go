package settings

import (
	"fmt"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/assessment"
	"github.com/tollgate-dev/tollgate/core/auth/credentials"
	"github.com/tollgate-dev/tollgate/core/auth/risk"
	"github.com/tollgate-dev/tollgate/core/auth/signin"
	"github.com/tollgate-dev/tollgate/core/auth/stepup"
	"github.com/tollgate-dev/tollgate/core/auth/trust"
)

// Auth holds the settings of sign-in and step-up.
type Auth struct {
	AccessTokenTTL     time.Duration    `readBy:"api" env:"ACCESS_TOKEN_TTL" envDefault:"15m" desc:"lifetime of an access token"`
	RefreshTokenTTL    time.Duration    `env:"REFRESH_TOKEN_TTL" envDefault:"168h" desc:"lifetime of a session after its last refresh"`
	RefreshTokenMaxAge time.Duration    `env:"REFRESH_TOKEN_MAX_AGE" envDefault:"720h" desc:"maximum lifetime of a session"`
	RefreshReuseGrace  time.Duration    `env:"REFRESH_REUSE_GRACE" envDefault:"0s" desc:"how long a repeated refresh returns the same new token; 0 = a repeated refresh is a replay"`
	LockoutThreshold   int              `env:"LOCKOUT_THRESHOLD" envDefault:"5" desc:"number of failed sign-ins that locks an account, 1 to 100"`
	LockoutWindow      time.Duration    `env:"LOCKOUT_WINDOW" envDefault:"15m" desc:"time within which failed sign-ins are counted together"`
	LockoutDuration    time.Duration    `env:"LOCKOUT_DURATION" envDefault:"15m" desc:"how long an account stays locked"`
	OTPTTL             time.Duration    `env:"OTP_TTL" envDefault:"10m" desc:"lifetime of a step-up code"`
	OTPAttempts        int              `env:"OTP_ATTEMPTS" envDefault:"3" desc:"attempts per challenge"`
	OTPEmailPlugin     string           `env:"OTP_EMAIL_PLUGIN" desc:"plugin that delivers codes by e-mail; default: otp-log in the embedded environment, no plugin in production"`
	OTPSMSPlugin       string           `env:"OTP_SMS_PLUGIN" desc:"plugin that delivers codes by SMS; same default as OTP_EMAIL_PLUGIN"`
	OTPLogFile         string           `env:"OTP_LOG_FILE" desc:"file to which otp-log also appends each code as a JSON line"`
	NoticeLogFile      string           `env:"NOTICE_LOG_FILE" desc:"file to which otp-log also appends each notice as a JSON line"`
	Notices            string           `env:"NOTICES" envDefault:"on" desc:"on, or off: people get no notices about new devices, locks and replays"`
	DeviceBinding      trust.Binding    `env:"DEVICE_BINDING" envDefault:"preferred" desc:"trust levels for which a confirmed device must show its device token: preferred (above LIMITED_TRUST), required (above UNVERIFIED), off (none)"`
	MFAPolicy          signin.MFAPolicy `env:"MFA_POLICY" envDefault:"always" desc:"when a person with an authenticator needs a code at login: always, or risk (only if the score is above RISK_FULL_TRUST_MAX)"`
	MFAPendingTTL      time.Duration    `env:"MFA_PENDING_TTL" envDefault:"5m" desc:"how long a login waits for the code of the authenticator"`
	MFAIssuer          auth.Issuer      `env:"MFA_ISSUER" envDefault:"Tollgate" desc:"the name under which an authenticator app lists this service"`
	ReauthMaxAge       time.Duration    `env:"REAUTHENTICATION_MAX_AGE" envDefault:"5m" desc:"how long a password or a code counts for a change of the second factor, 1s to 24h"`
	Risk               Risk
}

// Risk holds the weights and bounds of the risk score (contract ).
type Risk struct {
	DeviceConfirmed     int      `env:"RISK_DEVICE_CONFIRMED" envDefault:"15" desc:"points for a confirmed device that is not trusted or does not show its device token"`
	DeviceUnknown       int      `env:"RISK_DEVICE_UNKNOWN" envDefault:"30" desc:"points for a device that is not confirmed"`
	OtherCountry        int      `env:"RISK_OTHER_COUNTRY" envDefault:"20" desc:"points for a country that is not usual for the person"`
	HighRiskCountry     int      `env:"RISK_HIGH_RISK_COUNTRY" envDefault:"30" desc:"points for a country in HIGH_RISK_COUNTRIES"`
	HighRiskCountries   []string `env:"HIGH_RISK_COUNTRIES" desc:"high-risk countries: ISO 3166 codes, comma separated"`
	ImpossibleTravel    int      `env:"RISK_IMPOSSIBLE_TRAVEL" envDefault:"40" desc:"points for impossible travel"`
	TravelMaxKMH        float64  `env:"RISK_TRAVEL_MAX_KMH" envDefault:"900" desc:"speed above which travel is impossible, in km/h"`
	TravelMinKM         float64  `env:"RISK_TRAVEL_MIN_KM" envDefault:"100" desc:"distance up to which travel is never impossible, in km"`
	AddressHidden       int      `env:"RISK_ADDRESS_HIDDEN" envDefault:"10" desc:"points for an address of a hosting company, proxy or Tor exit"`
	AddressListed       int      `env:"RISK_ADDRESS_LISTED" envDefault:"40" desc:"points for an address that is listed as bad"`
	VelocitySessions    int      `env:"RISK_VELOCITY_SESSIONS" envDefault:"2" desc:"number of other sessions within a short time that adds points"`
	VelocityMinute      int      `env:"RISK_VELOCITY_MINUTE" envDefault:"30" desc:"points for RISK_VELOCITY_SESSIONS within one minute"`
	VelocityFiveMinutes int      `env:"RISK_VELOCITY_FIVE_MINUTES" envDefault:"15" desc:"points for RISK_VELOCITY_SESSIONS within five minutes"`
	FailedFew           int      `env:"RISK_FAILED_FEW" envDefault:"10" desc:"points for one failed sign-in or more"`
	FailedSome          int      `env:"RISK_FAILED_SOME" envDefault:"25" desc:"points for RISK_SOME_FAILURES failed sign-ins or more"`
	FailedMany          int      `env:"RISK_FAILED_MANY" envDefault:"40" desc:"points for RISK_MANY_FAILURES failed sign-ins or more"`
	SomeFailures        int      `env:"RISK_SOME_FAILURES" envDefault:"3" desc:"number of failed sign-ins from which RISK_FAILED_SOME applies"`
	ManyFailures        int      `env:"RISK_MANY_FAILURES" envDefault:"6" desc:"number of failed sign-ins from which RISK_FAILED_MANY applies"`
	FullTrustMax        int      `env:"RISK_FULL_TRUST_MAX" envDefault:"20" desc:"highest score of FULL_TRUST"`
	LimitedTrustMax     int      `env:"RISK_LIMITED_TRUST_MAX" envDefault:"40" desc:"highest score of LIMITED_TRUST"`
	UnverifiedMax       int      `env:"RISK_UNVERIFIED_MAX" envDefault:"60" desc:"highest score of UNVERIFIED; a higher score is HIGH_RISK"`

	History assessment.HistoryMode `env:"RISK_HISTORY" envDefault:"shadow" desc:"score of the person's history: off (nothing is read or learnt), shadow (it is recorded and changes nothing), on (it may raise the risk score)"`
}

// Validate returns an error that begins with the first setting that is out of range. The use cases
// define the ranges.
func (a Auth) Validate() error {
	for _, validate := range []func() error{a.SignIn().Validate, a.StepUp().Validate, a.Credentials().Validate} {
		if err := validate(); err != nil {
			return err
		}
	}
	if a.Notices != "on" && a.Notices != "off" {
		return fmt.Errorf("NOTICES: %q is neither on nor off", a.Notices)
	}
	return nil
}

// NoticesOn reports whether people get notices about their accounts.
func (a Auth) NoticesOn() bool { return a.Notices == "on" }

// StepUp returns the configuration of step-up.
func (a Auth) StepUp() stepup.Config {
	return stepup.Config{CodeTTL: a.OTPTTL, Attempts: a.OTPAttempts, Learn: a.Risk.History.Learns(), AccessTokenTTL: a.AccessTokenTTL}
}

// Credentials returns the configuration of changes of credentials.
func (a Auth) Credentials() credentials.Config {
	return credentials.Config{Lockout: a.lockout(), Issuer: a.MFAIssuer, ReauthenticationMaxAge: a.ReauthMaxAge}
}

func (a Auth) lockout() auth.LockoutPolicy {
	return auth.LockoutPolicy{Threshold: a.LockoutThreshold, Window: a.LockoutWindow, Duration: a.LockoutDuration}
}

// SignIn returns the configuration of sign-in.
func (a Auth) SignIn() signin.Config {
	r := a.Risk
	return signin.Config{
		AccessTokenTTL: a.AccessTokenTTL, RefreshTokenTTL: a.RefreshTokenTTL,
		RefreshTokenMaxAge: a.RefreshTokenMaxAge, RefreshReuseGrace: a.RefreshReuseGrace,
		MFAPolicy: a.MFAPolicy, MFAPendingTTL: a.MFAPendingTTL,
		Lockout:       a.lockout(),
		DeviceBinding: a.DeviceBinding,
		Risk: risk.Config{
			DeviceConfirmed: r.DeviceConfirmed, DeviceUnknown: r.DeviceUnknown,
			OtherCountry: r.OtherCountry, HighRiskCountry: r.HighRiskCountry, HighRiskCountries: r.HighRiskCountries,
			ImpossibleTravel: r.ImpossibleTravel, TravelMaxKMH: r.TravelMaxKMH, TravelMinKM: r.TravelMinKM,
			AddressHidden: r.AddressHidden, AddressListed: r.AddressListed,
			VelocitySessions: r.VelocitySessions, VelocityMinute: r.VelocityMinute, VelocityFiveMinutes: r.VelocityFiveMinutes,
			FailedFew: r.FailedFew, FailedSome: r.FailedSome, FailedMany: r.FailedMany,
			SomeFailures: r.SomeFailures, ManyFailures: r.ManyFailures,
		},
		Bounds:  trust.Bounds{Full: r.FullTrustMax, Limited: r.LimitedTrustMax, Unverified: r.UnverifiedMax},
		History: r.History,
	}
}
