package audit

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/tollgate-dev/tollgate/core/each"
)

// sentences are what was done, by category and action: the verb in the past, its infinitive, and the
// rest, in which {x} is the detail x. A part in brackets is left out if it has no detail.
var sentences = map[string]string{
	"LOGIN_ATTEMPT":              "signed in|sign in|[with {factor} ][at {provider}]",
	"RISK_EVALUATION":            "got|get|a risk score of {riskScore} for the sign-in",
	"DEVICE_CHANGE new":          "signed in|sign in|on a new device",
	"DEVICE_CHANGE rename":       "named|name|a device [{name}][, which was {previousName}]",
	"DEVICE_CHANGE revoke":       "removed|remove|a device",
	"DEVICE_CHANGE trust":        "trusted|trust|a device",
	"SUSPICIOUS_ACTIVITY":        "was|be|flagged",
	"SUSPICIOUS_ACTIVITY verify": "entered|enter|the right code",
	"STEP_UP_ATTEMPT initiate":   "requested|request|a code [by {method}]",
	"STEP_UP_ATTEMPT resend":     "requested|request|the code again [by {method}]",
	"STEP_UP_ATTEMPT verify":     "entered|enter|the right code [by {method}]",
	"STEP_UP_ATTEMPT deliver":    "got|get|a code [by {method}]",
	"PUBLISHER_PROOF":            "proved|prove|to be the publisher [{domain}][{subject}]",
	"ACCESS_REFUSED":             "got|get|access[ to {operation}]",
	"ACCESS_REFUSED rename":      "named|name|a device of another person",
	"ACCESS_REFUSED revoke":      "removed|remove|a device of another person",
	"ACCESS_REFUSED trust":       "trusted|trust|a device of another person",
	"ACCESS_REFUSED sign_out":    "ended|end|a session of another person",
	"ACCESS_REFUSED terminated":  "ended|end|a session of another person",

	"ACCESS_DECISION": "called|call|[{tool} of ][{serverName} ][{count#time}]",

	"AUTHORIZATION allow":     "gave|give|[{clientName} ]access[ to {resource}]",
	"AUTHORIZATION refuse":    "got|get|access[ to {resource}][ with {clientName}]",
	"AUTHORIZATION token":     "got|get|a token[ for {resource}][ with {clientName}]",
	"AUTHORIZATION refresh":   "renewed|renew|a token[ for {resource}][ with {clientName}]",
	"AUTHORIZATION assertion": "got|get|a token[ for {resource}][ with {clientName}][ by the company {provider}]",
	"AUTHORIZATION revoke":    "ended|end|the access[ of {clientName}][ to {resource}]",
	"AUTHORIZATION document":  "published|publish|its document as a client",

	"CREDENTIAL_CHANGE password":        "changed|change|the password [of {key}]",
	"CREDENTIAL_CHANGE forgot_password": "requested|request|a link to set a password",
	"CREDENTIAL_CHANGE password_reset":  "set|set|the password with a link",
	"CREDENTIAL_CHANGE reset_link":      "made|make|a link to set the password [of {key}]",
	"CREDENTIAL_CHANGE mfa_enrol":       "set up|set up|an authenticator app [for {key}][{name}]",
	"CREDENTIAL_CHANGE mfa_add":         "added|add|the authenticator app [{name}]",
	"CREDENTIAL_CHANGE mfa_remove":      "removed|remove|the authenticator app [{name}]",
	"CREDENTIAL_CHANGE recovery_codes":  "made|make|new recovery codes",
	"CREDENTIAL_CHANGE mfa_activate":    "turned on|turn on|the authenticator app [of {key}]",
	"CREDENTIAL_CHANGE mfa_disable":     "turned off|turn off|the second factor [of {key}]",
	"CREDENTIAL_CHANGE passkey_add":     "added|add|the passkey [{name}]",
	"CREDENTIAL_CHANGE passkey_remove":  "removed|remove|the passkey [{name}]",
	"CREDENTIAL_CHANGE passkey_rename":  "named|name|a passkey [{name}]",

	"ACCOUNT_CHANGE setup":             "made|make|the first account[, {key}]",
	"ACCOUNT_CHANGE add":               "added|add|the account [{key}]",
	"ACCOUNT_CHANGE create":            "made|make|the account [{key} ]at the first company sign-in",
	"ACCOUNT_CHANGE invite":            "invited|invite|[{key}]",
	"ACCOUNT_CHANGE invitation":        "invited|invite|[{key} ]again",
	"ACCOUNT_CHANGE accept_invitation": "accepted|accept|the invitation",
	"ACCOUNT_CHANGE lock":              "locked|lock|the account [{key}]",
	"ACCOUNT_CHANGE unlock":            "unlocked|unlock|the account [{key}]",
	"ACCOUNT_CHANGE disable":           "disabled|disable|the account [{key}]",
	"ACCOUNT_CHANGE enable":            "enabled|enable|the account [{key}]",
	"ACCOUNT_CHANGE end_sessions":      "ended|end|the sessions [of {key}]",
	"ACCOUNT_CHANGE phone":             "changed|change|the telephone number [of {key}]",
	"ACCOUNT_CHANGE profile":           "changed|change|the name or telephone number [of {key}]",
	"ACCOUNT_CHANGE email":             "changed|change|the e-mail address [of {key}]",
	"ACCOUNT_CHANGE break_glass":       "admitted|admit|the password [of {key} ]in place of the company sign-in",
	"ACCOUNT_CHANGE apply":             "applied|apply|a state file",
	"ACCOUNT_CHANGE company_left":      "left|leave|the company[ {provider}]: sessions and tokens ended",
	"ACCOUNT_CHANGE company_logout":    "signed out|sign out|at the company[ {provider}]: sessions ended",
	"ACCOUNT_CHANGE groups":            "got|get|other grants by groups of the company[ {provider}][, added: {added}][, removed: {removed}]",
	"ACCOUNT_CHANGE link":              "linked|link|the company sign-in [{email} ][at {provider}]",
	"ACCOUNT_CHANGE unlink":            "unlinked|unlink|the company sign-in [{email} ][at {provider}]",
	"ACCOUNT_CHANGE grant_add":         "gave|give|[{userId} ][{service} ]the grant [{grant} over {resource}]",
	"ACCOUNT_CHANGE grant_confirm":     "confirmed|confirm|the grant [{grant} over {resource} ][of {userId}][of {service}]",
	"ACCOUNT_CHANGE grant_change":      "changed|change|the grant [{grant} over {resource} ][of {userId}][of {service}]",
	"ACCOUNT_CHANGE right_ask":         "asked|ask|for the grant [{grant} over {resource}][: {note}]",
	"ACCOUNT_CHANGE right_grant":       "granted|grant|the request [of {userId} ][to {grant} {resource}][: {note}]",
	"ACCOUNT_CHANGE right_decline":     "declined|decline|the request [of {userId} ][to {grant} {resource}][: {note}]",
	"ACCOUNT_CHANGE grant_remove":      "removed|remove|the grant [{grant} over {resource} ][from {userId}][from {service}]",
	"ACCOUNT_CHANGE provider_add":      "added|add|the company sign-in [{key}]",
	"ACCOUNT_CHANGE provider_change":   "changed|change|the company sign-in [{key}]",
	"ACCOUNT_CHANGE provider_put":      "set|set|the company sign-in [{key}]",
	"ACCOUNT_CHANGE provider_remove":   "removed|remove|the company sign-in [{key}]",
	"ACCOUNT_CHANGE provider_test":     "tested|test|the company sign-in [{key}]",
	"ACCOUNT_CHANGE publisher_add":     "allowed|allow|[{publisher} to publish {resource}]",
	"ACCOUNT_CHANGE publisher_change":  "changed|change|what [{publisher} may publish below {resource}]",
	"ACCOUNT_CHANGE publisher_remove":  "no longer allowed|stop allowing|[{publisher} to publish {resource}]",
	"ACCOUNT_CHANGE service_add":       "added|add|the service account [{key}]",
	"ACCOUNT_CHANGE service_change":    "changed|change|the service account [{key}]",
	"ACCOUNT_CHANGE service_put":       "set|set|the service account [{key}]",
	"ACCOUNT_CHANGE service_remove":    "removed|remove|the service account [{key}]",
	"ACCOUNT_CHANGE token_add":         "made|make|the token [{tokenName} ][of {service}]",
	"ACCOUNT_CHANGE token_remove":      "removed|remove|the token [{tokenName} ][of {service}]",

	"METHODS_CHANGE add":    "added|add|the method [{path} ][of {service}]",
	"METHODS_CHANGE import": "imported|import|the method [{path} ][of {service}]",
	"METHODS_CHANGE remove": "removed|remove|the method [{path} ][of {service}]",

	"REGISTRY_CHANGE publish":            "published|publish|[{serverName}][ {version}]",
	"REGISTRY_CHANGE publish review":     "submitted|submit|[{serverName} ][{version} ]for review",
	"REGISTRY_CHANGE request":            "requested|request|[{serverName}][ {version}][: {note}]",
	"REGISTRY_CHANGE edit":               "edited|edit|[{serverName}][ {version}]",
	"REGISTRY_CHANGE delete":             "deleted|delete|[{serverName}][ {version}][, which was {was status}]",
	"REGISTRY_CHANGE status":             "changed|change|the status of [{serverName}][ {version}]",
	"REGISTRY_CHANGE status active":      "restored|restore|[{serverName}][ {version}][, which was {was status}][: {statusMessage}]",
	"REGISTRY_CHANGE status deprecated":  "deprecated|deprecate|[{serverName}][ {version}][, which was {was status}][: {statusMessage}]",
	"REGISTRY_CHANGE status deleted":     "deleted|delete|[{serverName}][ {version}][, which was {was status}][: {statusMessage}]",
	"REGISTRY_CHANGE owner":              "set|set|the owner of [{serverName}][: {note}]",
	"REGISTRY_CHANGE approve":            "approved|approve|[{serverName}][ {version}][: {note}]",
	"REGISTRY_CHANGE approve_first":      "approved|approve|[{serverName}][ {version}] as the first of two[: {note}]",
	"REGISTRY_CHANGE review_mail":        "chose|choose|mail about reviews[: {note}]",
	"REGISTRY_CHANGE reject":             "rejected|reject|[{serverName}][ {version}][: {note}]",
	"REGISTRY_CHANGE request_changes":    "requested|request|changes of [{serverName}][ {version}][: {note}]",
	"REGISTRY_CHANGE quarantine":         "put|put|[{serverName} ][{version} ]in quarantine[: {note}]",
	"REGISTRY_CHANGE release":            "released|release|[{serverName} ][{version} ]from quarantine",
	"REGISTRY_CHANGE tools_record":       "recorded|record|the tools of [{serverName}][ {version}][: {part}]",
	"REGISTRY_CHANGE tools_change":       "found|find|other tools of [{serverName}][ {version}][: {part}]",
	"REGISTRY_CHANGE tools_ask":          "asked|ask|for the tools of [{serverName}][ {version}]",
	"REGISTRY_CHANGE tools_approve":      "approved|approve|the tools of [{serverName}][ {version}][: {part}]",
	"REGISTRY_CHANGE tools_reject":       "rejected|reject|the tools of [{serverName}][ {version}][: {part}]",
	"REGISTRY_CHANGE tools_seen":         "saw|see|the tool [{tool} ][of {serverName}], which is in no approved list",
	"REGISTRY_CHANGE operate":            "acted|act|as an operator",
	"REGISTRY_CHANGE import":             "imported|import|[{serverName}][ {version}][{versions#version}][, such as {first}]",
	"REGISTRY_CHANGE mirror_add":         "added|add|the mirror [{key} ][of {url}]",
	"REGISTRY_CHANGE mirror_change":      "changed|change|the mirror [{key}]",
	"REGISTRY_CHANGE mirror_put":         "set|set|the mirror [{key}]",
	"REGISTRY_CHANGE mirror_remove":      "removed|remove|the mirror [{key}]",
	"REGISTRY_CHANGE mirror_sync":        "started|start|the mirror [{key}]",
	"REGISTRY_CHANGE mirror_run":         "took over|take over|[{versions#version} ][by the mirror {mirror}][, such as {first}]",
	"REGISTRY_CHANGE mirror_added":       "copied|copy|[{serverName} ][{version} ][by the mirror {mirror}]",
	"REGISTRY_CHANGE mirror_replaced":    "replaced|replace|[{serverName} ][{version} ][by the mirror {mirror}]",
	"REGISTRY_CHANGE mirror_status":      "changed|change|the status of [{serverName} ][{version} ][by the mirror {mirror}]",
	"REGISTRY_CHANGE mirror_deleted":     "deleted|delete|[{serverName} ][{version} ][by the mirror {mirror}]",
	"REGISTRY_CHANGE mirror_submitted":   "submitted|submit|[{serverName} ][{version} ][by the mirror {mirror} ]for review",
	"REGISTRY_CHANGE review_rule_add":    "added|add|a rule of reviews [for {resource}]",
	"REGISTRY_CHANGE review_rule_remove": "removed|remove|a rule of reviews [for {resource}]",
	"REGISTRY_CHANGE view_token_add":     "made|make|the token [{token} ][of the view {view}]",
	"REGISTRY_CHANGE view_token_remove":  "removed|remove|the token [{token} ][of the view {view}]",
	"REGISTRY_CHANGE webhook_add":        "added|add|a webhook [to {host}]",
	"REGISTRY_CHANGE webhook_change":     "changed|change|the webhook [to {host}]",
	"REGISTRY_CHANGE webhook_redeliver":  "sent|send|events again [to {host}]",
	"REGISTRY_CHANGE webhook_remove":     "removed|remove|the webhook [to {host}]",
	"REGISTRY_CHANGE webhook_test":       "tested|test|the webhook [to {host}]",
}

