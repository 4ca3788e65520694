package notices

import (
	"slices"
	"strings"
	"unicode"

	"github.com/mileusna/useragent"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/ports/courier"
)

// wording is the text of the notices of one kind.
type wording struct {
	subject     string
	event       string // what happened, as the first sentence of an e-mail
	advice      string // what to do about it
	brief       string // the event for SMS
	briefAdvice string // the advice for SMS
}

// The advice about a change of the password or the authenticator, and about a device or session that
// a session with no more than a password has revoked, marked or ended.
const (
	adviceOnCredentials = "If this was you, you can ignore this message. If not, somebody else is using one of your sessions: ask your " +
		"operator to set a new password, which ends all sessions, and to remove authenticators that are not yours."
	adviceOnLoss = "If this was you, you can ignore this message. If not, somebody knows your password: sign in again and change " +
		"it, then check your devices and sessions."
)

// wordings are the texts of the kinds.
var wordings = map[Kind]wording{
	NewDevice: {
		subject: "Sign-in from a new device",
		event:   "Somebody signed in to your account from a new device.",
		advice: "If this was you, you can ignore this message. If not, change your password, then sign out of all sessions " +
			"and revoke the device.",
		brief: "sign-in from a new device", briefAdvice: "Not you? Change your password and revoke the device.",
	},
	SignInLocked: {
		subject: "Sign-in is locked",
		event:   "There were too many failed attempts to sign in to your account, so sign-in is locked for a while.",
		advice: "The lock ends by itself, and open sessions stay open. If this was not you: the attempts failed, and nobody got " +
			"in. Use a password that you use nowhere else.",
		brief:       "sign-in is locked for a while after too many failed attempts",
		briefAdvice: "Not you? Nobody got in.",
	},
	ChangesLocked: {
		subject:     "Changes to your account are locked",
		event:       "Somebody who is signed in to your account failed too many times to confirm a change to it, so changes are locked for a while.",
		advice:      "The lock ends by itself. If this was not you, sign out of all sessions and change your password.",
		brief:       "changes to your account are locked for a while",
		briefAdvice: "Not you? Sign out of all sessions, change your password.",
	},
	Replay: {
		subject: "All sessions were ended",
		event: "The token of one of your sessions was used twice, which happens when it was copied. All your sessions were " +
			"ended to keep strangers out.",
		advice:      "Sign in again, change your password, then check your devices and revoke those that are not yours.",
		brief:       "a session token was used twice and may be copied; all sessions were ended",
		briefAdvice: "Sign in again, change your password.",
	},
	AuthenticatorEnrolled: {
		subject: "An authenticator was added", advice: adviceOnCredentials, briefAdvice: "Not you? Call your operator at once.",
		event: "An authenticator app was added to your account. It must be activated within 10 minutes; until then it is not used.",
		brief: "an authenticator was added, not yet activated",
	},
	AuthenticatorActivated: {
		subject: "An authenticator was activated", advice: adviceOnCredentials, briefAdvice: "Not you? Call your operator at once.",
		event: "An authenticator app was activated for your account. From now on you need a code from it to sign in.",
		brief: "an authenticator was activated",
	},
	AuthenticatorDisabled: {
		subject: "The authenticator was disabled", advice: adviceOnCredentials, briefAdvice: "Not you? Call your operator at once.",
		event: "The authenticator app of your account was disabled. From now on your password is enough to sign in.",
		brief: "the authenticator was disabled",
	},
	AuthenticatorRemoved: {
		subject: "The authenticator was removed", briefAdvice: "Not you? Call your operator at once.",
		event: "An operator removed the authenticator app and the recovery codes of your account, and ended your sessions. " +
			"From now on your password is enough to sign in.",
		advice: "If you asked for this, sign in and add an authenticator again. If not, ask your operator why.",
		brief:  "an operator removed the authenticator and ended your sessions",
	},
	AuthenticatorAdded: {
		subject: "Another authenticator was activated", advice: adviceOnCredentials,
		event:       "A further authenticator app was activated for your account. Its codes sign in too.",
		brief:       "another authenticator was activated",
		briefAdvice: "Not you? Call your operator at once.",
	},
	AuthenticatorDropped: {
		subject: "One authenticator was removed", advice: adviceOnCredentials,
		event:       "One of the authenticator apps of your account was removed. Its codes are not accepted any more.",
		brief:       "one authenticator was removed",
		briefAdvice: "Not you? Call your operator at once.",
	},
	RecoveryCodesRenewed: {
		subject: "You have new recovery codes", advice: adviceOnCredentials,
		event:       "New recovery codes were made for your account. The old ones are not accepted any more.",
		brief:       "new recovery codes were made, the old ones ended",
		briefAdvice: "Not you? Call your operator at once.",
	},
	PasswordChanged: {
		subject: "The password was changed", advice: adviceOnCredentials, briefAdvice: "Not you? Call your operator at once.",
		event: "The password of your account was changed, and your other sessions were ended.",
		brief: "the password was changed, other sessions were ended",
	},
	DeviceTrusted: {
		subject: "A device was marked as trusted", advice: adviceOnLoss, briefAdvice: "Not you? Change your password.",
		event: "One of your devices was marked as trusted from a session in which no code was entered. The mark counts after " +
			"the next code that is entered on the device.",
		brief: "a device was marked as trusted without a code",
	},
	DeviceRevoked: {
		subject: "A device was revoked", advice: adviceOnLoss, briefAdvice: "Not you? Change your password.",
		event: "One of your devices was revoked from a session that had proved only your password. The device is signed out " +
			"and counts as new from now on.",
		brief: "a device was revoked with only your password",
	},
	DeviceUntrusted: {
		subject: "A device was marked as untrusted", advice: adviceOnLoss, briefAdvice: "Not you? Change your password.",
		event: "One of your devices was marked as untrusted from a session that had proved only your password. Sessions on " +
			"the device need a code again for sensitive operations.",
		brief: "a device was marked as untrusted with only your password",
	},
	SessionEnded: {
		subject: "A session was ended", advice: adviceOnLoss, briefAdvice: "Not you? Change your password.",
		event: "One of your sessions was ended from another session that had proved only your password.",
		brief: "a session was ended with only your password",
	},
	BreakGlassOpened: {
		subject: "A password was admitted in place of the company sign-in", brief: "a password was admitted in place of the company sign-in",
		event: "The command tollgate user break-glass has admitted the password of one person for a time, although people of this " +
			"domain sign in at their company only.",
		advice:      "If you expected this, you can ignore this message. If not, look at the audit log (ACCOUNT_CHANGE, break_glass).",
		briefAdvice: "Not expected? See the audit log.",
	},
	BreakGlass: {
		subject: "A password was used in place of the company sign-in", brief: "a password was used in place of the company sign-in",
		event: "Somebody signed in with a password that tollgate user break-glass had admitted, although people of this domain sign " +
			"in at their company only.",
		advice:      "If you expected this, you can ignore this message. If not, look at the audit log (ACCOUNT_CHANGE, break_glass).",
		briefAdvice: "Not expected? See the audit log.",
	},
	PasskeyAdded: {
		subject: "A passkey was added", briefAdvice: "Not you? Change your password at once.",
		event:  "A passkey was added to your account. From now on it signs in without your password.",
		advice: "If this was you, you can ignore this message. If not, remove it on your account page, and change your password.",
		brief:  "a passkey was added to your account",
	},
	PasskeyRemoved: {
		subject: "A passkey was removed", briefAdvice: "Not you? Change your password at once.",
		event:  "A passkey was removed from your account. It does not sign in any more.",
		advice: "If this was you, you can ignore this message. If not, change your password, then sign out of all sessions.",
		brief:  "a passkey was removed from your account",
	},
	PasskeySuspended: {
		subject: "A passkey was suspended", briefAdvice: "Remove it, and add a new one.",
		event:  "A passkey of your account seems to have a copy: its count of signatures went back. It does not sign in any more.",
		advice: "Remove it on your account page, and add a new one. If you have not just signed in, call your operator.",
		brief:  "a passkey of your account seems to have a copy and was suspended",
	},
	CompanyLinked: {
		subject: "A company sign-in was linked", briefAdvice: "Not you? Call your operator at once.",
		event: "Your account was linked to the sign-in of a company, where somebody signed in with your e-mail address, or linked it on " +
			"your account page. From now on it signs in to your account.",
		advice: "If this was you, you can ignore this message. If not, unlink it on your account page, and ask your operator.",
		brief:  "your account was linked to the sign-in of a company",
	},
	CompanyUnlinked: {
		subject: "A company sign-in was unlinked", briefAdvice: "Not you? Change your password at once.",
		event: "A company sign-in was unlinked from your account, and the sessions that came from it were ended. It does not sign " +
			"in any more.",
		advice: "If this was you, you can ignore this message. If not, change your password, then sign out of all sessions.",
		brief:  "a company sign-in was unlinked from your account",
	},
	PhoneChanged: {
		subject: "Your telephone number was changed", briefAdvice: "Not expected? Call your operator at once.",
		event:  "An operator changed the telephone number of your account. Codes that verify you can be sent to the new one.",
		advice: "If you expected this, you can ignore this message. If not, call your operator at once.",
		brief:  "an operator changed the telephone number of your account",
	},
	OperatorAdded: {
		subject: "Somebody else can operate the service", briefAdvice: "Not expected? See the audit log.",
		event:  "A person who could not do so before can operate the service now: by a grant, or by a group of a company sign-in.",
		advice: "If you expected this, you can ignore this message. If not, look at the audit log (ACCOUNT_CHANGE), and take the grant away.",
		brief:  "somebody else can operate the service now",
	},
	PublisherUsed: {
		subject:     "A publisher uses your policy",
		event:       "A publisher that you have allowed to publish has proved who it is, for the first time or with a new key.",
		advice:      "If you expected this, you can ignore this message. If not, remove the policy, which ends its access at once.",
		brief:       "a publisher uses your policy for the first time or with a new key",
		briefAdvice: "Not expected? Remove the policy.",
	},
	PublisherFailed: {
		subject: "A proof for your policy failed",
		event: "A publisher that you have allowed to publish could not prove who it is, or its domain no longer has the key. Nothing " +
			"was published by this proof.",
		advice: "The audit log has the reason (PUBLISHER_PROOF). If somebody changed the key or moved the repository, correct the " +
			"policy. If you no longer need the policy, remove it.",
		brief: "a proof for your policy failed; nothing was published", briefAdvice: "See the audit log.",
	},
	TokenAdded: {
		subject: "A token was made", briefAdvice: "Not you? Delete it, change your password.",
		event: "A token for programs was made in a session of yours, for you or for a service account. It is good until it ends or is " +
			"deleted, also after a new password.",
		advice: "If this was you, you can ignore this message. If not, delete the token on the page of your tokens, change your " +
			"password, and ask your operator.",
		brief: "a token for programs was made in a session of yours",
	},
	TokenEnds: {
		subject: "A token ends soon",
		event:   "A token of yours, or one that you made for a service account, ends soon. Programs that use it are refused from then on.",
		advice:  "If it is still needed, make a new one, give it to these programs, and delete the old one.",
		brief:   "a token of yours ends soon", briefAdvice: "If it is still needed, make a new one.",
	},
	ReviewsWaiting: {
		subject: "Servers wait for your review",
		event:   "Servers were submitted to the registry. They are not listed until you or another reviewer approves them.",
		advice:  "Read them on these pages, or with tollgate review list. The next notice comes in an hour at the earliest.",
		brief:   "servers wait for your review",
	},
	ReviewApproved: {
		subject: "Your server was approved",
		event:   "A reviewer has approved what you submitted to the registry. It is listed now.",
		advice:  "There is nothing to do. The page of the review has the document and the decision.",
		brief:   "your server was approved and is listed now",
	},
	ReviewRejected: {
		subject: "Your server was rejected",
		event:   "A reviewer has rejected what you submitted to the registry. It is not listed.",
		advice:  "The comment says why. You can publish the version again after you have corrected it: My servers has your document.",
		brief:   "your server was rejected and is not listed", briefAdvice: "The comment of the review says why:",
	},
	Quarantined: {
		subject: "Your server is in quarantine",
		event: "A reviewer or an operator has put what you published in quarantine. It is listed nowhere, and it cannot be changed " +
			"until it is released.",
		advice: "Talk to the reviewers of the registry about the reason. If one version is in quarantine, you can publish a corrected one " +
			"with another version.",
		brief: "your server is in quarantine", briefAdvice: "The page of the server says why:",
	},
}

