package console_test

import (
	"fmt"
	"strings"

	"github.com/tollgate-dev/tollgate/test/oidcissuer"
)

// form is a form of a page. TestForms sends the forms in their order: later ones are about what
// earlier ones have added.
type form struct {
	page   string
	link   string   // the link of the page that leads to the form; empty if the form is on the page
	button string   // that sends it
	by     string   // the grant that it needs; empty if everybody who is signed in may send it
	good   []string // fields and values in turn
	wrong  []wrong
	notice string // what the page after it says; empty if the form is only sent with mistakes
	again  string // the problem when it is sent twice; empty if that does no harm
}

// wrong is a value of a field with a mistake.
type wrong struct{ field, value, problem string }

const (
	operate = "operate *"
	publish = "publish com.example/*"
	edit    = "edit com.example/*"
	review  = "review *"

	operator  = "/console/operator/"
	wrongName = "Name must have 1 to 40 lower-case letters"
	changed   = "The changes are saved."
	once      = "It is shown once."
)

// taken is the message for the name of another object of a kind.
func taken(kind, name string) string {
	return "Another " + kind + ` has the name "` + name + `" already; choose another name.`
}

func formsOfOperators() []form {
	pattern := wrong{"resource", "com example", "The pattern of servers"}
	return []form{
		{operator + "views?new=1", "", "Add this view", operate, []string{"name", "data", "include", "com.example/*", "access", "token"},
			[]wrong{{"name", "Data", wrongName}, {"include", "com example", "Include: resource pattern"}}, "The view is added.", taken("view", "data")},
		{operator + "views/data", "", "Save this view", operate, []string{"exclude", "com.example/x*"},
			[]wrong{{"exclude", "com example", "Exclude: resource pattern"}}, changed, ""},
		{operator + "views/data", "", "Make this token", operate, []string{"token", "team"},
			[]wrong{{"token", "Team Data", "Name of the token must have 1 to 40 lower-case letters"}}, once, "already"},
		{operator + "views", "", "Remove the view data", operate, nil, nil, "The view is removed.", "404"},
		{operator + "collections?new=1", "", "Add this collection", operate, []string{"name", "start", "sentence", "For all.", "servers", "com.example/a"},
			[]wrong{{"name", "Data", wrongName}, {"servers", "com.example/*", "Servers"}}, "It is added.", taken("collection", "start")},
		{operator + "collections/start", "", "Save this collection", operate, []string{"title", "Start here"},
			[]wrong{{"sentence", "", "Sentence"}}, changed, ""},
		{operator + "collections", "", "Remove the collection start", operate, nil, nil, "It is removed.", "404"},
		{operator + "mirrors?new=1", "", "Add this mirror", operate,
			[]string{"name", "public", "url", "https://registry.invalid", "interval", "24h", "include", "io.github.*"},
			[]wrong{
				{"url", "registry.example.com", "Address must be an absolute URL"}, {"name", "A", wrongName},
				{"interval", "soon", "Interval must be a duration, for example 90m."},
			}, "The mirror is added.", taken("mirror", "public")},
		{operator + "mirrors/public", "", "Save this mirror", operate, []string{"interval", "12h0m0s", "lenient", "true"},
			[]wrong{{"interval", "1s", "Interval must be from 1m0s"}}, changed, ""},
		{operator + "mirrors/public", "", "Read it now", operate, nil, nil, "It is read soon.", ""},
		{operator + "mirrors/public", "", "Remove with its servers the mirror public", operate, nil, nil, "The mirror is removed.", "404"},
		{operator + "webhooks?new=1", "", "Add this webhook", operate,
			[]string{"url", "http://127.0.0.1:1/in?key=hunter2", "resource", "com.example/*", "events", "published"},
			[]wrong{{"url", "http://hooks.example.com/in", "Address must begin with https://"}, pattern}, once, ""},
		{operator + "webhooks", "http://127.0.0.1:1/…", "Save this webhook", operate, []string{"resource", "org.example/*", "events", "status"},
			[]wrong{pattern}, changed, ""},
		{operator + "webhooks", "http://127.0.0.1:1/…", "Send a test", operate, nil, nil, "409", "409"},
		{operator + "webhooks", "", "Remove the webhook of 127.0.0.1:1", operate, nil, nil, "The webhook is removed.", "404"},
		{operator + "policies?new=1", "", "Add this policy", operate, []string{
			"method", "dns", "pattern", "com.example/*", "domain", "example.com", "owner", "ada@example.com", "expiresAt", "2199-01-31",
		}, []wrong{
			{"domain", "", "Domain"}, {"expiresAt", "soon", "such as 2027-01-31"}, {"expiresAt", "2001-01-31", "End"},
			{"owner", "nobody@example.com", "Owner has no account."}, {"pattern", "com example", "pattern"},
		}, "The policy is added.", ""},
		{operator + "policies?new=1", "", "Add this policy", operate,
			[]string{"method", "github-oidc", "pattern", "com.example/*", "claims", "repository=acme/tools\nref=refs/heads/main", "actions", "status"},
			[]wrong{
				{"claims", "repository", "Claims must be of the form name=value, each name once."},
				{"claims", "ref=refs/heads/main\nref=refs/heads/x", "Claims must be of the form name=value, each name once."},
			}, "The policy is added.", ""},
		{operator + "policies", "", "Remove the policy for com.example/*", operate, nil, nil, "The policy is removed.", "404"},
		{operator + "review-rules?new=1", "", "Add this rule", operate,
			[]string{"resource", "com.example/*", "publisher", "ada@example.com", "when", "any"},
			[]wrong{pattern, {"publisher", "x@example.com", "Publisher has no account."}}, "The rule is added.", ""},
		{operator + "review-rules", "", "Remove the rule for com.example/*", operate, nil, nil, "The rule is removed.", "404"},
		{operator + "service-accounts?new=1", "", "Add this service account", operate,
			[]string{"name", "deploy", "description", "Publishes <b>releases</b>."},
			[]wrong{{"name", "Deploy", wrongName}}, "The service account is added.", taken("service account", "deploy")},
		{operator + "service-accounts/deploy", "", "Save this service account", operate, []string{"description", "Publishes."}, nil, changed, ""},
		{operator + "service-accounts/deploy", "", "Add this grant", operate, []string{"resource", "com.example/*"},
			[]wrong{pattern}, "The grant is added.", ""},
		{operator + "service-accounts/deploy", "", "Add this workload", operate, []string{
			"issuer", "https://token.actions.githubusercontent.com", "subject", "repo:acme/tools:*", "claims", "ref=refs/heads/main",
			"workloadScopes", "registry:publish",
		}, []wrong{{"issuer", "https://evil.example", "https://evil.example"}}, "repo:acme/tools:*", ""},
		{operator + "service-accounts/deploy", "", "Remove the workload repo:acme/tools:*", operate, nil, nil, changed, ""},
		{operator + "service-accounts/deploy", "", "Make this token", operate, []string{"name", "CI", "scopes", "registry:publish"},
			[]wrong{{"name", "", "Name"}}, once, ""},
		{operator + "service-accounts", "", "Remove the service account deploy", operate, nil, nil, "The service account is removed.", "404"},
		{operator + "rights?new=1", "", "Add this grant", operate,
			[]string{"email", "ada@example.com", "action", "edit", "resource", "com.example/*"},
			[]wrong{{"email", "nobody@example.com", "E-mail address has no account."}, pattern, {"action", "operate", "operate"}},
			"The grant is added.", ""},
		{operator + "rights", "", "Remove the grant to edit com.example/* of ada@example.com", operate, nil, nil, "The grant is removed.", "404"},
	}
}

