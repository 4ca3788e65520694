package account

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/tollgateclient"
	"github.com/tollgate-dev/tollgate/adapters/tollgateclient/credentialfile"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/test/must"
)

// service imitates the renewals and sessions of the real service: an access token is valid until
// the next renewal, and using a refresh token twice ends all sessions.
type service struct {
	*httptest.Server

	expected sync.WaitGroup // processes that must have started before the service answers a renewal

	mu        sync.Mutex
	serial    int // of the valid tokens
	renewals  int
	ended     bool
	expiresIn int                            // seconds, of access tokens
	onRefresh func(http.ResponseWriter) bool // if it returns true, it has written the response
}

func newService(t *testing.T) *service {
	t.Helper()
	s := &service{serial: 1, expiresIn: 900}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /auth/refresh", s.refresh)
	mux.HandleFunc("GET /auth/session", s.session)
	mux.HandleFunc("GET /start", func(http.ResponseWriter, *http.Request) { s.expected.Done() })
	mux.HandleFunc("POST /auth/logout", func(w http.ResponseWriter, _ *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.ended = true
		fmt.Fprint(w, `{"message":"signed out"}`)
	})
	mux.HandleFunc("POST /auth/step-up/initiate", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"challengeId":"c1","method":"EMAIL_OTP","attemptsRemaining":3}`)
	})
	mux.HandleFunc("POST /auth/step-up/verify", func(w http.ResponseWriter, r *http.Request) {
		var in struct{ ChallengeID, OTP string }
		_ = json.NewDecoder(r.Body).Decode(&in)
		if in.ChallengeID != "c1" || in.OTP != "123456" {
			writeError(w, http.StatusUnauthorized, "invalid_otp")
			return
		}
		w.Header().Set("X-Device-Token", "proof")
		fmt.Fprint(w, `{"success":true,"newTrustLevel":"FULL_TRUST"}`)
	})
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

// counts returns the number of renewals, and whether all sessions have ended.
func (s *service) counts() (renewals int, ended bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.renewals, s.ended
}

// update changes the service between calls.
func (s *service) update(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
}

func writeError(w http.ResponseWriter, status int, code string) {
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"error":%q,"message":"refused","details":{}}`, code)
}

func (s *service) refresh(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.onRefresh != nil && s.onRefresh(w) {
		return
	}
	var in struct{ RefreshToken string }
	_ = json.NewDecoder(r.Body).Decode(&in)
	switch {
	case s.ended:
		writeError(w, http.StatusUnauthorized, "invalid_token")
	case in.RefreshToken != fmt.Sprint("refresh", s.serial):
		s.ended = true
		writeError(w, http.StatusForbidden, "access_denied")
	default:
		s.serial++
		s.renewals++
		fmt.Fprintf(w, `{"accessToken":"access%d","refreshToken":"refresh%d","expiresIn":%d}`, s.serial,
			s.serial, s.expiresIn)
	}
}

func (s *service) session(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || r.Header.Get("Authorization") != fmt.Sprint("Bearer access", s.serial) {
		writeError(w, http.StatusUnauthorized, "token_expired")
		return
	}
	fmt.Fprint(w, `{"id":"s1","deviceIdentity":"me"}`)
}

// signedIn returns an account at the service whose access token expires after left.
func (s *service) signedIn(t *testing.T, left time.Duration) (*Account, *credentialfile.File) {
	t.Helper()
	file := credentialfile.New(filepath.Join(t.TempDir(), "credentials.json"))
	a := s.account(t, file)
	session := tollgateclient.SignedIn{
		Tokens: tollgateclient.Tokens{Access: "access1", Refresh: "refresh1", ExpiresIn: left},
	}
	must.Succeed(t, a.KeepSession(t.Context(), session, false, "", ""))
	return a, file
}

