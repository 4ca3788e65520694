// Package account is a person's sign-in at one service: it calls with the tokens that a file keeps and renews them
// when they have run out, also where several commands run at once. What a call asks for is its caller's business.
package account

import (
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

// early is how long before its end an access token is renewed.
const renewBefore = 30 * time.Second

// refreshTimeout bounds a renewal, which is not given up when the command is.
const refreshTimeout = time.Minute

// The reasons for a new login.
const (
	reasonNoSession   = "you are not signed in: sign in with 'tollgate login'"
	reasonEnded       = "your sign-in has ended: sign in with 'tollgate login'"
	reasonInterrupted = "a renewal of your sign-in was cut short, and trying it again could end all your sessions: sign in with 'tollgate login'"
)

// SignInNeeded is a call that only a new login can make possible.
type SignInNeeded struct{ Reason string }

// Error implements error.
func (e *SignInNeeded) Error() string { return e.Reason }

// Account is a person at a service. It is safe for concurrent use.
type Account struct {
	file   *credentialfile.File
	client *tollgateclient.Client
	email  string
}

// New returns the account of a person at the service that the client calls. The address is in the
// form in which services compare addresses (contract A-10), or empty for nobody, who is not signed
// in.
func New(file *credentialfile.File, client *tollgateclient.Client, email string) *Account {
	return &Account{file, client, email}
}

// Email returns the address that the person signs in with.
func (a *Account) Email() string { return a.email }

// Client returns the client, for calls that need no session.
func (a *Account) Client() *tollgateclient.Client { return a.client }

// Machine returns how this machine signs in: as the device that the service knows, and with its proof. The first
// time it gives itself a name, which nobody can guess.
func (a *Account) Machine(ctx context.Context) (tollgateclient.Machine, error) {
	var m tollgateclient.Machine
	err := a.file.WithLock(ctx, func(h *credentialfile.LockedFile) error {
		if h.Device.UserAgent == "" {
			id := make([]byte, 8)
			_, _ = rand.Read(id) // never fails
			h.Device.UserAgent = fmt.Sprintf("%s (%s; %s; %s)", auth.CommandLine, osName(runtime.GOOS), runtime.GOARCH, hex.EncodeToString(id))
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

// system returns the word by which user agents name an operating system, so that
// the service can tell a person which machine signed in.
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

// Keep keeps the session that a login gave, and ends the one before. That one is left to run out when its access
// token is over: to renew a session only to end it would risk the new one, should a copy of the file be in use.
func (a *Account) KeepSession(ctx context.Context, s tollgateclient.SignedIn, insecureHTTP bool) error {
	var before *credentialfile.Tokens
	err := a.file.Update(ctx, func(c *credentialfile.Contents) {
		before = a.storedTokens(*c)
		c.SignIn = &credentialfile.SignIn{
			URL: a.client.URL(), InsecureHTTP: insecureHTTP, Email: a.email, Tokens: newStoredTokens(s.Tokens),
		}
		a.keepDevice(c, s.DeviceToken)
	})
	if err == nil && before != nil {
		_ = a.endSession(ctx, before.Access) // it may have ended, or run out
	}
	return err
}

// end ends the session of an access token.
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

// Do calls with an access token, which it renews before, or once after the service has refused it. A call may
// therefore be made twice; the first one was then refused. The error is a SignInNeeded where there is no session.
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

// token returns an access token that is good and not the one that was refused.
func (a *Account) accessToken(ctx context.Context, refused string) (string, error) {
	contents, err := a.file.Read()
	if err != nil {
		return "", err
	}
	if t := a.storedTokens(contents); t != nil && isUsable(t, refused) {
		return t.Access, nil
	}
	var token string
	err = a.file.WithLock(ctx, func(h *credentialfile.LockedFile) error {
		t := a.storedTokens(h.Contents)
		switch {
		case t == nil:
			return &SignInNeeded{reasonNoSession}
		case !isUsable(t, refused): // unless another command has renewed it meanwhile
			if err := a.renewTokens(ctx, h); err != nil {
				return err
			}
		}
		token = h.SignIn.Tokens.Access
		return nil
	})
	return token, err
}

// tokens returns those of the account; nil when the file holds none, or somebody else's.
func (a *Account) storedTokens(c credentialfile.Contents) *credentialfile.Tokens {
	if c.SignIn == nil || c.SignIn.URL != a.client.URL() || c.SignIn.Email != a.email {
		return nil
	}
	return c.SignIn.Tokens
}

func isUsable(t *credentialfile.Tokens, refused string) bool {
	return t.Access != refused && time.Until(t.ExpiresAt) > renewBefore
}

// renew spends the refresh token, once: that it is on its way is on disk before it goes, and what comes back is
// before the lock is given up. A command that is interrupted meanwhile finishes this first.
func (a *Account) renewTokens(ctx context.Context, h *credentialfile.LockedFile) error {
	t := h.SignIn.Tokens
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
		h.SignIn.Tokens = newStoredTokens(fresh)
		return h.Save()
	case fault.Is(err, fault.Unauthenticated), fault.Is(err, fault.Forbidden):
		return a.dropTokens(h, reasonEnded)
	case tollgateclient.NeverSent(err), fault.Is(err, fault.Exhausted): // refused before the token was looked at
		t.Spending = false
		return errors.Join(err, h.Save())
	}
	return err
}

// drop forgets the tokens of a session that is no more.
func (a *Account) dropTokens(h *credentialfile.LockedFile, why string) error {
	h.SignIn.Tokens, h.SignIn.Challenge = nil, nil
	if err := h.Save(); err != nil {
		return err
	}
	return &SignInNeeded{why}
}

// forget is drop for a session whose newest token was refused.
func (a *Account) forgetRefused(ctx context.Context, refused string) error {
	return a.file.WithLock(ctx, func(h *credentialfile.LockedFile) error {
		if t := a.storedTokens(h.Contents); t == nil || t.Access != refused {
			return &SignInNeeded{reasonEnded} // another command's is not touched
		}
		return a.dropTokens(h, reasonEnded)
	})
}
