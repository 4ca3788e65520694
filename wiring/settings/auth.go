package settings

import (
	"fmt"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
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
	DeviceBinding      trust.Binding    `env:"DEVICE_BINDING" envDefault:"preferred" desc:"what a confirmed device needs its device token for: preferred (above LIMITED_TRUST), required (above UNVERIFIED), off (nothing)"`
	MFAPolicy          signin.MFAPolicy `env:"MFA_POLICY" envDefault:"always" desc:"when a person with an authenticator needs a code at login: always, or risk (only if the score is above RISK_FULL_TRUST_MAX)"`
	MFAPendingTTL      time.Duration    `env:"MFA_PENDING_TTL" envDefault:"5m" desc:"how long a login waits for the code of the authenticator"`
	MFAIssuer          auth.Issuer      `env:"MFA_ISSUER" envDefault:"Tollgate" desc:"the name under which an authenticator app lists this service"`
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
}

// Validate names the first setting that is out of range.
func (a Auth) Validate() error {
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"ACCESS_TOKEN_TTL", a.AccessTokenTTL}, {"REFRESH_TOKEN_TTL", a.RefreshTokenTTL},
		{"REFRESH_TOKEN_MAX_AGE", a.RefreshTokenMaxAge}, {"LOCKOUT_WINDOW", a.LockoutWindow},
		{"LOCKOUT_DURATION", a.LockoutDuration}, {"OTP_TTL", a.OTPTTL}, {"MFA_PENDING_TTL", a.MFAPendingTTL},
	} {
		if d.value < time.Second {
			return fmt.Errorf("%s: %v is less than a second", d.name, d.value)
		}
	}
	if a.RefreshReuseGrace < 0 {
		return fmt.Errorf("REFRESH_REUSE_GRACE: %v is negative", a.RefreshReuseGrace)
	}
	for _, n := range []struct {
		name  string
		value int
	}{{"LOCKOUT_THRESHOLD", a.LockoutThreshold}, {"OTP_ATTEMPTS", a.OTPAttempts}} {
		if n.value < 1 {
			return fmt.Errorf("%s: %d is less than 1", n.name, n.value)
		}
	}
	if a.LockoutThreshold > auth.MaxLockoutThreshold {
		return fmt.Errorf("LOCKOUT_THRESHOLD: %d is more than %d", a.LockoutThreshold, auth.MaxLockoutThreshold)
	}
	if a.MFAPolicy != signin.MFAAlways && a.MFAPolicy != signin.MFARisk {
		return fmt.Errorf("MFA_POLICY: %q is neither always nor risk", a.MFAPolicy)
	}
	if strings.TrimSpace(string(a.MFAIssuer)) == "" || strings.Contains(string(a.MFAIssuer), ":") {
		return fmt.Errorf("MFA_ISSUER: %q is empty or contains a colon", a.MFAIssuer)
	}
	if a.Notices != "on" && a.Notices != "off" {
		return fmt.Errorf("NOTICES: %q is neither on nor off", a.Notices)
	}
	switch a.DeviceBinding {
	case trust.BindingPreferred, trust.BindingRequired, trust.BindingOff:
	default:
		return fmt.Errorf("DEVICE_BINDING: %q is not preferred, required or off", a.DeviceBinding)
	}
	return a.Risk.Validate()
}

