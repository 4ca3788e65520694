package settings

import (
	"fmt"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/pluginhost"
	"github.com/tollgate-dev/tollgate/plugins/couriersettings"
)

// delivers reports whether one of the channels is set to a plugin by name.
func (a Auth) delivers(plugin string) bool {
	return a.OTPEmailPlugin == plugin || a.OTPSMSPlugin == plugin
}

// tellCouriers gives each courier that comes with the service its own
// settings, and none of another's.
func (s *Settings) tellCouriers() {
	told := map[string][]string{}
	if s.Auth.OTPLogFile != "" {
		told[pluginhost.DevelopmentCourier] = append(told[pluginhost.DevelopmentCourier], "OTP_LOG_FILE="+s.Auth.OTPLogFile)
	}
	if s.Auth.NoticeLogFile != "" {
		told[pluginhost.DevelopmentCourier] = append(told[pluginhost.DevelopmentCourier], "NOTICE_LOG_FILE="+s.Auth.NoticeLogFile)
	}
	if s.Auth.delivers(couriersettings.EmailPlugin) {
		told[couriersettings.EmailPlugin] = s.Email.Environ()
	} else if s.Email.Host != "" {
		s.Warnings = append(s.Warnings, "SMTP_HOST is set, and nothing is sent there: OTP_EMAIL_PLUGIN is not "+couriersettings.EmailPlugin)
	}
	if s.Auth.delivers(couriersettings.SMSPlugin) {
		told[couriersettings.SMSPlugin] = s.SMS.Environ()
	} else if s.SMS.Token != "" {
		s.Warnings = append(s.Warnings, "SMS_TOKEN is set, and nothing is sent by it: OTP_SMS_PLUGIN is not "+couriersettings.SMSPlugin)
	}
	if s.Plugins.Env == nil {
		s.Plugins.Env = map[string][]string{}
	}
	for plugin, environ := range told {
		s.Plugins.Env[plugin] = environ
	}
}

// validateCouriers checks the settings of the couriers that are chosen. A
// courier that takes longer than the host waits would be killed for it.
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
		if !s.Auth.delivers(courier.plugin) {
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