func formsOfAccess(provider *oidcissuer.Provider) []form {
	return []form{
		{operator + "access?new=1&step=3", "", "Add this rule", operate, []string{"name", "other", "subjects", "everyone", "servers", "*"}, nil,
			"The rule is added.", taken("access rule", "other")}, // so that no change of the next one locks everybody out
		{operator + "access?new=1&step=3", "", "Add this rule", operate, []string{
			"name", "platform", "order", "10", "effect", "allow", "subjects", "person:bea@example.com\ngroup:acme/<b>dev</b>",
			"servers", "com.example/*", "tools", "search\nread_*", "networks", "10.0.0.0/8", "expiresAt", "2099-03-01", "minTrust", "LIMITED_TRUST",
		}, []wrong{
			{"name", "A", "Name must have"}, {"order", "x", "Order must be a whole number from 0 to 10000."},
			{"subjects", "everyone\nada", "Subjects, entry 2, is wrong: must be person:EMAIL"},
			{"servers", "com example", "Servers, entry 1, is wrong"}, {"tools", "a*b", "Tools, entry 1, is wrong"},
			{"networks", "ten", "Networks, entry 1, must be a network"}, {"expiresAt", "tomorrow", "End must be an RFC 3339 time"},
			{"effect", "deny", "Least trust is for rules that allow"},
		}, "Allows bea@example.com and people of acme/<b>dev</b> to call the tools search and read_* of com.example/*," +
			" at limited trust or above, from 10.0.0.0/8, until 1 March 2099.", taken("access rule", "platform")},
		{operator + "access?new=1", "", "Next", operate, []string{"subjects", "everyone"}, []wrong{{"subjects", "x", "Subjects, entry 1, is wrong"}},
			"Allows everybody with a valid token to use …", ""},
		{operator + "access?new=1&step=3", "", "Try it", operate, []string{"subjects", "everyone", "servers", "*", "tools", "x"},
			[]wrong{{"networks", "ten", "Networks, entry 1"}}, "This instance decided no call", ""},
		{operator + "access/rules/platform?step=3", "", "Back", operate, nil, nil, "com.example/*", ""},
		{operator + "access/rules/platform?step=3", "", "Save this rule", operate, []string{"methods", "tools/list", "expiresAt", "", "networks", ""},
			[]wrong{{"order", "10001", "Order must be a whole number"}}, changed, ""},
		{operator + "access", "", "Remove the rule platform", operate, nil, nil, "The rule is removed.", "404"},
		{operator + "providers?new=1", "", "Add this provider", operate, []string{
			"name", "acme", "displayName", "Acme", "issuer", provider.URL, "clientId", provider.ClientID, "clientSecret", provider.Secret,
			"domains", "acme.example\nother.example", "create", "true", "networks", "127.0.0.0/8", "groupGrants", "devs=publish:com.acme/*",
		}, []wrong{
			{"name", "Acme", "Name must have"}, {"issuer", "acme", "Issuer must be a URL"}, {"clientId", " ", "Client ID must have"},
			{"scopes", "email", "Scopes must have openid."}, {"recheck", "1s", "Check again every must be a duration"},
			{"domains", "acme.example\nacme", "E-mail domains, entry 2, must be the domain"},
			{"groupGrants", "devs=publish", "Grants by groups, entry 1, must be GROUP=ACTION:RESOURCE"},
			{"networks", "ten", "Networks, entry 1, must be a network"}, {"clientSecret", "a\tb", "Client secret must have"},
			{"enforce", "true", "Passwords: no person who can operate"},
		}, "The provider is added.", taken("provider", "acme")},
		{operator + "providers?new=1", "", "Test", operate, []string{"name", "other", "issuer", provider.URL, "clientId", "x", "networks", "127.0.0.0/8"},
			[]wrong{{"issuer", "acme", "Issuer must be a URL"}}, "keys OK", ""},
		{operator + "providers/acme", "", "Save this provider", operate, []string{"displayName", "Acme Inc."},
			[]wrong{{"issuer", provider.URL + "?", "Issuer must"}}, changed, ""},
		{operator + "providers/acme", "", "Test", operate, nil, nil, "discovery OK", ""},
		{operator + "providers/acme", "", "Remove the provider acme", operate, nil, nil, "The provider is removed.", "404"},
		{operator + "people?new=1", "", "Invite", operate,
			[]string{"email", "ivy@example.com", "name", "<b>Ivy</b> Ünal", "actions", "publish", "resource", "com.example/*"},
			[]wrong{
				{"email", "ada", "E-mail address must be an e-mail address."}, {"name", "", "Name must not be empty."},
				{"email", "a@example.com, b@example.com", "Name is that of one person: write Name <address> for each."},
				{"email", strings.Repeat("x\n", 3) + manyAddresses(51), "E-mail address must have at most 50 addresses."}, {"email", " ; ", "E-mail address must not be empty."},
				{"resource", "", "The pattern of servers"}, {"email", "ada@example.com", "This e-mail address has an account."},
			}, once, "This e-mail address has an account."},
		{operator + "people/ada@example.com", "", "Save this person", operate, []string{"name", "Ada", "phone", "+4930123456"},
			[]wrong{{"name", " ", "Name must not be empty."}, {"phone", "123", "Telephone must be an international number"}}, changed, ""},
		{operator + "people/ada@example.com", "", "Add this grant", operate, []string{"action", "publish", "resource", "org.example/*"},
			[]wrong{{"resource", "com example", "The pattern of servers"}}, "The grant is added.", ""},
		{operator + "people/ada@example.com", "", "Remove the grant to publish org.example/*", operate, nil, nil, "The grant is removed.", "404"},
		{operator + "people/ada@example.com", "", "Link for a new password", operate, nil, nil, once, ""},
	}
}