// Validate names the first setting that is out of range.
func (r Risk) Validate() error {
	for _, p := range []struct {
		name  string
		value int
	}{
		{"RISK_DEVICE_CONFIRMED", r.DeviceConfirmed}, {"RISK_DEVICE_UNKNOWN", r.DeviceUnknown},
		{"RISK_OTHER_COUNTRY", r.OtherCountry}, {"RISK_HIGH_RISK_COUNTRY", r.HighRiskCountry},
		{"RISK_IMPOSSIBLE_TRAVEL", r.ImpossibleTravel}, {"RISK_ADDRESS_HIDDEN", r.AddressHidden},
		{"RISK_ADDRESS_LISTED", r.AddressListed}, {"RISK_VELOCITY_MINUTE", r.VelocityMinute},
		{"RISK_VELOCITY_FIVE_MINUTES", r.VelocityFiveMinutes}, {"RISK_FAILED_FEW", r.FailedFew},
		{"RISK_FAILED_SOME", r.FailedSome}, {"RISK_FAILED_MANY", r.FailedMany},
		{"RISK_FULL_TRUST_MAX", r.FullTrustMax}, {"RISK_LIMITED_TRUST_MAX", r.LimitedTrustMax},
		{"RISK_UNVERIFIED_MAX", r.UnverifiedMax},
	} {
		if p.value < 0 || p.value > risk.MaxScore {
			return fmt.Errorf("%s: %d is not 0 to %d", p.name, p.value, risk.MaxScore)
		}
	}
	if err := r.inOrder(); err != nil {
		return err
	}
	switch {
	case r.VelocitySessions < 1:
		return fmt.Errorf("RISK_VELOCITY_SESSIONS: %d is less than 1", r.VelocitySessions)
	case r.SomeFailures < 1:
		return fmt.Errorf("RISK_SOME_FAILURES: %d is less than 1", r.SomeFailures)
	case r.ManyFailures < r.SomeFailures:
		return fmt.Errorf("RISK_MANY_FAILURES: %d is less than RISK_SOME_FAILURES", r.ManyFailures)
	case !(r.TravelMaxKMH > 0):
		return fmt.Errorf("RISK_TRAVEL_MAX_KMH: %v is not positive", r.TravelMaxKMH)
	case !(r.TravelMinKM >= 0):
		return fmt.Errorf("RISK_TRAVEL_MIN_KM: %v is negative", r.TravelMinKM)
	case r.LimitedTrustMax < r.FullTrustMax:
		return fmt.Errorf("RISK_LIMITED_TRUST_MAX: %d is less than RISK_FULL_TRUST_MAX", r.LimitedTrustMax)
	case r.UnverifiedMax < r.LimitedTrustMax:
		return fmt.Errorf("RISK_UNVERIFIED_MAX: %d is less than RISK_LIMITED_TRUST_MAX", r.UnverifiedMax)
	}
	for _, c := range r.HighRiskCountries {
		if !risk.IsCountry(c) {
			return fmt.Errorf("HIGH_RISK_COUNTRIES: %q is not an ISO 3166 code of two capital letters", c)
		}
	}
	return nil
}

// inOrder names the first weight that is less than that of something less bad.
func (r Risk) inOrder() error {
	for _, pair := range []struct {
		name  string
		worse int
		than  string
		bad   int
	}{
		{"RISK_DEVICE_UNKNOWN", r.DeviceUnknown, "RISK_DEVICE_CONFIRMED", r.DeviceConfirmed},
		{"RISK_ADDRESS_LISTED", r.AddressListed, "RISK_ADDRESS_HIDDEN", r.AddressHidden},
		{"RISK_VELOCITY_MINUTE", r.VelocityMinute, "RISK_VELOCITY_FIVE_MINUTES", r.VelocityFiveMinutes},
		{"RISK_FAILED_SOME", r.FailedSome, "RISK_FAILED_FEW", r.FailedFew},
		{"RISK_FAILED_MANY", r.FailedMany, "RISK_FAILED_SOME", r.FailedSome},
	} {
		if pair.worse < pair.bad {
			return fmt.Errorf("%s: %d is less than %s, which is for a better case", pair.name, pair.worse, pair.than)
		}
	}
	return nil
}

// NoticesOn reports whether people are told of what happens to their accounts.
func (a Auth) NoticesOn() bool { return a.Notices == "on" }

// StepUp returns the settings in the form in which step-up takes them.
func (a Auth) StepUp() stepup.Config {
	return stepup.Config{CodeTTL: a.OTPTTL, Attempts: a.OTPAttempts}
}

// Credentials returns the settings in the form in which changes of credentials take them.
func (a Auth) Credentials() credentials.Config {
	return credentials.Config{Lockout: a.lockout(), Issuer: a.MFAIssuer}
}

func (a Auth) lockout() auth.LockoutPolicy {
	return auth.LockoutPolicy{Threshold: a.LockoutThreshold, Window: a.LockoutWindow, Duration: a.LockoutDuration}
}

// SignIn returns the settings in the form in which sign-in takes them.
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
		Bounds: trust.Bounds{Full: r.FullTrustMax, Limited: r.LimitedTrustMax, Unverified: r.UnverifiedMax},
	}
}
