package couriersettings

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"text/template"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/tollgate-dev/tollgate/plugins/sdk/publicdial"
)

// The values of SMS_FORMAT.
const (
	Form = "form"
	JSON = "json"
)

// Placeholders for the parts of a message in SMS_GATEWAY_URL and SMS_BODY.
const (
	accountMark = "{account}"
	toMark      = "{to}"
	fromMark    = "{from}"
	textMark    = "{text}"
)

const (
	defaultForm = "To=" + toMark + "&From=" + fromMark + "&Body=" + textMark // Twilio, "Create a Message resource"
	defaultJSON = `{"to":"` + toMark + `","from":"` + fromMark + `","text":"` + textMark + `"}`
	defaultText = "{{.Code}} is your {{.Product}} code, valid for {{.Minutes}} minute{{if ne .Minutes 1}}s{{end}}. Do not share it with anyone."
)

// SMS holds the settings of otp-sms (docs/couriers.md). The defaults are those of Twilio, which
// needs only the account, the token and the sender.
type SMS struct {
	URL      string `env:"SMS_GATEWAY_URL" envDefault:"https://api.twilio.com/2010-04-01/Accounts/{account}/Messages.json"`
	Account  string `env:"SMS_ACCOUNT"`
	Token    string `env:"SMS_TOKEN" secret:"true"`
	From     string `env:"SMS_FROM"`
	Method   string `env:"SMS_METHOD" envDefault:"POST"`
	Headers  string `env:"SMS_HEADERS" secret:"true"`
	Format   string `env:"SMS_FORMAT" envDefault:"form"`
	Body     string `env:"SMS_BODY"`
	Template string `env:"SMS_TEMPLATE"`
	Statuses []int  `env:"SMS_SUCCESS_STATUSES" envDefault:"200,201,202,204"`
	CAFile   string `env:"SMS_CA_FILE"`
	// Timeout is the time limit of one delivery; above 0.
	Timeout     time.Duration `env:"SMS_TIMEOUT" envDefault:"8s"`
	CallTimeout time.Duration `env:"PLUGIN_CALL_TIMEOUT"` // of the host
	Brand
}

// CheckSettings returns an error that names the first setting that is missing or malformed, without
// showing a secret.
func (s SMS) CheckSettings() error {
	if err := checkTimeout("SMS_TIMEOUT", s.Timeout, s.CallTimeout); err != nil {
		return err
	}
	if s.Method != http.MethodPost && s.Method != http.MethodPut {
		return fmt.Errorf("SMS_METHOD: %q is not valid, it must be POST or PUT", s.Method)
	}
	for _, status := range s.Statuses {
		if status < 200 || status > 299 {
			return fmt.Errorf("SMS_SUCCESS_STATUSES: it contains %d, each status must be 200 to 299", status)
		}
	}
	if len(s.Statuses) == 0 {
		return errors.New("SMS_SUCCESS_STATUSES: it must contain at least one status")
	}
	if _, err := s.GatewayURL(); err != nil {
		return err
	}
	headers, err := s.ExtraHeaders()
	if err != nil {
		return err
	}
	if err := s.checkCredentials(headers); err != nil {
		return err
	}
	if _, err := s.RequestBody("+15550100", "text"); err != nil {
		return err
	}
	if _, err := s.CodeText(CodeData{Code: "000000", Product: s.Brand.Name, Minutes: 10}); err != nil {
		return err
	}
	return errors.Join(checkOneLine("SMS_FROM", s.From, maxName), s.Brand.Validate(),
		checkCAFile("SMS_CA_FILE", s.CAFile))
}

func (s SMS) checkCredentials(headers http.Header) error {
	switch {
	case (s.Account == "") != (s.Token == ""):
		return errors.New("SMS_ACCOUNT: it and SMS_TOKEN must be set together")
	case s.Token != "" && headers.Get("Authorization") != "":
		return errors.New(
			"SMS_HEADERS: it contains Authorization, and SMS_ACCOUNT and SMS_TOKEN are set: use only one of them")
	case strings.Contains(s.Account, ":"):
		return errors.New("SMS_ACCOUNT: it must not contain a colon") // RFC 7617, section 2
	}
	return nil
}