// maxName is the greatest length of the name of a publisher or of servers in a notice, in bytes.
const maxName = 200

// oneLine returns a name, shortened and in one line: an issuer may put any text into a subject.
func oneLine(name string) string {
	name = replaceControls(name)
	if len(name) > maxName {
		return strings.ToValidUTF8(name[:maxName], "") + "…"
	}
	return name
}

// replaceControls returns a text with spaces for control characters and for those that change the
// direction of what follows.
func replaceControls(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return ' '
		}
		return r
	}, text)
}

// isReview reports whether the event is of a review or of quarantine.
func (e *Event) isReview() bool {
	return slices.Contains([]Kind{ReviewsWaiting, ReviewApproved, ReviewRejected, Quarantined}, e.Kind)
}

// source returns the label and the name of what the event is about: a device, a publisher, a server
// or a token.
func (e *Event) source() (label, name string) {
	switch {
	case e.Token != "":
		return "Token", oneLine(e.Token)
	case e.isReview():
		return "Server", oneLine(e.Servers)
	case e.Publisher == "":
		return "Device", e.deviceName()
	}
	return "Publisher", oneLine(e.Publisher) + ", for " + e.Servers
}

// formatMessage returns the subject and the text of a notice for a channel. For SMS the text is one
// short line and the subject is empty.
func (e *Event) formatMessage(product, address string, channel courier.Channel) (subject, text string) {
	w := wordings[e.Kind]
	at := e.At.UTC().Format("2 January 2006, 15:04 UTC")
	from := "unknown"
	if e.Address.IsValid() {
		from = e.Address.WithZone("").String() // a zone may be any text
	}
	label, name := e.source()
	facts, line := name+", "+from+", "+at, "\nIP address: "+from
	if e.isReview() || e.Kind == TokenEnds { // which has no address that the person needs
		facts, line = name+", "+at, ""
	}
	if channel == courier.SMS {
		link := ""
		if len(e.Pages) == 1 && w.briefAdvice != "" {
			link = " " + address + e.Pages[0].Path
		}
		return "", strings.TrimSpace(product + ": " + w.brief + " (" + facts + "). " + w.briefAdvice + link)
	}
	return w.subject + " - " + product, w.event + "\n\n" +
		"Service: " + product + "\nWhen: " + at + line + "\n" + label + ": " + name + e.formatComment() +
		e.formatPages(address) + "\n\n" + w.advice
}

