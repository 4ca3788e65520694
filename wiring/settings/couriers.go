package settings

import (
	"fmt"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/pluginhost"
	"github.com/tollgate-dev/tollgate/plugins/couriersettings"
)

// Couriers holds the settings of the delivery of codes and notices.
type Couriers struct {
	Email         string `env:"OTP_EMAIL_PLUGIN" desc:"plugin that delivers codes by e-mail; default: otp-log in the embedded environment, no plugin in production"`
	SMS           string `env:"OTP_SMS_PLUGIN" desc:"plugin that delivers codes by SMS; same default as OTP_EMAIL_PLUGIN"`
	LogFile       string `env:"OTP_LOG_FILE" desc:"file to which otp-log also appends each code as a JSON line"`
	NoticeLogFile string `env:"NOTICE_LOG_FILE" desc:"file to which otp-log also appends each notice as a JSON line"`
	Notices       bool   `env:"-"`
}

// delivers reports whether a plugin is set for one of the channels.
func (c Couriers) delivers(plugin string) bool { return c.Email == plugin || c.SMS == plugin }

// setCourierEnvironments sets the environment of each courier plugin that comes with the service,
// and warns of settings of one that is not used. A plugin gets only its own settings.
func (s *Settings) setCourierEnvironments() {
	byPlugin := map[string][]string{}
	if s.Couriers.LogFile != "" {
		byPlugin[pluginhost.DevelopmentCourier] = append(byPlugin[pluginhost.DevelopmentCourier],
			"OTP_LOG_FILE="+s.Couriers.LogFile)
	}
	if s.Couriers.NoticeLogFile != "" {
		byPlugin[pluginhost.DevelopmentCourier] = append(byPlugin[pluginhost.DevelopmentCourier],
			"NOTICE_LOG_FILE="+s.Couriers.NoticeLogFile)
	}
	if s.Couriers.delivers(couriersettings.EmailPlugin) {
		byPlugin[couriersettings.EmailPlugin] = s.Email.Environ()
	} else if s.Email.Host != "" {
		s.Warnings = append(s.Warnings,
			"SMTP_HOST is set, and nothing is sent there: OTP_EMAIL_PLUGIN is not "+couriersettings.EmailPlugin)
	}
	if s.Couriers.delivers(couriersettings.SMSPlugin) {
		byPlugin[couriersettings.SMSPlugin] = s.SMS.Environ()
	} else if s.SMS.Token != "" {
		s.Warnings = append(s.Warnings,
			"SMS_TOKEN is set, and nothing is sent by it: OTP_SMS_PLUGIN is not "+couriersettings.SMSPlugin)
	}
	if s.Plugins.Env == nil {
		s.Plugins.Env = map[string][]string{}
	}
	for plugin, environ := range byPlugin {
		s.Plugins.Env[plugin] = environ
	}
}

// validateCouriers validates the settings of the couriers that are used. The timeout of a courier
// must be less than PLUGIN_CALL_TIMEOUT, because the host kills a plugin that takes longer.
func (s *Settings) validateCouriers() error {
	for _, courier := range []struct {
		plugin  string
		check   func() error
		timeout time.Duration
		name    string
	}{
		{couriersettings.EmailPlugin, s.Email.CheckSettings, s.Email.Timeout, "SMTP_TIMEOUT"},
		{couriersettings.SMSPlugin, s.SMS.CheckSettings, s.SMS.Timeout, "SMS_TIMEOUT"},
	} {
		if !s.Couriers.delivers(courier.plugin) {
			continue
		}
		if err := courier.check(); err != nil {
			return err
		}
		if courier.timeout >= s.Plugins.CallTimeout {
			return fmt.Errorf("%s: %v is not less than PLUGIN_CALL_TIMEOUT", courier.name, courier.timeout)
		}
	}
	return s.Email.Brand.Validate()
}
