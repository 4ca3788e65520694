// Package account makes calls to a service as a person who signed in there. It reads the tokens
// from a credential file and renews them when they expire, even if several commands run at once.
package account

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/tollgateclient"
	"github.com/tollgate-dev/tollgate/adapters/tollgateclient/credentialfile"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// renewBefore is how long before its expiry an access token is renewed.
const renewBefore = 30 * time.Second

// refreshTimeout limits a renewal, which continues when the command is interrupted.
const refreshTimeout = time.Minute

// The reasons for a new login.
const (
	reasonNoSession   = "you are not signed in: sign in with 'tollgate login'"
	reasonEnded       = "your sign-in has ended: sign in with 'tollgate login'"
	reasonInterrupted = "a renewal of your sign-in was interrupted, and repeating it could end all your sessions: sign in with 'tollgate login'"
)

// SignInNeeded is the error of a call that needs a new login or a step-up.
type SignInNeeded struct{ Reason string }

// Error implements error.
func (e *SignInNeeded) Error() string { return e.Reason }

// Account is a person at a service. It is safe for concurrent use.
type Account struct {
	file   *credentialfile.File
	client *tollgateclient.Client
	email  string
}

// New returns the account of a person at the service that the client calls. The e-mail address must
// be normalized (contract A-10). An account with an empty address is never signed in.
func New(file *credentialfile.File, client *tollgateclient.Client, email string) *Account {
	return &Account{file, client, email}
}

// Email returns the e-mail address of the person.
func (a *Account) Email() string { return a.email }

// Client returns the client of the service, for calls that need no session.
func (a *Account) Client() *tollgateclient.Client { return a.client }

// Machine returns the device and the device token of this machine for a login. The first call gives
// the machine a random name and stores it.
func (a *Account) Machine(ctx context.Context) (tollgateclient.Machine, error) {
	var m tollgateclient.Machine
	err := a.file.WithLock(ctx, func(h *credentialfile.LockedFile) error {
		if h.Device.UserAgent == "" {
			id := make([]byte, 8)
			_, _ = rand.Read(id) // never fails
			h.Device.UserAgent = fmt.Sprintf("%s (%s; %s; %s)", auth.CommandLine, osName(runtime.GOOS), runtime.GOARCH,
				hex.EncodeToString(id))
			if err := h.Save(); err != nil {
				return err
			}
		}
		m.Device.UserAgent = h.Device.UserAgent
		m.Token = h.DeviceToken(a.client.URL(), a.email)
		return nil
	})
	return m, err
}

// osName returns the name of an operating system in user agents, so that the service can show a
// person which machine signed in.
func osName(goos string) string {
	switch goos {
	case "linux":
		return "Linux"
	case "darwin":
		return "Macintosh"
	case "windows":
		return "Windows NT"
	case "freebsd":
		return "FreeBSD"
	}
	return goos
}

// KeepSession stores the session of a login and ends the previous one. If the access token of the
// previous session has expired, that session is left to expire: renewing a session only to end it
// would risk the new session if a copy of the file is in use. Later commands call the service as this
// one: with http if insecureHTTP, and with trust in the certificates in the file caCert, if any.
// The context gets the name, or without one keeps the name that it has.
func (a *Account) KeepSession(ctx context.Context, s tollgateclient.SignedIn, insecureHTTP bool, caCert, name string) error {
	var before *credentialfile.Tokens
	err := a.file.Update(ctx, func(c *credentialfile.Contents) {
		before = a.storedTokens(c)
		if old := c.Of(a.client.URL(), a.email); old != nil {
			name = cmp.Or(name, old.Name)
			c.Remove(old)
		}
		c.Use(&credentialfile.SignIn{
			Name: name, URL: a.client.URL(), InsecureHTTP: insecureHTTP, CACert: caCert, Email: a.email, Tokens: newStoredTokens(s.Tokens),
		})
		a.keepDevice(c, s.DeviceToken)
	})
	if err == nil && before != nil {
		_ = a.endSession(ctx, before.Access) // the session may have ended or expired
	}
	return err
}

