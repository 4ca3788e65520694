package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"time"

	"golang.org/x/net/http/httpproxy"

	"github.com/tollgate-dev/tollgate/plugins/couriersettings"
	"github.com/tollgate-dev/tollgate/plugins/sdk"
)

const (
	maxAnswer  = 64 << 10 // bytes of a gateway's answer that are read
	maxHeader  = 64 << 10 // bytes of its header
	maxText    = 1600     // characters of a message, as Twilio has it: ten segments, about
	idle       = time.Minute
	keptOpen   = 4
	atOnceMost = 32
)

// number is a telephone number as the service keeps it (ITU-T E.164).
var number = regexp.MustCompile(`^\+[1-9][0-9]{1,14}$`)

// gateway hands messages to an HTTP gateway.
type gateway struct {
	settings couriersettings.SMS
	url      *url.URL
	header   http.Header
	client   *http.Client
}

// newGateway checks the settings; it does not connect.
func newGateway(settings couriersettings.SMS) (*gateway, error) {
	if err := settings.Check(); err != nil {
		return nil, err
	}
	address, err := settings.Address()
	if err != nil {
		return nil, err
	}
	header, err := settings.Header()
	if err != nil {
		return nil, err
	}
	roots, err := couriersettings.Roots(settings.CAFile)
	if err != nil {
		return nil, err
	}
	proxy := httpproxy.FromEnvironment().ProxyFunc() // of this process: what the manifest gives it
	return &gateway{settings: settings, url: address, header: header, client: &http.Client{
		Timeout: settings.Timeout,
		// A redirect would carry the code and the credentials elsewhere: it is an answer like any other, and no success.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			Proxy:           func(r *http.Request) (*url.URL, error) { return proxy(r.URL) },
			TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true,
			MaxResponseHeaderBytes: maxHeader, MaxConnsPerHost: atOnceMost, MaxIdleConnsPerHost: keptOpen, IdleConnTimeout: idle,
		},
	}}, nil
}

// Channels is SMS alone.
func (*gateway) Channels() []sdk.Channel { return []sdk.Channel{sdk.SMS} }

// Deliver returns nil once the gateway has answered with a status of success. It ends when ctx or SMS_TIMEOUT does.
func (g *gateway) Deliver(ctx context.Context, m sdk.Message) error {
	if !number.MatchString(m.Recipient) {
		return errors.New("the recipient is not a telephone number (for example +15550100)")
	}
	text, err := g.text(m)
	if err != nil {
		return err
	}
	request, err := g.request(ctx, m.Recipient, text)
	if err != nil {
		return err
	}
	response, err := g.client.Do(request)
	if err != nil {
		return failure(err)
	}
	defer func() { _ = response.Body.Close() }() // its content is read, or of no use
	return g.verdict(response)
}

func (g *gateway) text(m sdk.Message) (string, error) {
	if m.Kind == sdk.OTP {
		return g.settings.Words(couriersettings.Code{
			Code: m.Code, Product: g.settings.Brand.Name, Minutes: couriersettings.Minutes(time.Until(m.ExpiresAt)),
		})
	}
	if text := []rune(m.Text); len(text) > maxText {
		return string(text[:maxText]), nil
	}
	return m.Text, nil
}

func (g *gateway) request(ctx context.Context, to, text string) (*http.Request, error) {
	body, err := g.settings.Content(to, text)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, g.settings.Method, g.url.String(), bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	contentType := "application/x-www-form-urlencoded"
	if g.settings.Format == couriersettings.JSON {
		contentType = "application/json"
	}
	request.Header.Set("Content-Type", contentType)
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", "tollgate")
	for name, values := range g.header {
		request.Header[name] = values
	}
	if g.settings.Token != "" {
		request.SetBasicAuth(g.settings.Account, g.settings.Token)
	}
	return request, nil
}

// failure leaves the URL out, in which the account may stand.
func failure(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}

// verdict reads the gateway's answer. Of one that is no success only the status and the gateway's own error number are told: its
// text may hold the message.
func (g *gateway) verdict(response *http.Response) error {
	content, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if slices.Contains(g.settings.Statuses, response.StatusCode) {
		return nil // it took the message, whatever else it says
	}
	if err != nil {
		return failure(err)
	}
	var refusal struct {
		Code int `json:"code"`
	}
	if json.Unmarshal(content, &refusal) == nil && refusal.Code != 0 {
		return fmt.Errorf("the gateway answered with status %d and error %d", response.StatusCode, refusal.Code)
	}
	return fmt.Errorf("the gateway answered with status %d", response.StatusCode)
}