// manyAddresses returns n addresses.
func manyAddresses(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%d@example.com\n", i)
	}
	return b.String()
}

func formsOfPeople() []form {
	const long = "The reason must have at most 500 characters."
	return []form{
		{"/console/account", "", "Save the name of Firefox on Linux", "", []string{"name", "Laptop"},
			[]wrong{{"name", strings.Repeat("x", 65), "Name must have at most 64 characters"}}, "The device is renamed.", ""},
		{"/console/account", "", "Save the choice", review, []string{"mail", "daily"}, nil, "Mail about reviews comes as you have chosen.", ""},
		{"/console/account/tokens", "", "Make this token", "", []string{"name", "CI", "scopes", "registry:read"},
			[]wrong{
				{"networks", "here", "Networks must not have"}, {"expiresAt", "2001-01-01", "End must be 1 to 365 days from now."},
			}, once, ""},
		{"/console/request", "", "Request it", "", []string{"serverName", "com.vendor/maps", "reason", "We draw <i>maps</i>."},
			[]wrong{
				{"serverName", "maps", "Server must be a name, such as io.github.acme/tools, or the address of a server.json."},
				{"reason", strings.Repeat("é", 501), long},
			}, "", ""},
		{"/console/rights?new=1", "", "Ask for it", "", []string{"action", "edit", "resource", "com.example/*", "reason", "We draw <i>maps</i>."},
			[]wrong{{"resource", "com example", "The pattern of servers"}, {"reason", strings.Repeat("é", 501), long}},
			"The request waits for an operator.", "You have asked for this already"},
		{"/console/operator/requests", "eve@example.com", "Decline it", operate, []string{"comment", "Whose is it?"},
			[]wrong{{"comment", " ", "Comment is required"}}, "The request is declined.", "Somebody has decided"},
		{"/console/publish", "", "Publish", publish, []string{"document", goodDocument},
			[]wrong{
				{"document", "{\n  \"name\": 1,\n}", "Line 3, column 1 Body is not valid JSON"},
				{"document", " \n", "Paste a document, or choose a file."}, {"document", documentWithMistakes, "The document breaks 3 rules"},
			}, "Weather for <b>everybody</b>", "already"},
		{"/console/quarantine", "", "Put in quarantine", review,
			[]string{"name", "com.example/weather", "reason", "It sends <b>data</b> elsewhere."},
			[]wrong{
				{"name", "com.example/unknown", "Server: the registry has no such server."},
				{"version", "9.9.9", "Version: the registry has no such version of this server."},
				{"reason", " ", "The reason must say why, in words."},
			}, "It is in quarantine, and listed nowhere.", "quarantine"},
		{"/console/quarantine", "", "Release com.example/weather", review, nil, nil, "It is released, and listed as before.", "404"},
		{"/console/own/com.example/weather?version=1.0.0", "", "Change the status", edit,
			[]string{"status", "deprecated", "message", "Use <i>another</i>."},
			[]wrong{{"status", "active", "Message is allowed with deprecated and deleted only"}}, "The status is changed.", "No changes to apply"},
		{"/console/own/trusted/add/github", "", "Allow it", publish,
			[]string{"claims.repository", "acme/tools", "claims.ref", "refs/heads/release", "pattern", "com.example/*", "expiresAt", "2199-01-31"},
			[]wrong{{"claims.repository", "acme/*", `Repository has a "*"`}}, "It is allowed.", ""},
	}
}