func (s *service) account(t *testing.T, file *credentialfile.File) *Account {
	t.Helper()
	c, err := tollgateclient.New(tollgateclient.Config{URL: s.URL})
	must.Succeed(t, err)
	return New(file, c, "ada@example.com")
}

func getSession(ctx context.Context, a *Account) error {
	return a.Do(ctx, func(ctx context.Context, token string) error {
		_, err := a.Client().GetSession(ctx, token)
		return err
	})
}

func isSignInNeeded(err error) bool {
	var n *SignInNeeded
	return errors.As(err, &n)
}

func TestRenewal(t *testing.T) {
	for name, c := range map[string]struct {
		left     time.Duration // of the first access token
		renewed  bool          // the service has issued new tokens meanwhile
		renewals int
	}{
		"a valid token is used":                       {time.Hour, false, 0},
		"an expired token is renewed":                 {0, false, 1},
		"a token that expires soon is renewed":        {renewBefore - time.Second, false, 1},
		"a token that the service refuses is renewed": {time.Hour, true, 1},
		"a token that expired an hour ago is renewed": {-time.Hour, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newService(t)
			a, file := s.signedIn(t, c.left)
			if c.renewed { // the refresh token stays valid, the access token does not
				s.serial = 2
				if err := file.Update(t.Context(), func(in *credentialfile.Contents) {
					in.SignIn.Tokens.Refresh = "refresh2"
				}); err != nil {
					t.Fatal(err)
				}
			}
			for range 3 {
				must.Succeed(t, getSession(t.Context(), a))
			}
			if got, _ := s.counts(); got != c.renewals {
				t.Errorf("%d renewals, want %d", got, c.renewals)
			}
		})
	}
}

// TestUntrustedCertificate: a renewal that found a certificate that it does not trust was not sent, so the sign-in is still
// there when the next command trusts it.
func TestUntrustedCertificate(t *testing.T) {
	s := newService(t)
	secure := httptest.NewTLSServer(s.Config.Handler)
	t.Cleanup(secure.Close)
	authority := filepath.Join(t.TempDir(), "ca.pem")
	must.Succeed(t, os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}), 0o600))
	file := credentialfile.New(filepath.Join(t.TempDir(), "credentials.json"))
	open := func(authority string) *Account {
		c, err := tollgateclient.New(tollgateclient.Config{URL: secure.URL, CACert: authority})
		must.Succeed(t, err)
		return New(file, c, "ada@example.com")
	}
	must.Succeed(t, open(authority).KeepSession(t.Context(), tollgateclient.SignedIn{
		Tokens: tollgateclient.Tokens{Access: "access0", Refresh: "refresh1"},
	}, false, authority, ""))
	for range 2 {
		if err := getSession(t.Context(), open("")); !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "--ca-cert FILE") {
			t.Errorf("without the authority: %v", err)
		}
	}
	must.Succeed(t, getSession(t.Context(), open(authority)))
	if kept, err := file.Read(); err != nil || kept.SignIn.CACert != authority {
		t.Errorf("the file has %+v, %v", kept.SignIn, err)
	}
}

