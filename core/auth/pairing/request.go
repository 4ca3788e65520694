package pairing

import (
	"net/netip"
	"net/url"
	"regexp"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
)

const maxRedirect = 100 // bytes

var (
	challengeForm = regexp.MustCompile(`^[A-Za-z0-9_-]{43}$`)
	verifierForm  = regexp.MustCompile(`^[A-Za-z0-9._~-]{43,128}$`) // RFC 7636, section 4.1
	stateForm     = regexp.MustCompile(`^[A-Za-z0-9._~-]{1,128}$`)
)

// Request is what a command sends with the browser (RFC 7636, section 4.3). Without a redirect the
// person copies the code.
type Request struct{ Challenge, Method, Redirect, State string }

// Check returns fault.Invalid for a challenge that is not one of S256, and for a redirect that does
// not lead to a port of the machine of the browser (RFC 8252, section 7.3).
func (r Request) Check() error {
	switch {
	case r.Method != "S256":
		return fault.New(fault.Invalid, "code_challenge_method must be S256")
	case !challengeForm.MatchString(r.Challenge):
		return fault.New(fault.Invalid, "code_challenge must be 43 characters of base64url")
	case r.Redirect != "" && !stateForm.MatchString(r.State):
		return fault.New(fault.Invalid, "state must be 1 to 128 letters and digits")
	case r.Redirect != "" && r.Origin() == "":
		return fault.New(fault.Invalid, "redirect_uri must be http://127.0.0.1:PORT/… or http://[::1]:PORT/…")
	}
	return nil
}

// Origin returns the origin of the redirect; empty if it is not a port of the machine itself. A name
// like localhost may lead elsewhere (RFC 8252, section 8.3).
func (r Request) Origin() string {
	u, err := url.Parse(r.Redirect)
	if err != nil || len(r.Redirect) > maxRedirect || u.String() != r.Redirect || u.Scheme != "http" ||
		u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return ""
	}
	host, err := netip.ParseAddrPort(u.Host)
	local := host.Addr() == netip.AddrFrom4([4]byte{127, 0, 0, 1}) || host.Addr() == netip.IPv6Loopback()
	if err != nil || !local || host.Port() == 0 {
		return ""
	}
	return "http://" + u.Host
}

// Approved returns the address at which the command gets a code.
func (r Request) Approved(code auth.LinkSecret) string { return r.answer("code", string(code)) }

// Denied returns the address at which the command learns that the person has refused (RFC 6749,
// section 4.1.2.1).
func (r Request) Denied() string { return r.answer("error", "access_denied") }

func (r Request) answer(name, value string) string {
	return r.Redirect + "?" + url.Values{name: {value}, "state": {r.State}}.Encode()
}
