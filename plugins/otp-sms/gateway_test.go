package main

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/plugins/couriersettings"
	"github.com/tollgate-dev/tollgate/plugins/sdk"
	"github.com/tollgate-dev/tollgate/plugins/sdk/sdktest"
	"github.com/tollgate-dev/tollgate/test/must"
)

// request is a request that the gateway got.
type request struct {
	method, path, body string
	header             http.Header
}

// far is a fake gateway over TLS.
type far struct {
	*httptest.Server
	caFile string
	mu     sync.Mutex
	got    []request
}

// startGateway runs a gateway whose responses come from answer, or have status 201 if answer is
// nil.
func startGateway(t *testing.T, answer func(http.ResponseWriter, *http.Request)) *far {
	t.Helper()
	f := &far{caFile: filepath.Join(t.TempDir(), "ca.pem")}
	f.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // the test shows what is missing
		f.mu.Lock()
		f.got = append(f.got, request{r.Method, r.URL.EscapedPath(), string(body), r.Header})
		f.mu.Unlock()
		if answer == nil {
			w.WriteHeader(http.StatusCreated)
			return
		}
		answer(w, r)
	}))
	t.Cleanup(f.Close)
	content := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.Certificate().Raw})
	must.Succeed(t, os.WriteFile(f.caFile, content, 0o600))
	return f
}

func (f *far) requests() []request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]request{}, f.got...)
}

// gatewayTo returns the plugin with the settings that its program would parse.
func gatewayTo(t *testing.T, f *far, environ map[string]string) *gateway {
	t.Helper()
	all := map[string]string{
		"SMS_GATEWAY_URL": f.URL + "/2010-04-01/Accounts/{account}/Messages.json", "SMS_CA_FILE": f.caFile,
		"SMS_ACCOUNT": "AC1", "SMS_TOKEN": "the-token", "SMS_FROM": "+15550199",
	}
	for name, value := range environ {
		all[name] = value
	}
	settings, err := couriersettings.Parse[couriersettings.SMS](all)
	must.Succeed(t, err)
	g, err := newGateway(settings)
	must.Succeed(t, err)
	return g
}

func code() sdk.Message {
	return sdk.Message{
		Channel: sdk.SMS, Recipient: "+15550100", Code: "042917",
		ExpiresAt: time.Now().Add(10*time.Minute - time.Second),
	}
}

var sixDigits = regexp.MustCompile(`\b[0-9]{6}\b`)

func TestContract(t *testing.T) {
	t.Parallel()
	sdktest.RunCourier(t, func(t *testing.T) sdktest.Courier {
		f := startGateway(t, nil)
		return sdktest.Courier{Plugin: gatewayTo(t, f, nil), Delivered: func() []sdktest.Delivery {
			var seen []sdktest.Delivery
			for _, r := range f.requests() {
				form, err := url.ParseQuery(r.body)
				must.Succeed(t, err)
				seen = append(seen, sdktest.Delivery{
					Channel: sdk.SMS, Recipient: form.Get("To"), Code: sixDigits.FindString(form.Get("Body")),
					Text: form.Get("Body"),
				})
			}
			return seen
		}}
	})
}

// TestTwilio checks that the default request is the one that Twilio documents.
func TestTwilio(t *testing.T) {
	t.Parallel()
	f := startGateway(t, nil)
	must.Succeed(t, gatewayTo(t, f, map[string]string{"PRODUCT_NAME": "A & B"}).Deliver(t.Context(), code()))
	r := f.requests()[0]
	form, err := url.ParseQuery(r.body)
	must.Succeed(t, err)
	const words = "042917 is your A & B code, valid for 10 minutes. Do not share it with anyone."
	if len(form) != 3 || form.Get("To") != "+15550100" || form.Get("From") != "+15550199" || form.Get("Body") != words {
		t.Errorf("form is %v", form)
	}
	account, token, ok := (&http.Request{Header: r.header}).BasicAuth()
	if !ok || account != "AC1" || token != "the-token" {
		t.Errorf("signed in as %s", account)
	}
	if r.method != "POST" || r.path != "/2010-04-01/Accounts/AC1/Messages.json" ||
		r.header.Get("Content-Type") != "application/x-www-form-urlencoded" {
		t.Errorf("request is %+v", r)
	}
}

// TestJSON checks that the texts that are filled in cannot break the document.
func TestJSON(t *testing.T) {
	t.Parallel()
	f := startGateway(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) })
	g := gatewayTo(t, f, map[string]string{
		"SMS_GATEWAY_URL": f.URL + "/send", "SMS_ACCOUNT": "", "SMS_TOKEN": "", "SMS_METHOD": "PUT",
		"SMS_FORMAT":  "json",
		"SMS_HEADERS": `{"x-api-key": "k", "Content-Type": "application/vnd.sms+json"}`, "SMS_SUCCESS_STATUSES": "202",
		"SMS_BODY": `{"messages": [{"destinations": [{"to": "{to}"}], "text": "<{text}>", "flash": false, "id": 12345678901234567890}]}`,
	})
	notice := sdk.Message{
		Kind: sdk.Notice, Channel: sdk.SMS, Recipient: "+15550100", Text: "\"}],\n{to} {{.Code}} \\ &Body=x",
	}
	must.Succeed(t, g.Deliver(t.Context(), notice))
	r := f.requests()[0]
	var got struct {
		Messages []struct {
			Destinations []map[string]string
			Text         string
			Flash        bool
			ID           json.Number
		}
	}
	if err := json.Unmarshal([]byte(r.body), &got); err != nil {
		t.Fatalf("%v: %s", err, r.body)
	}
	m := got.Messages[0]
	if m.Destinations[0]["to"] != "+15550100" || m.Text != "<"+notice.Text+">" || m.ID != "12345678901234567890" {
		t.Errorf("document is %s", r.body)
	}
	if r.method != "PUT" || r.header.Get("X-Api-Key") != "k" ||
		r.header.Get("Content-Type") != "application/vnd.sms+json" ||
		r.header.Get("Authorization") != "" {
		t.Errorf("request is %+v", r)
	}
}