// endSession ends the session of an access token.
func (a *Account) endSession(ctx context.Context, token string) error {
	s, err := a.client.GetSession(ctx, token)
	if err != nil {
		return err
	}
	return a.client.Logout(ctx, token, s.ID)
}

func newStoredTokens(t tollgateclient.Tokens) *credentialfile.Tokens {
	return &credentialfile.Tokens{Access: t.Access, Refresh: t.Refresh, ExpiresAt: time.Now().Add(t.ExpiresIn)}
}

func (a *Account) keepDevice(c *credentialfile.Contents, token string) {
	if token != "" {
		c.KeepDeviceToken(credentialfile.DeviceToken{URL: a.client.URL(), Email: a.email, Token: token})
	}
}

// Do calls call with an access token. It renews the token first if it has expired, and renews it
// and calls again, once, if the service refuses it. The error is a SignInNeeded if there is no
// session.
func (a *Account) Do(ctx context.Context, call func(ctx context.Context, token string) error) error {
	token, err := a.accessToken(ctx, "")
	if err != nil {
		return err
	}
	if err = call(ctx, token); !fault.Is(err, fault.Unauthenticated) {
		return err
	}
	if token, err = a.accessToken(ctx, token); err != nil {
		return err
	}
	if err = call(ctx, token); fault.Is(err, fault.Unauthenticated) {
		return a.forgetRefused(ctx, token)
	}
	return err
}

// accessToken returns a valid access token other than the one that was refused.
func (a *Account) accessToken(ctx context.Context, refused string) (string, error) {
	contents, err := a.file.Read()
	if err != nil {
		return "", err
	}
	if t := a.storedTokens(&contents); t != nil && isUsable(t, refused) {
		return t.Access, nil
	}
	var token string
	err = a.file.WithLock(ctx, func(h *credentialfile.LockedFile) error {
		t := a.storedTokens(&h.Contents)
		switch {
		case t == nil:
			return &SignInNeeded{reasonNoSession}
		case !isUsable(t, refused): // and no other command has renewed it meanwhile
			if err := a.renewTokens(ctx, h); err != nil {
				return err
			}
		}
		token = a.storedTokens(&h.Contents).Access
		return nil
	})
	return token, err
}

// storedTokens returns the tokens of the account; nil if the file does not contain them, or those
// of another account.
func (a *Account) storedTokens(c *credentialfile.Contents) *credentialfile.Tokens {
	if s := c.Of(a.client.URL(), a.email); s != nil {
		return s.Tokens
	}
	return nil
}

// change changes the sign-in of the account in the file, if it has tokens.
func (a *Account) change(c *credentialfile.Contents, change func(*credentialfile.SignIn)) {
	if s := c.Of(a.client.URL(), a.email); s != nil && s.Tokens != nil {
		change(s)
	}
}

func isUsable(t *credentialfile.Tokens, refused string) bool {
	return t.Access != refused && time.Until(t.ExpiresAt) > renewBefore
}

// renewTokens exchanges the refresh token for new tokens. A refresh token must not be used twice,
// so renewTokens records on disk that it is being used before it sends it, and stores the new
// tokens before the lock is released. An interrupted command completes the renewal first.
func (a *Account) renewTokens(ctx context.Context, h *credentialfile.LockedFile) error {
	t := a.storedTokens(&h.Contents)
	if t.Spending {
		return a.dropTokens(h, reasonInterrupted)
	}
	t.Spending = true
	if err := h.Save(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), refreshTimeout)
	defer cancel()
	fresh, err := a.client.RefreshTokens(ctx, t.Refresh)
	switch {
	case err == nil:
		a.change(&h.Contents, func(s *credentialfile.SignIn) { s.Tokens = newStoredTokens(fresh) })
		return h.Save()
	case fault.Is(err, fault.Unauthenticated), fault.Is(err, fault.Forbidden):
		return a.dropTokens(h, reasonEnded)
	case tollgateclient.NeverSent(err), fault.Is(err, fault.Exhausted): // the service did not look at the token
		t.Spending = false
		return errors.Join(err, h.Save())
	}
	return err
}