// codes are the values that are names in the API.
var codes = map[string]string{
	"totp": "the authenticator app", "recovery_code": "a recovery code", "passkey": "a passkey", "link": "a link",
	"EMAIL_OTP": "e-mail", "SMS_OTP": "text message", "AUTHENTICATOR_APP": "the authenticator app", "PASSKEY": "a passkey",
	"COMPANY":             "the company sign-in",
	"invalid_credentials": "wrong e-mail address or password", "invalid_mfa": "wrong code",
	"account_locked": "the account is locked", "access_denied": "it is not theirs",
	"insufficient_trust": "the session is not verified enough",
}

// reasons are why events of a category failed, where the code of the reason says too little.
var reasons = map[string]string{
	"ACCESS_DECISION rule":               "an access rule",
	"ACCESS_DECISION default":            "no access rule allows it",
	"ACCESS_DECISION not_listed":         "the server is not listed",
	"ACCESS_DECISION disputed":           "programs disagree where the address leads",
	"ACCESS_DECISION quarantined":        "the server is in quarantine",
	"ACCESS_DECISION invalid_token":      "the token is not valid",
	"ACCESS_DECISION insufficient_trust": "the access rule requires more trust",
	"ACCESS_DECISION unreadable":         "the call could not be read",
	"ACCESS_DECISION tool_changed":       "the tool is not as it was approved",
	"ACCESS_DECISION header_mismatch":    "headers and body are about different calls",
}

