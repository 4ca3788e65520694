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
	maxResponse  = 64 << 10 // bytes of the body of a gateway's response
	maxHeader    = 64 << 10 // bytes of its header
	maxText      = 1600     // characters of a message, the limit of Twilio: about ten segments
	idleTimeout  = time.Minute
	maxIdleConns = 4
	maxConns     = 32
)

// phoneNumber matches a telephone number in the form that the service stores (ITU-T E.164).
var phoneNumber = regexp.MustCompile(`^\+[1-9][0-9]{1,14}$`)

// gateway sends messages to an HTTP gateway.
type gateway struct {
	settings couriersettings.SMS
	url      *url.URL
	header   http.Header
	client   *http.Client
}

// newGateway returns a gateway that has not connected yet. It returns an error if a setting is
// wrong.
func newGateway(settings couriersettings.SMS) (*gateway, error) {
	if err := settings.CheckSettings(); err != nil {
		return nil, err
	}
	address, err := settings.GatewayURL()
	if err != nil {
		return nil, err
	}
	header, err := settings.ExtraHeaders()
	if err != nil {
		return nil, err
	}
	roots, err := couriersettings.LoadRoots(settings.CAFile)
	if err != nil {
		return nil, err
	}
	proxy := httpproxy.FromEnvironment().ProxyFunc() // the plugin's own variables, from the manifest
	return &gateway{settings: settings, url: address, header: header, client: &http.Client{
		Timeout: settings.Timeout,
		// A redirect would send the code and the credentials to another server, so it counts as a
		// failure.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			Proxy:           func(r *http.Request) (*url.URL, error) { return proxy(r.URL) },
			TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true,
			MaxResponseHeaderBytes: maxHeader, MaxConnsPerHost: maxConns, MaxIdleConnsPerHost: maxIdleConns,
			IdleConnTimeout: idleTimeout,
		},
	}}, nil
}

// Channels implements [sdk.Courier].
func (*gateway) Channels() []sdk.Channel { return []sdk.Channel{sdk.SMS} }

// Deliver returns nil if the gateway responds with a status of SMS_SUCCESS_STATUSES. It returns an
// error when ctx ends or SMS_TIMEOUT has passed.
func (g *gateway) Deliver(ctx context.Context, m sdk.Message) error {
	if !phoneNumber.MatchString(m.Recipient) {
		return errors.New("the recipient is not a telephone number (for example +15550100)")
	}
	text, err := g.messageText(m)
	if err != nil {
		return err
	}
	request, err := g.newRequest(ctx, m.Recipient, text)
	if err != nil {
		return err
	}
	response, err := g.client.Do(request)
	if err != nil {
		return withoutURL(err)
	}
	defer func() { _ = response.Body.Close() }() // the body has been read, or is not needed
	return g.checkResponse(response)
}

func (g *gateway) messageText(m sdk.Message) (string, error) {
	if m.Kind == sdk.OTP {
		return g.settings.CodeText(couriersettings.CodeData{
			Code: m.Code, Product: g.settings.Brand.Name,
			Minutes: couriersettings.WholeMinutes(time.Until(m.ExpiresAt)),
		})
	}
	if text := []rune(m.Text); len(text) > maxText {
		return string(text[:maxText]), nil
	}
	return m.Text, nil
}

func (g *gateway) newRequest(ctx context.Context, to, text string) (*http.Request, error) {
	body, err := g.settings.RequestBody(to, text)
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

// withoutURL returns err without the URL, which may contain the account.
func withoutURL(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}

// checkResponse returns nil if the gateway accepted the message. The error contains only the status
// and the gateway's own error number, because the body may contain the message.
func (g *gateway) checkResponse(response *http.Response) error {
	content, err := io.ReadAll(io.LimitReader(response.Body, maxResponse))
	if slices.Contains(g.settings.Statuses, response.StatusCode) {
		return nil // the gateway accepted the message
	}
	if err != nil {
		return withoutURL(err)
	}
	var refusal struct {
		Code int `json:"code"`
	}
	if json.Unmarshal(content, &refusal) == nil && refusal.Code != 0 {
		return fmt.Errorf("the gateway returned status %d and error %d", response.StatusCode, refusal.Code)
	}
	return fmt.Errorf("the gateway returned status %d", response.StatusCode)
}
