// Package couriersettings declares the settings of otp-email and otp-sms. The service reads them
// from one YAML document for each, checks them and passes them on as environment variables, which
// the plugin reads. The package delivers no messages, and has no settings for other plugins.
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
)

// The names of the plugins that these settings belong to.
const (
	EmailPlugin = "otp-email"
	SMSPlugin   = "otp-sms"
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

// listVariables returns the fields of a settings struct, and of the structs in it, as KEY=VALUE,
// where KEY is the field's env tag. It leaves out fields that are zero.
func listVariables(settings any) []string {
	var list []string
	v := reflect.ValueOf(settings)
	for i := range v.NumField() {
		field, name := v.Field(i), v.Type().Field(i).Tag.Get("env")
		switch {
		case name == "" && field.Kind() == reflect.Struct:
			list = append(list, listVariables(field.Interface())...)
		case name != "" && !field.IsZero():
			list = append(list, name+"="+formatValue(field.Interface()))
		}
	}
	return list
}

// formatValue returns value in the form of an environment variable; a list is separated by commas.
func formatValue(value any) string {
	if list, ok := value.([]int); ok {
		return strings.Trim(strings.ReplaceAll(fmt.Sprint(list), " ", ","), "[]")
	}
	return fmt.Sprint(value)
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

func checkPositive(name string, d time.Duration) error {
	if d <= 0 {
		return fmt.Errorf("%s: %v is not valid, it must be above 0", name, d)
	}
	return nil
}

// WholeMinutes returns the number of minutes to show for a code that is valid for the time left:
// rounded up, so that 9:59 is 10, and at least 1.
func WholeMinutes(left time.Duration) int { return max(1, int(math.Ceil(left.Minutes()))) }