// pattern returns the sentence of the event, or nothing for an action of a newer version.
func (e *Event) pattern() string {
	key := strings.TrimSuffix(string(e.Category)+" "+string(e.Action()), " ")
	if e.Details.Text("review") != "" && e.Details.Text("rule") == "" && sentences[key+" review"] != "" {
		key += " review" // a person decides about it
	}
	if of, ok := sentences[key+" "+e.Details.Text("status")]; ok {
		return of
	}
	if of, ok := sentences[key]; ok {
		return of
	}
	n := max(strings.LastIndex(key, "_"), len(e.Category)+1)
	if done, ok := objectVerbs[key[n:]]; ok {
		return done + "|the " + strings.ReplaceAll(key[len(e.Category)+1:n], "_", " ") + " [{key}]"
	}
	return ""
}

// objectVerbs are what is done with objects of any kind, in the past and as the infinitive. The action is
// the name of the kind, with _ between its words, and one of these.
var objectVerbs = map[string]string{
	"_add": "added|add", "_change": "changed|change", "_put": "set|set", "_remove": "removed|remove",
}

// Sentence returns what was done, or was tried and refused, without who did it: "deprecated
// com.example/wiki 1.0.0: use 2". name returns the name of the person with an id, and another text
// as it is.
func (e *Event) Sentence(name func(text string) string) string {
	parts := strings.SplitN(e.pattern(), "|", 3) //nolint:mnd // did, do and the rest
	if len(parts) < 3 {                          //nolint:mnd // there is none
		return strings.ReplaceAll(strings.ToLower(string(e.Category)+" "+string(e.Action())), "_", " ")
	}
	rest := strings.TrimSpace(e.fillIn(parts[2], name))
	if e.Success {
		if parts[0] == "changed" {
			rest += e.changes(name)
		}
		return strings.TrimSpace(parts[0] + " " + rest)
	}
	text := strings.TrimSpace("could not " + parts[1] + " " + rest)
	if reason := cmp.Or(reasons[string(e.Category)+" "+e.Details.Text("reason")], e.word("reason", name)); reason != "" {
		if !strings.Contains(reason, " ") { // a code
			reason = strings.ReplaceAll(reason, "_", " ")
		}
		text += ": " + reason
	}
	return text
}