// TestTwoProcesses checks that several processes that find the token expired renew it only once. A
// second renewal with the same refresh token would end all sessions of the person.
func TestTwoProcesses(t *testing.T) {
	if url := os.Getenv("ACCOUNT_TEST_URL"); url != "" {
		getSessionAsProcess(t, url)
		return
	}
	s := newService(t)
	_, file := s.signedIn(t, 0)
	const processes = 4
	s.expected.Add(processes)
	s.update(func() { s.onRefresh = func(http.ResponseWriter) bool { s.expected.Wait(); return false } })
	self, err := os.Executable()
	must.Succeed(t, err)
	var all sync.WaitGroup
	for range processes {
		all.Go(func() {
			cmd := exec.Command(self, "-test.run=^TestTwoProcesses$")
			cmd.Env = append(os.Environ(), "ACCOUNT_TEST_URL="+s.URL, "ACCOUNT_TEST_FILE="+file.Path())
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	all.Wait()
	if renewals, ended := s.counts(); renewals != 1 || ended {
		t.Errorf("%d renewals, ended %t", renewals, ended)
	}
}

func getSessionAsProcess(t *testing.T, url string) {
	t.Helper()
	s := &service{Server: &httptest.Server{URL: url}} // the parent runs it
	resp, err := http.Get(url + "/start")
	must.Succeed(t, err)
	resp.Body.Close()
	must.Succeed(t, getSession(t.Context(), s.account(t, credentialfile.New(os.Getenv("ACCOUNT_TEST_FILE")))))
}

// TestLostResponse checks that a refresh token is never sent again if it is unknown whether the
// service has used it.
func TestLostResponse(t *testing.T) {
	s := newService(t)
	a, _ := s.signedIn(t, 0)
	// the token is used, and the response is lost
	s.onRefresh = func(http.ResponseWriter) bool { s.serial++; panic(http.ErrAbortHandler) }
	if err := getSession(t.Context(), a); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a lost response: %v", err)
	}
	s.update(func() { s.onRefresh = nil })
	for range 2 {
		err := getSession(t.Context(), a)
		if _, ended := s.counts(); !isSignInNeeded(err) || ended {
			t.Errorf("after a lost response: %v, all sessions ended: %t", err, ended)
		}
	}
}

// TestRenewedLater checks that a renewal is repeated later if the rate limit refused it, or if it
// did not reach the service.
func TestRenewedLater(t *testing.T) {
	s := newService(t)
	a, file := s.signedIn(t, 0)
	s.onRefresh = func(w http.ResponseWriter) bool {
		writeError(w, http.StatusTooManyRequests, "rate_limit_exceeded")
		return true
	}
	if err := getSession(t.Context(), a); !fault.Is(err, fault.Exhausted) {
		t.Errorf("a renewal beyond the rate limit: %v", err)
	}
	s.update(func() { s.onRefresh = nil })
	address := s.URL
	gone := httptest.NewServer(nil)
	gone.Close()
	move := func(url string) {
		must.Succeed(t, file.Update(t.Context(), func(c *credentialfile.Contents) { c.SignIn.URL = url }))
	}
	move(gone.URL)
	s.URL = gone.URL
	if err := getSession(t.Context(), s.account(t, file)); !fault.Is(err, fault.Unavailable) {
		t.Errorf("no service: %v", err)
	}
	move(address)
	err := getSession(t.Context(), a)
	if renewals, _ := s.counts(); err != nil || renewals != 1 {
		t.Errorf("later: %v, %d renewals", err, renewals)
	}
}

// TestInterrupted checks that an interrupted command completes a renewal that has started.
func TestInterrupted(t *testing.T) {
	s := newService(t)
	a, file := s.signedIn(t, 0)
	ctx, interrupt := context.WithCancel(t.Context())
	s.onRefresh = func(http.ResponseWriter) bool { interrupt(); return false }
	if err := getSession(ctx, a); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	if c, err := file.Read(); err != nil || c.SignIn.Tokens.Refresh != "refresh2" || c.SignIn.Tokens.Spending {
		t.Errorf("the file contains %+v, %v", c.SignIn.Tokens, err)
	}
}

func TestEnded(t *testing.T) {
	s := newService(t)
	a, file := s.signedIn(t, time.Hour)
	s.ended = true
	for range 2 {
		if err := getSession(t.Context(), a); !isSignInNeeded(err) {
			t.Errorf("an ended session: %v", err)
		}
	}
	if c, err := file.Read(); err != nil || c.SignIn.Tokens != nil || c.SignIn.Email != "ada@example.com" {
		t.Errorf("the file contains %+v, %v", c.SignIn, err)
	}
}

// TestOtherService checks that the tokens of one service are never sent to another.
func TestOtherService(t *testing.T) {
	_, file := newService(t).signedIn(t, time.Hour)
	if err := file.Update(t.Context(), func(c *credentialfile.Contents) {
		c.KeepDeviceToken(credentialfile.DeviceToken{URL: c.SignIn.URL, Email: c.SignIn.Email, Token: "proof"})
	}); err != nil {
		t.Fatal(err)
	}
	other := newService(t).account(t, file)
	if err := getSession(t.Context(), other); !isSignInNeeded(err) {
		t.Errorf("at another service: %v", err)
	}
	m, err := other.Machine(t.Context())
	if err != nil || m.Token != "" || !strings.HasPrefix(m.Device.UserAgent, "tollgate-cli (") {
		t.Errorf("at another service: %+v, %v", m, err)
	}
	again, err := other.Machine(t.Context())
	if err != nil || again.Device != m.Device {
		t.Errorf("the machine was %+v and is %+v, %v", m, again, err)
	}
}

func TestStepUp(t *testing.T) {
	s := newService(t)
	a, file := s.signedIn(t, time.Hour)
	if _, err := a.FinishStepUp(t.Context(), "123456"); !fault.Is(err, fault.Invalid) {
		t.Errorf("a code without a step-up: %v", err)
	}
	if _, err := a.BeginStepUp(t.Context(), "EMAIL_OTP"); err != nil {
		t.Fatal(err)
	}
	later := s.account(t, file) // another command
	if _, err := later.FinishStepUp(t.Context(), "654321"); !fault.Is(err, fault.Unauthenticated) {
		t.Errorf("a wrong code: %v", err)
	}
	if level, err := later.FinishStepUp(t.Context(), "123456"); err != nil || level != "FULL_TRUST" {
		t.Errorf("the code: %s, %v", level, err)
	}
	if m, err := a.Machine(t.Context()); err != nil || m.Token != "proof" {
		t.Errorf("the machine is %+v, %v", m, err)
	}
	if _, err := later.FinishStepUp(t.Context(), "123456"); !fault.Is(err, fault.Invalid) {
		t.Errorf("the code again: %v", err)
	}
	err := a.SignOut(t.Context())
	if _, ended := s.counts(); err != nil || !ended {
		t.Errorf("sign out: %v, ended %t", err, ended)
	}
	if m, err := a.Machine(t.Context()); err != nil || m.Token != "proof" {
		t.Errorf("after sign-out the machine is %+v, %v", m, err)
	}
	if err := a.SignOut(t.Context()); !isSignInNeeded(err) {
		t.Errorf("sign out again: %v", err)
	}
}

// TestSecondLogin checks that a login ends the previous session at the same service, and no other.
func TestSecondLogin(t *testing.T) {
	s := newService(t)
	_, file := s.signedIn(t, time.Hour)
	next := tollgateclient.SignedIn{
		Tokens: tollgateclient.Tokens{Access: "access9", Refresh: "refresh9", ExpiresIn: time.Hour},
	}
	elsewhere := newService(t)
	must.Succeed(t, elsewhere.account(t, file).KeepSession(t.Context(), next, false, "", ""))
	if _, ended := s.counts(); ended {
		t.Error("a login at another service ended the session")
	}
	a, _ := s.signedIn(t, time.Hour)
	must.Succeed(t, a.KeepSession(t.Context(), next, false, "", ""))
	if _, ended := s.counts(); !ended {
		t.Error("the previous session is still active")
	}
}

// TestSignOutUnavailable checks that the tokens are deleted even if the service is unavailable.
func TestSignOutUnavailable(t *testing.T) {
	s := newService(t)
	a, file := s.signedIn(t, time.Hour)
	s.Close()
	if err := a.SignOut(t.Context()); !fault.Is(err, fault.Unavailable) {
		t.Errorf("sign out: %v", err)
	}
	if c, err := file.Read(); err != nil || c.SignIn.Tokens != nil {
		t.Errorf("the file contains %+v, %v", c.SignIn, err)
	}
}
