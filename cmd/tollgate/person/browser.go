package person

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/tollgateclient"
	"github.com/tollgate-dev/tollgate/adapters/tollgateclient/account"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/core/auth"
)

const (
	// browserTimeout is how long the command waits for the person in the browser.
	browserTimeout = 10 * time.Minute
	callbackPath   = "/callback"
)

// usesBrowser reports whether the person signs in in the browser: no flag is one of the sign-in with a
// password, and there is a browser.
func (l *loginRun) usesBrowser() bool {
	return l.noBrowser || l.email == "" && !l.fromStdin && l.mfaCode == "" && l.browser() != nil
}

// browser returns the program that opens an address in the browser, with its arguments; nil without
// one.
func (l *loginRun) browser() []string {
	if program := strings.Fields(l.Getenv("BROWSER")); len(program) > 0 {
		return program
	}
	switch runtime.GOOS {
	case "darwin":
		return []string{"open"}
	case "windows":
		return []string{"rundll32", "url.dll,FileProtocolHandler"}
	}
	if _, err := exec.LookPath("xdg-open"); err != nil || l.Getenv("DISPLAY")+l.Getenv("WAYLAND_DISPLAY") == "" {
		return nil
	}
	return []string{"xdg-open"}
}

// signInByBrowser starts a session that the person approves in the console (RFC 8252), with PKCE
// (RFC 7636): the code is of use to this run of the command alone.
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
	in := tollgateclient.Code{Verifier: rand.Text() + rand.Text()}
	if l.noBrowser {
		in.Text, err = l.readCode(ctx, who.Client().URL(), in.Verifier)
	} else {
		in, err = l.receiveCode(ctx, who.Client().URL(), in)
	}
	if err != nil {
		return nil, "", err
	}
	session, err := who.Client().LoginByCode(ctx, in, machine)
	if err != nil {
		return nil, "", err
	}
	return l.keepSession(ctx, session)
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

// pageAddress returns the address of the page that gives a code.
func pageAddress(service, verifier string, more ...string) string {
	sum := sha256.Sum256([]byte(verifier))
	query := url.Values{
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"},
	}
	for i := 0; i < len(more); i += 2 {
		query.Set(more[i], more[i+1])
	}
	return service + "/console/sign-in/command?" + query.Encode()
}

// readCode prints the address of the page, and reads the code that the person copies from it.
func (l *loginRun) readCode(ctx context.Context, service, verifier string) (code string, err error) {
	l.PrintNote("Open this address in a browser, sign in, and copy the code that it shows:\n\n  %s\n",
		pageAddress(service, verifier))
	if l.IsInteractive() {
		code, err = l.ReadSecret(ctx, "Code: ")
	} else {
		code, err = cli.ReadPasswordLine(ctx, l.Process)
	}
	if code = strings.TrimSpace(code); code == "" && err == nil {
		err = &account.SignInNeeded{Reason: "no code was entered: the page at the address above shows it after the sign-in"}
	}
	return code, err
}

// receiveCode opens the page in the browser and waits for the code, which the browser brings to a
// port of this machine.
func (l *loginRun) receiveCode(
	ctx context.Context, service string, in tollgateclient.Code,
) (tollgateclient.Code, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return in, fmt.Errorf("wait for the browser: %w", err)
	}
	in.Redirect = "http://" + listener.Addr().String() + callbackPath
	state, answers := rand.Text(), make(chan url.Values, 1)
	server := &http.Server{Handler: newCallback(state, answers), ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }() // ends with Shutdown
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = server.Shutdown(ctx) // after it the page is complete
	}()
	l.openPage(ctx, pageAddress(service, in.Verifier, "redirect_uri", in.Redirect, "state", state))
	select {
	case <-ctx.Done():
		return in, cli.ErrInterrupted
	case <-time.After(browserTimeout):
		return in, &account.SignInNeeded{Reason: "the sign-in in the browser took too long"}
	case got := <-answers:
		if in.Text = got.Get("code"); in.Text == "" {
			return in, &account.SignInNeeded{Reason: "the sign-in was refused in the browser"}
		}
		return in, nil
	}
}

// openPage opens an address in the browser. It prints the address, for a browser that does not open
// or is on another screen.
func (l *loginRun) openPage(ctx context.Context, address string) {
	l.PrintNote("Your browser opens, to sign in. If it does not, open this address on this machine:\n\n  %s\n", address)
	program := append(l.browser(), address)
	c := exec.CommandContext(context.WithoutCancel(ctx), program[0], program[1:]...) // #nosec G204 -- the browser of the person
	c.Env = l.Environ
	if err := c.Start(); err != nil {
		l.PrintNote("The browser cannot be opened: %v", err)
		return
	}
	go func() { _ = c.Wait() }() // the address is printed too
}

// newCallback returns the handler of the answer that the browser brings. It takes the first answer
// that has the state: other pages can send requests to this port too.
func newCallback(state string, answers chan<- url.Values) http.Handler {
	m := http.NewServeMux()
	m.HandleFunc("GET "+callbackPath, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Referrer-Policy", "no-referrer")
		query := r.URL.Query()
		if query.Get("state") != state {
			http.Error(w, "The command does not wait for this. Start 'tollgate login' again.", http.StatusBadRequest)
			return
		}
		select {
		case answers <- query:
		default: // it has one
		}
		_, _ = io.WriteString(w, "Go back to the terminal. You can close this page.\n") // the command has its answer
	})
	return m
}
