package couriersettings

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"text/template"
	"time"

	"golang.org/x/net/http/httpguts"
)

// Forms of a request's body.
const (
	Form = "form"
	JSON = "json"
)

// What stands in for the parts of a message in SMS_GATEWAY_URL and SMS_BODY.
const (
	accountMark = "{account}"
	toMark      = "{to}"
	fromMark    = "{from}"
	textMark    = "{text}"
)

const (
	defaultForm  = "To=" + toMark + "&From=" + fromMark + "&Body=" + textMark // Twilio, "Create a Message resource"
	defaultJSON  = `{"to":"` + toMark + `","from":"` + fromMark + `","text":"` + textMark + `"}`
	defaultWords = "{{.Code}} is your {{.Product}} code, good for {{.Minutes}} minute{{if ne .Minutes 1}}s{{end}}. Do not tell it to anyone."
)

// SMS holds the settings of otp-sms. Without others than account, token and sender it speaks to Twilio.
type SMS struct {
	URL      string `env:"SMS_GATEWAY_URL" envDefault:"https://api.twilio.com/2010-04-01/Accounts/{account}/Messages.json" desc:"URL of the gateway that otp-sms sends messages to; https, or http on the same machine; {account} is replaced by SMS_ACCOUNT"`
	Account  string `env:"SMS_ACCOUNT" desc:"user name for basic authentication at the gateway; for Twilio the account SID"`
	Token    string `env:"SMS_TOKEN" secret:"true" desc:"password for basic authentication at the gateway; for Twilio the auth token"`
	From     string `env:"SMS_FROM" desc:"sender number or name of messages"`
	Method   string `env:"SMS_METHOD" envDefault:"POST" desc:"POST or PUT"`
	Headers  string `env:"SMS_HEADERS" secret:"true" desc:"JSON object of additional headers of each request, for example with an API key"`
	Format   string `env:"SMS_FORMAT" envDefault:"form" desc:"encoding of a request: form or json"`
	Body     string `env:"SMS_BODY" desc:"fields of the form, or JSON document, with {to}, {from}, {text} and {account} in its values; default: To={to}&From={from}&Body={text}, the form of Twilio"`
	Template string `env:"SMS_TEMPLATE" desc:"wording of a code, with {{.Code}}, {{.Product}} and {{.Minutes}}"`
	Statuses []int  `env:"SMS_SUCCESS_STATUSES" envDefault:"200,201,202,204" desc:"HTTP statuses with which the gateway confirms that it accepted the message"`
	CAFile   string `env:"SMS_CA_FILE" desc:"PEM file of CA certificates, of which one must have issued the gateway's certificate; default: the system's"`
	// Timeout bounds one delivery; above 0.
	Timeout time.Duration `env:"SMS_TIMEOUT" envDefault:"8s" desc:"how long sending a message may take; less than PLUGIN_CALL_TIMEOUT"`
	Brand   Brand
}

// Environ returns the settings as the plugin reads them.
func (s SMS) Environ() []string { return environ(s) }

// Check names the first setting that is missing or malformed, and shows no secret. It is not called Validate, since it holds
// only where the plugin is chosen.
func (s SMS) Check() error {
	if s.Method != http.MethodPost && s.Method != http.MethodPut {
		return fmt.Errorf("SMS_METHOD: %q is neither POST nor PUT", s.Method)
	}
	for _, status := range s.Statuses {
		if status < 200 || status > 299 {
			return fmt.Errorf("SMS_SUCCESS_STATUSES: %d is not 200 to 299", status)
		}
	}
	if len(s.Statuses) == 0 {
		return errors.New("SMS_SUCCESS_STATUSES: at least one is needed")
	}
	if _, err := s.Address(); err != nil {
		return err
	}
	headers, err := s.Header()
	if err != nil {
		return err
	}
	if err := s.checkCredentials(headers); err != nil {
		return err
	}
	if _, err := s.Content("+15550100", "text"); err != nil {
		return err
	}
	if _, err := s.Words(Code{Code: "000000", Product: s.Brand.Name, Minutes: 10}); err != nil {
		return err
	}
	return errors.Join(line("SMS_FROM", s.From, maxName), s.Brand.Validate(),
		positive("SMS_TIMEOUT", s.Timeout), caFile("SMS_CA_FILE", s.CAFile))
}

func (s SMS) checkCredentials(headers http.Header) error {
	switch {
	case (s.Account == "") != (s.Token == ""):
		return errors.New("SMS_ACCOUNT: it goes together with SMS_TOKEN")
	case s.Token != "" && headers.Get("Authorization") != "":
		return errors.New("SMS_HEADERS: it has an Authorization together with SMS_ACCOUNT and SMS_TOKEN: give only one")
	case strings.Contains(s.Account, ":"):
		return errors.New("SMS_ACCOUNT: it must not contain a colon") // RFC 7617, section 2
	}
	return nil
}

