// Package couriersettings has the settings that otp-email and otp-sms declare, and the name of the
// product, which the service has too. It checks them, delivers no messages, and has no settings for
// other plugins.
package couriersettings

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"reflect"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/caarlos0/env/v11"

	"github.com/tollgate-dev/tollgate/plugins/sdk/handshake"
)

const (
	maxCAFile = 1 << 20 // bytes
	maxName   = 100     // characters of a name that people read
)

// Brand is the name of the service in messages.
type Brand struct {
	// Name has 1 to 100 characters and is one line.
	Name string `env:"PRODUCT_NAME" envDefault:"Tollgate" desc:"name of this service in codes and notices"`
}

// Validate returns an error that names PRODUCT_NAME if the name is empty, too long or more than one
// line.
func (b Brand) Validate() error {
	if b.Name == "" {
		return errors.New("PRODUCT_NAME: it must not be empty")
	}
	return checkOneLine("PRODUCT_NAME", b.Name, maxName)
}

// Declared returns the settings of a struct, and of the structs in it: the env tags of its fields.
func Declared(settings any) []handshake.Setting {
	var list []handshake.Setting
	for _, f := range reflect.VisibleFields(reflect.TypeOf(settings)) {
		if name := f.Tag.Get("env"); name != "" {
			list = append(list, handshake.Setting{Name: name, Secret: f.Tag.Get("secret") == "true"})
		}
	}
	return list
}

// Parse returns the settings with the given values by their names. Its error begins with the name of
// the first one that has not the form of its field; no secret has a form.
func Parse[T any](values map[string]string) (T, error) {
	settings, err := env.ParseAsWithOptions[T](env.Options{Environment: values})
	for _, f := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		name := f.Tag.Get("env")
		if err == nil || name == "" {
			continue
		}
		alone := env.Options{Environment: map[string]string{name: values[name]}}
		if _, wrong := env.ParseAsWithOptions[T](alone); wrong != nil {
			return settings, fmt.Errorf("%s: %q is not %s", name, values[name], forms[f.Type.Kind()])
		}
	}
	return settings, err
}

// forms has the forms of values that are not text, in words.
var forms = map[reflect.Kind]string{
	reflect.Int: "a whole number", reflect.Slice: "a comma-separated list of whole numbers",
	reflect.Int64: "a duration, for example 500ms, 10s or 24h",
}

// LoadRoots returns the certificates of a PEM file of at most 1 MiB. It returns nil, which means
// the certificates of the system, if file is empty, and an error if the file cannot be read or
// contains no certificate.
func LoadRoots(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	content, err := io.ReadAll(io.LimitReader(f, maxCAFile))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(content) {
		return nil, fmt.Errorf("%s contains no PEM certificate", file)
	}
	return pool, nil
}

// checkOneLine returns an error if value could end a header or a line, or has more than most
// characters.
func checkOneLine(name, value string, most int) error {
	switch {
	case !utf8.ValidString(value) || strings.ContainsFunc(value, unicode.IsControl):
		return fmt.Errorf("%s: it must be one line of UTF-8 text without control characters", name)
	case utf8.RuneCountInString(value) > most:
		return fmt.Errorf("%s: it must have at most %d characters", name, most)
	}
	return nil
}

func checkCAFile(name, path string) error {
	if _, err := LoadRoots(path); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// checkTimeout returns an error if the timeout of a delivery is not above 0, or not less than that of
// the host's calls, above which the host kills the plugin; a host may not say its own.
func checkTimeout(name string, d, call time.Duration) error {
	switch {
	case d <= 0:
		return fmt.Errorf("%s: %v is not valid, it must be above 0", name, d)
	case call > 0 && d >= call:
		return fmt.Errorf("%s: the timeout of %v is not less than PLUGIN_CALL_TIMEOUT, which is %v", name, d, call)
	}
	return nil
}

// WholeMinutes returns the number of minutes to show for a code that is valid for the time left:
// rounded up, so that 9:59 is 10, and at least 1.
func WholeMinutes(left time.Duration) int { return max(1, int(math.Ceil(left.Minutes()))) }
