// Package couriersettings holds the settings of the couriers that come with Tollgate, in the one form in which the host checks and shows
// them and the plugin reads them again: environment variables. It delivers nothing, and knows no courier of others.
package couriersettings

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math"
	"net/netip"
	"os"
	"reflect"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// The names of the plugins whose settings these are.
const (
	EmailPlugin = "otp-email"
	SMSPlugin   = "otp-sms"
)

const (
	maxCAFile = 1 << 20 // bytes
	maxName   = 100     // characters of a name that people read
)

// Brand is how messages name the service.
type Brand struct {
	// Name is 1 to 100 characters, one line.
	Name string `env:"PRODUCT_NAME" envDefault:"Tollgate" desc:"name of this service in codes and notices"`
}

// Validate names the setting that is malformed.
func (b Brand) Validate() error {
	if b.Name == "" {
		return errors.New("PRODUCT_NAME: it must not be empty")
	}
	return line("PRODUCT_NAME", b.Name, maxName)
}

// environ returns the set fields of a settings struct, those of structs in it too, as KEY=VALUE by their env tags.
func environ(settings any) []string {
	var list []string
	v := reflect.ValueOf(settings)
	for i := range v.NumField() {
		field, name := v.Field(i), v.Type().Field(i).Tag.Get("env")
		switch {
		case name == "" && field.Kind() == reflect.Struct:
			list = append(list, environ(field.Interface())...)
		case name != "" && !field.IsZero():
			list = append(list, name+"="+written(field.Interface()))
		}
	}
	return list
}

// written is a value as it stands in an environment variable.
func written(value any) string {
	if list, ok := value.([]int); ok {
		return strings.Trim(strings.ReplaceAll(fmt.Sprint(list), " ", ","), "[]")
	}
	return fmt.Sprint(value)
}

// Roots returns the certificates of a PEM file of at most 1 MiB, or nil, which stands for the system's, without one. It fails
// when the file cannot be read or holds none.
func Roots(file string) (*x509.CertPool, error) {
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
		return nil, fmt.Errorf("%s contains no certificate in PEM form", file)
	}
	return pool, nil
}

// line refuses what would break out of a header or a line of its own.
func line(name, value string, most int) error {
	switch {
	case !utf8.ValidString(value) || strings.ContainsFunc(value, unicode.IsControl):
		return fmt.Errorf("%s: it contains a line end or another control character, or is not UTF-8", name)
	case utf8.RuneCountInString(value) > most:
		return fmt.Errorf("%s: it has more than %d characters", name, most)
	}
	return nil
}

func caFile(name, path string) error {
	if _, err := Roots(path); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func positive(name string, d time.Duration) error {
	if d <= 0 {
		return fmt.Errorf("%s: %v is not above 0", name, d)
	}
	return nil
}

// Minutes returns for how many minutes a code with so much time left is said to be good: rounded up, so that 9:59 are ten, and at
// least one.
func Minutes(left time.Duration) int { return max(1, int(math.Ceil(left.Minutes()))) }

// Loopback reports whether a host is this machine, where nobody listens on the line.
func Loopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.Unmap().IsLoopback()
}
