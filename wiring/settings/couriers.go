package settings

import (
	"fmt"
	"slices"
)

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