// formatComment returns the comment, each line marked as a quotation: it may be any text.
func (e *Event) formatComment() string {
	if strings.TrimSpace(e.Comment) == "" {
		return ""
	}
	text := "\nComment:"
	if e.Kind == Quarantined {
		text = "\nReason:"
	}
	for line := range strings.Lines(strings.TrimSpace(e.Comment)) {
		text += "\n> " + replaceControls(strings.TrimRight(line, "\r\n"))
	}
	return text
}

// formatPages returns the pages, each with its link.
func (e *Event) formatPages(address string) string {
	text := ""
	for _, p := range e.Pages {
		text += "\n\n" + oneLine(p.Name) + "\n" + address + p.Path
	}
	return text
}

// deviceName returns a name of the device that contains known words only. A user agent may contain
// any text of an attacker, which would look like a text of the service.
func (e *Event) deviceName() string {
	browser, system := knownName(knownBrowsers(), e.Browser), knownName(knownSystems(), e.OS)
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

// knownName returns name if it is in list, otherwise the empty string.
func knownName(list []string, name string) string {
	if slices.Contains(list, name) {
		return name
	}
	return ""
}

func knownBrowsers() []string {
	return []string{
		useragent.Chrome, useragent.HeadlessChrome, useragent.Firefox, useragent.Safari, useragent.MobileSafari,
		useragent.Edge,
		useragent.Opera, useragent.OperaMini, useragent.OperaTouch, useragent.Vivaldi, useragent.SamsungBrowser,
		useragent.InternetExplorer, "curl", auth.CommandLine,
	}
}

func knownSystems() []string {
	return []string{
		useragent.Windows, useragent.WindowsPhone, useragent.Android, useragent.MacOS, useragent.IOS, useragent.Linux,
		useragent.FreeBSD, useragent.ChromeOS, useragent.BlackBerry, useragent.Harmony,
	}
}