// fillIn replaces the details of a pattern, and leaves out the optional parts without one.
func (e *Event) fillIn(pattern string, name func(string) string) string {
	var b strings.Builder
	for pattern != "" {
		plain, after, _ := strings.Cut(pattern, "[")
		part, rest, _ := strings.Cut(after, "]")
		text, _ := e.replace(plain, name)
		b.WriteString(text)
		if text, whole := e.replace(part, name); whole {
			b.WriteString(text)
		}
		pattern = rest
	}
	return b.String()
}

// replace replaces the details of a part, and reports whether there are all of them.
func (e *Event) replace(part string, name func(string) string) (text string, whole bool) {
	whole = true
	for {
		before, rest, found := strings.Cut(part, "{")
		text += before
		if !found {
			return text, whole
		}
		detail, after, _ := strings.Cut(rest, "}")
		value := e.word(detail, name)
		text, whole, part = text+value, whole && value != "", after
	}
}

// word returns a detail in words; nothing if the event does not have it. Of "was " and the name of
// a field it returns what the field was before the change, and of a count and "#" and a noun both.
func (e *Event) word(detail string, name func(string) string) string {
	if counted, noun, found := strings.Cut(detail, "#"); found {
		n := inWords(e.Details[counted], name)
		switch n {
		case "":
			return ""
		case "1":
			return n + " " + noun
		}
		return n + " " + noun + "s"
	}
	value := e.Details[detail]
	if field, before := strings.CutPrefix(detail, "was "); before {
		if pair, ok := e.Details.Inner(DetailChanges)[field].(List); ok && len(pair) > 0 {
			value = pair[0]
		}
	}
	return inWords(value, name)
}

