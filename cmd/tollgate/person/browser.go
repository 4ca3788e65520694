package person

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/tollgateclient"
	"github.com/tollgate-dev/tollgate/adapters/tollgateclient/account"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// The bounds of the interval that a service sets, and how much longer it gets after slow_down (RFC
// 8628, section 3.5).
const (
	minInterval = time.Second
	maxInterval = time.Minute
	slowDown    = 5 * time.Second
	maxWait     = 10 * time.Minute
)

// usesBrowser reports whether the person signs in in a browser: no flag is one of the sign-in with a
// password.
func (l *loginRun) usesBrowser() bool {
	return l.noBrowser || l.email == "" && !l.fromStdin && l.mfaCode == ""
}

// browser returns the program that opens an address in the browser, with its arguments; nil without
// one.
func (u *publisherRun) browser() []string {
	if program := strings.Fields(u.Getenv("BROWSER")); len(program) > 0 {
		return program
	}
	switch runtime.GOOS {
	case "darwin":
		return []string{"open"}
	case "windows":
		return []string{"rundll32", "url.dll,FileProtocolHandler"}
	}
	if _, err := exec.LookPath("xdg-open"); err != nil || u.Getenv("DISPLAY")+u.Getenv("WAYLAND_DISPLAY") == "" {
		return nil
	}
	return []string{"xdg-open"}
}

// signInByBrowser starts a session that the person approves in the console, in a browser on any machine
// (RFC 8628).
func (l *loginRun) signInByBrowser(ctx context.Context) (*account.Account, string, error) {
	if err := l.chooseService(ctx); err != nil {
		return nil, "", err
	}
	who, err := l.newAccount(l.address, l.last.Email)
	if err != nil {
		return nil, "", err
	}
	machine, err := who.Machine(ctx)
	if err != nil {
		return nil, "", err
	}
	pairing, err := who.Client().BeginPairing(ctx, machine)
	if err != nil {
		return nil, "", err
	}
	code := url.QueryEscape(pairing.UserCode) // nothing in it changes a terminal, nor leads to another host
	l.PrintNote("Your code is %s. Compare it, and approve it in a browser:\n", code)
	page := "/" + strings.TrimLeft(pairing.VerificationPath, "/") + "?code=" + code
	l.openPage(ctx, who.Client().URL()+page, l.noBrowser)
	session, err := poll(ctx, who.Client(), pairing, machine)
	if err != nil {
		return nil, "", err
	}
	return l.keepSession(ctx, session)
}

// poll waits until the person has decided, and returns the session.
func poll(
	ctx context.Context, client *tollgateclient.Client, p tollgateclient.Pairing, m tollgateclient.Machine,
) (tollgateclient.SignedIn, error) {
	wait := min(max(time.Duration(p.Interval)*time.Second, minInterval), maxInterval)
	end := time.After(min(time.Duration(p.ExpiresIn)*time.Second, maxWait))
	for {
		select {
		case <-ctx.Done():
			return tollgateclient.SignedIn{}, cli.ErrInterrupted
		case <-end:
			return tollgateclient.SignedIn{}, &account.SignInNeeded{Reason: "the sign-in in the browser took too long"}
		case <-time.After(wait):
		}
		session, err := client.LoginByPairing(ctx, p.DeviceCode, m)
		switch {
		case tollgateclient.HasCode(err, auth.CodeAccessDenied):
			return session, &account.SignInNeeded{Reason: "the sign-in was refused in the browser"}
		case tollgateclient.HasCode(err, auth.CodeSlowDown), fault.Is(err, fault.Exhausted):
			wait += slowDown
		case tollgateclient.HasCode(err, auth.CodePending), fault.Is(err, fault.Unavailable): // it may be there again
		default:
			return session, err
		}
	}
}

// keepSession stores a session of the person who is signed in in the browser. If --email names somebody
// else, it ends the session.
func (l *loginRun) keepSession(
	ctx context.Context, session tollgateclient.SignedIn,
) (*account.Account, string, error) {
	who, err := l.newAccount(l.address, session.Email)
	if err != nil {
		return nil, "", err
	}
	if email, err := auth.ParseEmail(l.email); l.email != "" && (err != nil || string(email) != session.Email) {
		s, err := who.Client().GetSession(ctx, session.Access)
		if err == nil {
			err = who.Client().Logout(ctx, session.Access, s.ID)
		}
		return nil, "", errors.Join(fmt.Errorf("%s is signed in in the browser, not %s", session.Email, l.email), err)
	}
	return who, session.TrustLevel, l.keep(ctx, who, session)
}

// openPage prints an address, and opens it in the browser, if there is one and the person wants that.
func (u *publisherRun) openPage(ctx context.Context, address string, printOnly bool) {
	u.PrintNote("  %s\n", address)
	program := u.browser()
	if printOnly || program == nil {
		return
	}
	program = append(program, address)
	c := exec.CommandContext(context.WithoutCancel(ctx), program[0], program[1:]...) // #nosec G204 -- the browser of the person
	c.Env = u.Environ
	if err := c.Start(); err != nil {
		u.PrintNote("The browser cannot be opened: %v", err)
		return
	}
	go func() { _ = c.Wait() }() // the address is printed too
}