func TestFormIsNotBroken(t *testing.T) {
	t.Parallel()
	f := startGateway(t, nil)
	notice := sdk.Message{
		Kind: sdk.Notice, Channel: sdk.SMS, Recipient: "+15550100",
		Text: "a&To=+15550666\nb {from}" + strings.Repeat("é", 2000),
	}
	must.Succeed(t, gatewayTo(t, f, nil).Deliver(t.Context(), notice))
	form, err := url.ParseQuery(f.requests()[0].body)
	if err != nil || len(form["To"]) != 1 || !strings.HasPrefix(form.Get("Body"), "a&To=+15550666\nb {from}é") {
		t.Errorf("form is %v, error %v", form, err)
	}
	if n := len([]rune(form.Get("Body"))); n != maxText {
		t.Errorf("text has %d characters, want it cut at %d", n, maxText)
	}
	for _, recipient := range []string{"", "15550100", "+1555010a", "+15550100&To=+1", "+0123", "+1234567890123456"} {
		m := code()
		m.Recipient = recipient
		if err := gatewayTo(t, f, nil).Deliver(t.Context(), m); err == nil {
			t.Errorf("%q is taken as a number", recipient)
		}
	}
}

// TestRefusals checks that each response without success leads to an error, without the message or
// the credentials in its text.
func TestRefusals(t *testing.T) {
	t.Parallel()
	other := startGateway(t, nil)
	for name, c := range map[string]struct {
		answer func(http.ResponseWriter, *http.Request)
		says   string
	}{
		"client error": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"code": 21211, "message": "The 'To' number +15550100 is not valid, 042917"}`)
		}, "status 400 and error 21211"},
		"server error": {
			func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }, "status 502",
		},
		"redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		}, "status 307"},
		"another success": {
			func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusMultiStatus) }, "status 207",
		},
		"endless": {func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			for r.Context().Err() == nil {
				_, _ = w.Write(make([]byte, maxResponse)) // until the client disconnects
			}
		}, "status 500"},
		"cut off": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := gatewayTo(t, startGateway(t, c.answer), nil).Deliver(t.Context(), code())
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("error %v, want one that says %q", err, c.says)
			}
			for _, secret := range []string{"042917", "+15550100", "the-token", "AC1"} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("%q shows %s", err, secret)
				}
			}
		})
	}
	t.Cleanup(func() {
		if n := len(other.requests()); n != 0 {
			t.Errorf("%d requests were redirected to another host", n)
		}
	})
}

func TestHangingGateway(t *testing.T) {
	t.Parallel()
	f := startGateway(t, func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		panic(http.ErrAbortHandler) // a response could still arrive while the client closes the TLS connection
	})
	if err := gatewayTo(t, f, map[string]string{"SMS_TIMEOUT": "300ms"}).Deliver(t.Context(), code()); err == nil {
		t.Error("no error when the time is over")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := gatewayTo(t, f, nil).Deliver(ctx, code()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("caller left: %v", err)
	}
}

func TestUnknownAuthority(t *testing.T) {
	t.Parallel()
	f := startGateway(t, nil)
	if err := gatewayTo(t, f, map[string]string{"SMS_CA_FILE": ""}).Deliver(t.Context(), code()); err == nil ||
		len(f.requests()) != 0 {
		t.Errorf("error %v, %d requests", err, len(f.requests()))
	}
}

// TestDeliveryThroughAProxy sets the proxy variables as a manifest does.
func TestDeliveryThroughAProxy(t *testing.T) {
	f := startGateway(t, nil)
	var asked atomic.Value
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Store(r.Method + " " + r.Host)
		far, err := (&net.Dialer{}).DialContext(r.Context(), "tcp", f.Listener.Addr().String())
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = far.Close() }()
		w.WriteHeader(http.StatusOK)
		near, rest, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = near.Close() }()
		go func() { _, _ = io.Copy(far, rest) }()
		_, _ = io.Copy(near, far)
	}))
	t.Cleanup(proxy.Close)
	t.Setenv("HTTPS_PROXY", proxy.URL)
	t.Setenv("NO_PROXY", "")
	g := gatewayTo(t, f, map[string]string{"SMS_GATEWAY_URL": "https://sms.example.com/messages"})
	t.Cleanup(g.client.CloseIdleConnections)
	must.Succeed(t, g.Deliver(t.Context(), code()))
	if asked.Load() != "CONNECT sms.example.com:443" || len(f.requests()) != 1 {
		t.Errorf("the proxy was asked %v, the gateway got %+v", asked.Load(), f.requests())
	}
}