// GatewayURL returns the URL of the gateway, with the account filled in. It returns an error if the
// URL is malformed, contains credentials, or would send codes unencrypted to another machine.
func (s SMS) GatewayURL() (*url.URL, error) {
	if s.Account == "" && strings.Contains(s.URL, accountMark) {
		return nil, errors.New("SMS_ACCOUNT: it is missing, SMS_GATEWAY_URL contains {account}")
	}
	u, err := url.Parse(strings.ReplaceAll(s.URL, accountMark, url.PathEscape(s.Account)))
	switch {
	case err != nil || u.Host == "":
		return nil, errors.New("SMS_GATEWAY_URL: it must be an https URL")
	case u.User != nil:
		return nil, errors.New("SMS_GATEWAY_URL: it must not contain credentials: use SMS_ACCOUNT and SMS_TOKEN")
	case u.Fragment != "":
		return nil, errors.New("SMS_GATEWAY_URL: it must not have a fragment")
	case u.Scheme != "https" && (u.Scheme != "http" || !publicdial.IsLoopback(u.Hostname())):
		return nil, errors.New("SMS_GATEWAY_URL: it must be an https URL, or http to the same machine")
	}
	return u, nil
}

// ExtraHeaders returns the headers of SMS_HEADERS. It returns an error if they are not a JSON
// object of valid HTTP headers.
func (s SMS) ExtraHeaders() (http.Header, error) {
	header := http.Header{}
	if s.Headers == "" {
		return header, nil
	}
	var given map[string]string
	if err := json.Unmarshal([]byte(s.Headers), &given); err != nil {
		return nil, errors.New(`SMS_HEADERS: it must be a JSON object, for example {"X-Api-Key": "…"}`)
	}
	for name, value := range given {
		if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			return nil, errors.New("SMS_HEADERS: it contains a name or value that is not valid in an HTTP header")
		}
		header.Set(name, value)
	}
	return header, nil
}

// CodeData holds the fields that SMS_TEMPLATE may use.
type CodeData struct {
	Code    string
	Product string
	Minutes int // for which the code is valid
}

// CodeText returns the text of a message with a code. It returns an error if SMS_TEMPLATE is
// malformed or does not contain the code.
func (s SMS) CodeText(c CodeData) (string, error) {
	t, err := template.New("SMS_TEMPLATE").Parse(cmp.Or(s.Template, defaultText))
	if err != nil {
		return "", fmt.Errorf("SMS_TEMPLATE: %w", err)
	}
	var result strings.Builder
	if err := t.Execute(&result, c); err != nil {
		return "", fmt.Errorf("SMS_TEMPLATE: %w", err)
	}
	if !strings.Contains(result.String(), c.Code) {
		return "", errors.New("SMS_TEMPLATE: it must contain {{.Code}}")
	}
	return result.String(), nil
}

// RequestBody returns the body of the request for a message. It parses SMS_BODY before it fills in
// the placeholders, so that no part of a message can become another field. It returns an error if
// SMS_BODY or SMS_FORMAT is malformed.
func (s SMS) RequestBody(to, text string) ([]byte, error) {
	if s.Body != "" && (!strings.Contains(s.Body, toMark) || !strings.Contains(s.Body, textMark)) {
		return nil, errors.New("SMS_BODY: it must contain {to} and {text}")
	}
	fill := strings.NewReplacer(toMark, to, fromMark, s.From, textMark, text, accountMark, s.Account).Replace
	switch s.Format {
	case Form:
		return s.formBody(fill)
	case JSON:
		return s.jsonBody(fill)
	}
	return nil, fmt.Errorf("SMS_FORMAT: %q is not valid, it must be form or json", s.Format)
}

func (s SMS) formBody(fill func(string) string) ([]byte, error) {
	fields, err := url.ParseQuery(cmp.Or(s.Body, defaultForm))
	if err != nil {
		return nil, errors.New("SMS_BODY: it must be a form, for example " + defaultForm)
	}
	for _, values := range fields {
		for i := range values {
			values[i] = fill(values[i])
		}
	}
	return []byte(fields.Encode()), nil
}

func (s SMS) jsonBody(fill func(string) string) ([]byte, error) {
	decoder := json.NewDecoder(strings.NewReader(cmp.Or(s.Body, defaultJSON)))
	decoder.UseNumber() // keeps the digits of each number
	var document any
	if err := decoder.Decode(&document); err != nil || decoder.More() {
		return nil, errors.New("SMS_BODY: it must be a JSON document, for example " + defaultJSON)
	}
	return json.Marshal(fillStrings(document, fill))
}

// fillStrings applies fill to each string of a JSON value, but not to the names of its members.
func fillStrings(value any, fill func(string) string) any {
	switch v := value.(type) {
	case string:
		return fill(v)
	case []any:
		for i := range v {
			v[i] = fillStrings(v[i], fill)
		}
	case map[string]any:
		for name := range v {
			v[name] = fillStrings(v[name], fill)
		}
	}
	return value
}
