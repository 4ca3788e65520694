package settings

import (
	"fmt"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/pluginhost"
	"github.com/tollgate-dev/tollgate/plugins/couriersettings"
)

// delivers reports whether a plugin is set for one of the channels.
func (a Auth) delivers(plugin string) bool {
	return a.OTPEmailPlugin == plugin || a.OTPSMSPlugin == plugin
}

// setCourierEnvironments sets the environment of each courier plugin that comes with the service,
// and warns of settings of one that is not used. A plugin gets only its own settings.
func (s *Settings) setCourierEnvironments() {
	byPlugin := map[string][]string{}
	if s.Auth.OTPLogFile != "" {
		byPlugin[pluginhost.DevelopmentCourier] = append(byPlugin[pluginhost.DevelopmentCourier], "OTP_LOG_FILE="+s.Auth.OTPLogFile)
	}
	if s.Auth.NoticeLogFile != "" {
		byPlugin[pluginhost.DevelopmentCourier] = append(byPlugin[pluginhost.DevelopmentCourier], "NOTICE_LOG_FILE="+s.Auth.NoticeLogFile)
	}
	if s.Auth.delivers(couriersettings.EmailPlugin) {
		byPlugin[couriersettings.EmailPlugin] = s.Email.Environ()
	} else if s.Email.Host != "" {
		s.Warnings = append(s.Warnings, "SMTP_HOST is set, and nothing is sent there: OTP_EMAIL_PLUGIN is not "+couriersettings.EmailPlugin)
	}
	if s.Auth.delivers(couriersettings.SMSPlugin) {
		byPlugin[couriersettings.SMSPlugin] = s.SMS.Environ()
	} else if s.SMS.Token != "" {
		s.Warnings = append(s.Warnings, "SMS_TOKEN is set, and nothing is sent by it: OTP_SMS_PLUGIN is not "+couriersettings.SMSPlugin)
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
