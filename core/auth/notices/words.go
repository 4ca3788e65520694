package notices

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/mileusna/useragent"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/ports/courier"
)

// wording is the text of the messages of one kind.
type wording struct {
	Subject     string
	Event       string // what happened, as the first sentence of an e-mail
	Advice      string // what to do about it
	Brief       string // the event for SMS
	BriefAdvice string // the advice for SMS, optional
}

// words has the text of each kind, by its name.
//
//go:embed words.json
var words []byte

// wordings returns the texts of the kinds.
var wordings = sync.OnceValue(func() (all map[Kind]wording) {
	_ = json.Unmarshal(words, &all) // no error: a test reads each text
	return all
})

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

// replaceControls returns a text with spaces for control characters, the ends of lines, and what changes the
// direction of what follows.
func replaceControls(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Bidi_Control) {
			return ' '
		}
		return r
	}, text)
}

// isReview reports whether the event is of a review or of quarantine.
func (e *Event) isReview() bool {
	return slices.Contains([]Kind{
		ReviewsWaiting, ReviewApproved, ReviewRejected, ChangesRequested, ToolsApproved, ToolsRejected, Quarantined, ToolsChanged,
		RightGranted, RightDeclined,
	}, e.Kind)
}

// source returns the label and the name of what the event is about: a device, a publisher, a server
// or a token.
func (e *Event) source() (label, name string) {
	switch {
	case e.Kind == BreakGlassOpened:
		return "Person", oneLine(e.Servers)
	case e.Token != "":
		return "Token", oneLine(e.Token)
	case e.Kind == RightGranted, e.Kind == RightDeclined:
		return "Right", oneLine(e.Servers)
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
	w := wordings()[e.Kind]
	at := formatTime(e.At)
	from := "unknown"
	if e.Address.IsValid() {
		from = e.Address.WithZone("").String() // a zone may be any text
	}
	label, name := e.source()
	facts, line := name+", "+from+", "+at, "\nIP address: "+from
	if e.isReview() || e.Kind == TokenEnds || e.Kind == BreakGlassOpened { // which has no address that the person needs
		facts, line = name+", "+at, ""
	}
	if channel == courier.SMS {
		link := ""
		if len(e.Pages) == 1 && w.BriefAdvice != "" {
			link = " " + address + e.Pages[0].Path
		}
		return "", strings.TrimSpace(product + ": " + w.Brief + " (" + facts + "). " + w.BriefAdvice + link)
	}
	return w.Subject + " - " + product, w.Event + "\n\n" +
		"Service: " + product + "\nWhen: " + at + line + "\n" + label + ": " + name + e.formatComment() +
		e.formatPages(address) + "\n\n" + w.Advice
}

func formatTime(t time.Time) string { return t.UTC().Format("2 January 2006, 15:04 UTC") }

// LinkText is what a message with a link says, beside its words. All but the URL is for Invitation.
type LinkText struct {
	URL       string
	By, Email string   // the name and the address of who invites; empty for an operator command
	Rights    []string // what the person may do
	Until     time.Time
}

// maxRights is how many rights a message names.
const maxRights = 20

// FormatLink returns the subject and the text of a message with a link: of Invitation or PasswordLink. A name has no
// place in the subject, which is a header of the mail.
func FormatLink(k Kind, product string, l LinkText) (subject, text string) {
	by, rights, named := oneLine(cmp.Or(l.By, "An operator")), "", l.Rights
	if l.Email != "" {
		by += " (" + l.Email + ")"
	}
	if more := len(named) - maxRights; more > 0 {
		named = append(slices.Clone(named[:maxRights]), strconv.Itoa(more)+" more")
	}
	if len(named) > 0 {
		rights = ": you may " + strings.Join(named, ", ")
	}
	w := wordings()[k]
	event := strings.NewReplacer("{by}", by, "{product}", product, "{rights}", rights, "{until}", formatTime(l.Until)).Replace(w.Event)
	return product + ": " + w.Subject, event + "\n\n" + l.URL + "\n\n" + w.Advice
}

// formatComment returns the comment, each line marked as a quotation: it may be any text.
func (e *Event) formatComment() string {
	if strings.TrimSpace(e.Comment) == "" {
		return ""
	}
	text := cmp.Or(map[Kind]string{Quarantined: "\nReason:", ToolsChanged: "\nTools:"}[e.Kind], "\nComment:")
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