// Address returns the gateway's URL.
func (s SMS) Address() (*url.URL, error) {
	if s.Account == "" && strings.Contains(s.URL, accountMark) {
		return nil, errors.New("SMS_ACCOUNT: it is required, since SMS_GATEWAY_URL names it")
	}
	u, err := url.Parse(strings.ReplaceAll(s.URL, accountMark, url.PathEscape(s.Account)))
	switch {
	case err != nil || u.Host == "":
		return nil, errors.New("SMS_GATEWAY_URL: it is not an https URL")
	case u.User != nil:
		return nil, errors.New("SMS_GATEWAY_URL: it must not contain credentials: use SMS_ACCOUNT and SMS_TOKEN")
	case u.Fragment != "":
		return nil, errors.New("SMS_GATEWAY_URL: it must have no fragment")
	case u.Scheme != "https" && (u.Scheme != "http" || !Loopback(u.Hostname())):
		return nil, errors.New("SMS_GATEWAY_URL: codes are sent over https only, or to this machine")
	}
	return u, nil
}

// Header returns the further headers.
func (s SMS) Header() (http.Header, error) {
	header := http.Header{}
	if s.Headers == "" {
		return header, nil
	}
	var given map[string]string
	if err := json.Unmarshal([]byte(s.Headers), &given); err != nil {
		return nil, errors.New(`SMS_HEADERS: it is not a JSON object (for example {"X-Api-Key": "…"})`)
	}
	for name, value := range given {
		if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			return nil, errors.New("SMS_HEADERS: a name or value is not one of HTTP")
		}
		header.Set(name, value)
	}
	return header, nil
}

// Code is what SMS_TEMPLATE may speak of.
type Code struct {
	Code    string
	Product string
	Minutes int // for which the code is good
}

// Words returns the wording of a code.
func (s SMS) Words(c Code) (string, error) {
	text := s.Template
	if text == "" {
		text = defaultWords
	}
	t, err := template.New("SMS_TEMPLATE").Parse(text)
	if err != nil {
		return "", fmt.Errorf("SMS_TEMPLATE: %w", err)
	}
	var words strings.Builder
	if err := t.Execute(&words, c); err != nil {
		return "", fmt.Errorf("SMS_TEMPLATE: %w", err)
	}
	if !strings.Contains(words.String(), c.Code) {
		return "", errors.New("SMS_TEMPLATE: it does not give {{.Code}}")
	}
	return words.String(), nil
}

// Content returns the body of the request for a message. Marks are replaced within values that were parsed before, so that no
// part of a message can become another field.
func (s SMS) Content(to, text string) ([]byte, error) {
	if s.Body != "" && (!strings.Contains(s.Body, toMark) || !strings.Contains(s.Body, textMark)) {
		return nil, errors.New("SMS_BODY: it needs {to} and {text}")
	}
	fill := strings.NewReplacer(toMark, to, fromMark, s.From, textMark, text, accountMark, s.Account).Replace
	switch s.Format {
	case Form:
		return s.form(fill)
	case JSON:
		return s.document(fill)
	}
	return nil, fmt.Errorf("SMS_FORMAT: %q is neither form nor json", s.Format)
}

func (s SMS) form(fill func(string) string) ([]byte, error) {
	body := s.Body
	if body == "" {
		body = defaultForm
	}
	fields, err := url.ParseQuery(body)
	if err != nil {
		return nil, errors.New("SMS_BODY: it is not a form such as " + defaultForm)
	}
	for _, values := range fields {
		for i := range values {
			values[i] = fill(values[i])
		}
	}
	return []byte(fields.Encode()), nil
}

func (s SMS) document(fill func(string) string) ([]byte, error) {
	body := s.Body
	if body == "" {
		body = defaultJSON
	}
	decoder := json.NewDecoder(strings.NewReader(body))
	decoder.UseNumber() // a number is sent as it is written
	var document any
	if err := decoder.Decode(&document); err != nil || decoder.More() {
		return nil, errors.New("SMS_BODY: it is not a JSON document such as " + defaultJSON)
	}
	return json.Marshal(filled(document, fill))
}

// filled returns a JSON value with its strings filled; names of members stay.
func filled(value any, fill func(string) string) any {
	switch v := value.(type) {
	case string:
		return fill(v)
	case []any:
		for i := range v {
			v[i] = filled(v[i], fill)
		}
	case map[string]any:
		for name := range v {
			v[name] = filled(v[name], fill)
		}
	}
	return value
}
