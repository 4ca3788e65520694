package settings

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/tollgate-dev/tollgate/adapters/pluginhost"
	"github.com/tollgate-dev/tollgate/plugins/couriersettings"
)

// Couriers holds the settings of the delivery of codes and notices.
type Couriers struct {
	Email         string `env:"OTP_EMAIL_PLUGIN" desc:"plugin that delivers codes by e-mail; default: otp-log in the embedded environment, no plugin in production"`
	SMS           string `env:"OTP_SMS_PLUGIN" desc:"plugin that delivers codes by SMS; same default as OTP_EMAIL_PLUGIN"`
	EmailSettings string `env:"OTP_EMAIL_SETTINGS" secret:"true" desc:"settings of otp-email in YAML: SMTP_HOST, SMTP_FROM and others (docs/couriers.md)"`
	SMSSettings   string `env:"OTP_SMS_SETTINGS" secret:"true" desc:"settings of otp-sms in YAML: SMS_ACCOUNT, SMS_TOKEN, SMS_FROM and others (docs/couriers.md)"`
	LogFile       string `env:"OTP_LOG_FILE" desc:"file to which otp-log also appends each code as a JSON line"`
	NoticeLogFile string `env:"NOTICE_LOG_FILE" desc:"file to which otp-log also appends each notice as a JSON line"`
	Notices       bool   `env:"-"`
	PublicURL     string `env:"-"` // links in notices begin with it; empty without one
}

// courier is a plugin with settings in YAML.
type courier struct {
	plugin, variable, document string
	fields                     any // a pointer to its settings
	timeout                    *time.Duration
	environ                    func() ([]string, error) // the settings as variables, if they are valid
}

// couriers returns the plugins that deliver to people and come with the service.
func (s *Settings) couriers() []courier {
	email, sms := &couriersettings.Email{Brand: s.Brand}, &couriersettings.SMS{Brand: s.Brand}
	return []courier{
		{
			couriersettings.EmailPlugin, "OTP_EMAIL_SETTINGS", s.Couriers.EmailSettings, email, &email.Timeout,
			func() ([]string, error) { return email.Environ(), email.CheckSettings() },
		},
		{
			couriersettings.SMSPlugin, "OTP_SMS_SETTINGS", s.Couriers.SMSSettings, sms, &sms.Timeout,
			func() ([]string, error) { return sms.Environ(), sms.CheckSettings() },
		},
	}
}

// keys returns the settings of a courier, which are the keys of its document.
func (c courier) keys() (list []binding) {
	v := reflect.ValueOf(c.fields).Elem()
	for i := range v.NumField() {
		tag, field := v.Type().Field(i).Tag, v.Field(i).Addr().Interface()
		if name := tag.Get("env"); name != "" {
			b := binding{Variable: Variable{
				Name: name, Default: tag.Get("envDefault"), Form: describeForm(v.Field(i).Type()),
				Secret: tag.Get("secret") == "true",
			}, field: field}
			b.parse = func(text string) error { return parseField(field, text, b.Form) }
			list = append(list, b)
		}
	}
	return list
}

// setCourierEnvironments sets the environment of each courier plugin that comes with the service:
// a plugin gets only its own settings. It warns of settings of one that is not used.
func (s *Settings) setCourierEnvironments() error {
	if s.Plugins.Env == nil {
		s.Plugins.Env = map[string][]string{}
	}
	for _, log := range [][2]string{
		{"OTP_LOG_FILE", s.Couriers.LogFile}, {"NOTICE_LOG_FILE", s.Couriers.NoticeLogFile},
	} {
		if log[1] != "" {
			s.Plugins.Env[pluginhost.DevelopmentCourier] = append(s.Plugins.Env[pluginhost.DevelopmentCourier],
				log[0]+"="+log[1])
		}
	}
	if err := s.Brand.Validate(); err != nil {
		return err
	}
	for _, c := range s.couriers() {
		if s.Couriers.Email != c.plugin && s.Couriers.SMS != c.plugin {
			if c.document != "" {
				s.Warnings = append(s.Warnings, c.variable+" is set and not used: no channel has the plugin "+c.plugin)
			}
			continue
		}
		environ, err := c.read(s.Plugins.CallTimeout)
		if err != nil {
			return fmt.Errorf("%s: %w", c.variable, err)
		}
		s.Plugins.Env[c.plugin] = environ
	}
	return nil
}

// read returns the settings of a document as variables. The timeout of a courier must be less than
// that of calls, because the host kills a plugin that takes longer.
func (c courier) read(callTimeout time.Duration) ([]string, error) {
	values, err := parseCourier(c.document)
	if err != nil {
		return nil, err
	}
	keys := c.keys()
	for name := range values {
		if !slices.ContainsFunc(keys, func(b binding) bool { return b.Name == name }) {
			return nil, fmt.Errorf("%s: unknown key", name)
		}
	}
	if wrong := parseBindings(keys, values); len(wrong) > 0 {
		return nil, errors.New(strings.Join(wrong, "; "))
	}
	environ, err := c.environ()
	if err == nil && *c.timeout >= callTimeout {
		err = fmt.Errorf("the timeout of %v is not less than PLUGIN_CALL_TIMEOUT", *c.timeout)
	}
	return environ, err
}

// parseCourier returns the values of a document by their keys. A value may be a list or a map where
// the setting is JSON. An error does not show the document, which has secrets.
func parseCourier(document string) (map[string]string, error) {
	var nodes map[string]yaml.Node
	if yaml.Unmarshal([]byte(document), &nodes) != nil {
		return nil, errors.New("it is not YAML of keys with a value each")
	}
	values := map[string]string{}
	for key, node := range nodes {
		switch {
		case node.ShortTag() == "!!null": // as a variable without a value
			continue
		case node.Kind == yaml.ScalarNode:
			values[key] = node.Value
			continue
		}
		var value any
		err := node.Decode(&value)
		encoded, wrong := json.Marshal(value)
		if err != nil || wrong != nil {
			return nil, fmt.Errorf("%s: it cannot be written as JSON", key)
		}
		values[key] = string(encoded)
	}
	return values, nil
}
