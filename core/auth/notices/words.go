package notices

import (
	"slices"

	"github.com/mileusna/useragent"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/ports/courier"
)

// wording is what a notice of a kind says.
type wording struct {
	subject string
	event   string // what happened, as the first sentence of a letter
	advice  string // what to do about it
	brief   string // the event for a telephone
	counsel string // the advice for a telephone
}

// wordingOf returns the words for a kind.
func wordingOf(k Kind) wording {
	switch k {
	case NewDevice:
		return wording{
			subject: "Sign-in from a new device",
			event:   "Somebody signed in to your account from a device that was not seen before.",
			advice: "If it was you, there is nothing to do. If it was not, change your password, then sign out of all sessions and " +
				"revoke the device.",
			brief: "sign-in from a new device", counsel: "Not you? Change your password and revoke the device.",
		}
	case SignInLocked:
		return wording{
			subject: "Sign-in is locked",
			event:   "Signing in to your account failed too many times, and is locked for a while.",
			advice: "The lock ends on its own; sessions that are open stay open. If it was not you, nobody has got in by this. Choose a " +
				"password that you use nowhere else.",
			brief: "sign-in is locked for a while, it failed too many times", counsel: "Not you? Nobody has got in by this.",
		}
	case ChangesLocked:
		return wording{
			subject: "Changes to your account are locked",
			event:   "Somebody who is signed in to your account failed too many times to confirm a change of it.",
			advice:  "The lock ends on its own. If it was not you, sign out of all sessions and change your password.",
			brief:   "changes to your account are locked for a while", counsel: "Not you? Sign out of all sessions, change your password.",
		}
	case AuthenticatorEnrolled, AuthenticatorActivated, AuthenticatorDisabled, PasswordChanged:
		return wordingOfChange(k)
	case DeviceRevoked, DeviceUntrusted, SessionEnded:
		return wordingOfLoss(k)
	default:
		return wording{
			subject: "All sessions were ended",
			event: "A sign-in of yours was used a second time, as happens when it was copied. All your sessions were ended to keep " +
				"strangers out.",
			advice: "Sign in again. Then look through your devices and revoke those that are not yours, and change your password.",
			brief:  "a sign-in was used twice, as if copied; all sessions were ended", counsel: "Sign in again, change your password.",
		}
	}
}

// wordingOfChange returns the words for a change of what a person signs in with.
func wordingOfChange(k Kind) wording {
	const (
		advice = "If it was you, there is nothing to do. If it was not, somebody else uses a session of yours: ask your operator to " +
			"set a new password, which ends all sessions, and to remove authenticators that are not yours."
		counsel = "Not you? Call your operator at once."
	)
	switch k {
	case AuthenticatorEnrolled:
		return wording{
			subject: "An authenticator was added", advice: advice, counsel: counsel,
			event: "An authenticator app was added to your account. It counts once it is activated, within 10 minutes.",
			brief: "an authenticator was added, not yet activated",
		}
	case AuthenticatorActivated:
		return wording{
			subject: "An authenticator was activated", advice: advice, counsel: counsel,
			event: "An authenticator app was activated for your account. From now on signing in takes a code of it.",
			brief: "an authenticator was activated",
		}
	case AuthenticatorDisabled:
		return wording{
			subject: "The authenticator was disabled", advice: advice, counsel: counsel,
			event: "The authenticator app of your account was disabled. From now on the password suffices to sign in.",
			brief: "the authenticator was disabled",
		}
	default:
		return wording{
			subject: "The password was changed", advice: advice, counsel: counsel,
			event: "The password of your account was changed, and your other sessions were ended.",
			brief: "the password was changed, other sessions were ended",
		}
	}
}

// wordingOfLoss returns the words for what a session took from its owner for which a password suffices.
func wordingOfLoss(k Kind) wording {
	const (
		advice = "If it was you, there is nothing to do. If it was not, somebody knows your password: sign in again and change it, then " +
			"look through your devices and sessions."
		counsel = "Not you? Change your password."
	)
	switch k {
	case DeviceRevoked:
		return wording{
			subject: "A device was revoked", advice: advice, counsel: counsel,
			event: "A device of yours was revoked from a session that gave no more than your password. It is signed out, and is " +
				"treated as a new one.",
			brief: "a device was revoked with no more than your password",
		}
	case DeviceUntrusted:
		return wording{
			subject: "A device was marked as untrusted", advice: advice, counsel: counsel,
			event: "A device of yours was marked as untrusted from a session that gave no more than your password. Sessions on it " +
				"need a code again for sensitive operations.",
			brief: "a device was marked as untrusted with no more than your password",
		}
	default:
		return wording{
			subject: "A session was ended", advice: advice, counsel: counsel,
			event: "A session of yours was ended from another session that gave no more than your password.",
			brief: "a session was ended with no more than your password",
		}
	}
}

// words returns subject and text of a notice for a channel. A text message is one line and short.
func (h *Happening) words(product string, channel courier.Channel) (subject, text string) {
	w := wordingOf(h.Kind)
	at := h.At.UTC().Format("2 January 2006, 15:04 UTC")
	address := "unknown"
	if h.Address.IsValid() {
		address = h.Address.WithZone("").String() // a zone may be any text
	}
	if channel == courier.SMS {
		return "", product + ": " + w.brief + " (" + h.device() + ", " + address + ", " + at + "). " + w.counsel
	}
	return w.subject + " - " + product, w.event + "\n\n" +
		"Service: " + product + "\nWhen: " + at + "\nIP address: " + address + "\nDevice: " + h.device() + "\n\n" + w.advice
}

// device names the device in words of ours only. The user agent is whatever a stranger wrote into it, and would reach the person
// as words of the service.
func (h *Happening) device() string {
	browser, system := known(browsers(), h.Browser), known(systems(), h.OS)
	if browser == auth.CommandLine {
		browser = "tollgate command line"
	}
	switch {
	case browser == "" && system == "":
		return "unknown"
	case browser == "":
		return "unknown browser on " + system
	case system == "":
		return browser
	}
	return browser + " on " + system
}

// known returns a name that is on a list, else nothing.
func known(list []string, name string) string {
	if slices.Contains(list, name) {
		return name
	}
	return ""
}

func browsers() []string {
	return []string{
		useragent.Chrome, useragent.HeadlessChrome, useragent.Firefox, useragent.Safari, useragent.MobileSafari, useragent.Edge,
		useragent.Opera, useragent.OperaMini, useragent.OperaTouch, useragent.Vivaldi, useragent.SamsungBrowser,
		useragent.InternetExplorer, "curl", auth.CommandLine,
	}
}

func systems() []string {
	return []string{
		useragent.Windows, useragent.WindowsPhone, useragent.Android, useragent.MacOS, useragent.IOS, useragent.Linux,
		useragent.FreeBSD, useragent.ChromeOS, useragent.BlackBerry, useragent.Harmony,
	}
}