// dropTokens deletes the tokens of a session that has ended.
func (a *Account) dropTokens(h *credentialfile.LockedFile, why string) error {
	a.change(&h.Contents, dropSession)
	if err := h.Save(); err != nil {
		return err
	}
	return &SignInNeeded{why}
}

func dropSession(s *credentialfile.SignIn) { s.Tokens, s.Challenge = nil, nil }

// forgetRefused deletes the tokens of a session whose newest access token was refused.
func (a *Account) forgetRefused(ctx context.Context, refused string) error {
	return a.file.WithLock(ctx, func(h *credentialfile.LockedFile) error {
		if t := a.storedTokens(&h.Contents); t == nil || t.Access != refused {
			return &SignInNeeded{reasonEnded} // another command has stored a new session
		}
		return a.dropTokens(h, reasonEnded)
	})
}

// BeginStepUp starts a step-up and stores its challenge, so that a later command can send the code.
func (a *Account) BeginStepUp(ctx context.Context, method string) (tollgateclient.Challenge, error) {
	var c tollgateclient.Challenge
	err := a.Do(ctx, func(ctx context.Context, token string) (err error) {
		c, err = a.client.BeginStepUp(ctx, token, method)
		return err
	})
	if err != nil {
		return c, err
	}
	return c, a.keepChallenge(ctx, &credentialfile.Challenge{ID: c.ID, Method: c.Method})
}

func (a *Account) keepChallenge(ctx context.Context, challenge *credentialfile.Challenge) error {
	return a.file.Update(ctx, func(c *credentialfile.Contents) {
		a.change(c, func(s *credentialfile.SignIn) { s.Challenge = challenge })
	})
}

// FinishStepUp completes the stored step-up with its code and stores the new device token. It
// returns the new trust level of the session. After a wrong code the step-up is still waiting.
func (a *Account) FinishStepUp(ctx context.Context, code string) (string, error) {
	contents, err := a.file.Read()
	if err != nil {
		return "", err
	}
	s := contents.Of(a.client.URL(), a.email)
	if s == nil || s.Tokens == nil || s.Challenge == nil {
		return "", fault.New(fault.Invalid,
			"no step-up is waiting for a code: start one with 'tollgate login --step-up email'")
	}
	raised, err := a.client.VerifyStepUp(ctx, s.Challenge.ID, code)
	if err != nil {
		return "", err
	}
	return raised.TrustLevel, a.file.Update(ctx, func(c *credentialfile.Contents) {
		a.change(c, func(s *credentialfile.SignIn) { s.Challenge = nil })
		a.keepDevice(c, raised.DeviceToken)
	})
}

// TrustMachine marks this machine as trusted, for later logins.
func (a *Account) TrustMachine(ctx context.Context) error {
	return a.Do(ctx, func(ctx context.Context, token string) error {
		s, err := a.client.GetSession(ctx, token)
		if err != nil {
			return err
		}
		return a.client.TrustDevice(ctx, token, s.DeviceIdentity)
	})
}

// SignOut ends the session at the service and deletes its tokens from the file, even if the call to
// the service fails. The machine keeps its name and device token. The error is a SignInNeeded if
// there is no session.
func (a *Account) SignOut(ctx context.Context) error {
	err := a.Do(ctx, a.endSession)
	updateErr := a.file.Update(context.WithoutCancel(ctx), func(c *credentialfile.Contents) {
		a.change(c, dropSession)
	})
	if updateErr != nil {
		return updateErr
	}
	return err
}