// inWords returns a value in words; nothing for one that is empty.
func inWords(value Value, name func(string) string) string {
	switch v := value.(type) {
	case Text:
		if known, ok := codes[string(v)]; ok {
			return known
		}
		return name(string(v))
	case Number:
		return strconv.FormatFloat(float64(v), 'g', -1, 64)
	case Flag:
		return map[bool]string{true: "yes", false: "no"}[bool(v)]
	case List:
		return strings.Join(each.Map(v, func(one Value) string { return inWords(one, name) }), ", ")
	}
	return ""
}

// The bounds of what a sentence has of the fields that changed. The details have all.
const (
	maxFields = 3
	maxValue  = 60 // characters
)

// changes returns the fields that changed, from what to what: ": interval 1h → 2h; review on → off".
func (e *Event) changes(name func(string) string) string {
	all := e.Details.Inner(DetailChanges)
	var parts []string
	for i, field := range slices.Sorted(maps.Keys(all)) {
		if i == maxFields {
			parts = append(parts, "and "+strconv.Itoa(len(all)-maxFields)+" more")
			break
		}
		part := fieldWords(field)
		if pair, ok := all[field].(List); ok && len(pair) == 2 { //nolint:mnd // before and after
			part += " " + shortened(inWords(pair[0], name)) + " → " + shortened(inWords(pair[1], name))
		}
		parts = append(parts, part)
	}
	if len(parts) == 0 {
		return ""
	}
	return ": " + strings.Join(parts, "; ")
}

// shortened returns the beginning of a value; "none" for an empty one.
func shortened(value string) string {
	if all := []rune(value); len(all) > maxValue {
		return string(all[:maxValue]) + "…"
	}
	return cmp.Or(value, "none")
}

// fieldWords returns the name of a field in words: "managedBy" is "managed by".
func fieldWords(name string) string {
	var b strings.Builder
	for _, r := range name {
		if unicode.IsUpper(r) {
			b.WriteByte(' ')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
