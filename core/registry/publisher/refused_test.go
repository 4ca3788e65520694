package publisher_test

import (
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestRefusedConcerns checks whom a refused proof concerns, and which names it suggests to them.
func TestRefusedConcerns(t *testing.T) {
	const gitHub, gitLab = "https://github.example", "https://gitlab.example"
	rules := publisher.Rules{Issuers: []string{gitLab}, GitHubIssuer: gitHub}
	policies := func(drafts ...publisher.Draft) (list []publisher.Policy) {
		for _, d := range drafts {
			d.Pattern = "com.example/*"
			p, err := publisher.NewPolicy(d, rules, time.Date(2026, time.November, 21, 12, 0, 0, 0, time.UTC))
			must.Succeed(t, err)
			list = append(list, p)
		}
		return list
	}
	bound := policies(publisher.Draft{Method: "github-oidc", Claims: map[string]string{"repository": "acme/tools"}})
	bound[0].Bound = map[string]string{"repository_owner_id": "42"}
	job := audit.Details{
		"method": audit.Text("github-oidc"), "issuer": audit.Text(gitHub), "subject": audit.Text("repo:acme/site:ref:x"),
		"holds": audit.Text("true"), "claims": audit.Details{
			"repository": audit.Text("acme/site"), "repository_owner": audit.Text("acme"), "repository_owner_id": audit.Text("7"),
		},
	}
	of := func(method, subject string) audit.Details {
		return audit.Details{
			"method": audit.Text(method), "issuer": audit.Text(gitLab), "subject": audit.Text(subject), "holds": audit.Text("true"),
		}
	}
	domain := func(method string) audit.Details {
		return audit.Details{"method": audit.Text(method), "domain": audit.Text("example.com"), "holds": audit.Text("true")}
	}
	for _, test := range []struct {
		name     string
		details  audit.Details
		grants   []string
		policies []publisher.Policy
		want     string // the pattern; "no" if it does not concern them
	}{
		{"a domain and its names", domain("dns"), []string{"com.example/*"}, nil, "com.example/*"},
		{"a domain and a part of its names", domain("http"), []string{"com.example/a*"}, nil, "com.example/a*"},
		{"a domain and everything", domain("dns"), []string{"*"}, nil, "com.example/*"},
		{"a domain and names below it", domain("dns"), []string{"com.example.sub/*"}, nil, "com.example.sub/*"},
		{"a site does not prove names below it", domain("http"), []string{"com.example.sub/*"}, nil, "no"},
		{"a domain and other names", domain("dns"), []string{"com.examples/*"}, nil, "no"},
		{"a domain that is allowed by now", domain("dns"), []string{"com.example/*"}, policies(publisher.Draft{
			Method: "dns", Domain: "example.com",
		}), "no"},
		{"a job that is allowed by now", job, []string{"com.example/*"}, policies(publisher.Draft{
			Method: "github-oidc", Claims: map[string]string{"repository": "acme/site"},
		}), "no"},
		{"an owner at GitHub", job, []string{"io.github.acme/*"}, nil, "io.github.acme/*"},
		{"nobody knows whose it is", job, []string{"com.example/*"}, nil, "no"},
		{"nothing may be published", job, nil, nil, "no"},
		{"everything may be published", job, []string{"*"}, nil, "io.github.acme/*"},
		{"another repository of an owner", job, []string{"com.example/*"}, policies(publisher.Draft{
			Method: "github-oidc", Claims: map[string]string{"repository": "acme/tools"},
		}), "com.example/*"},
		{"a pattern of subjects", job, []string{"com.example/*"}, policies(publisher.Draft{
			Method: "github-oidc", Subject: "repo:acme/tools:*",
		}), "com.example/*"},
		{"an owner with a longer name", job, []string{"com.example/*"}, policies(publisher.Draft{
			Method: "github-oidc", Claims: map[string]string{"repository": "acme-inc/tools"},
		}), "no"},
		{"an owner who took the name of another", job, []string{"com.example/*"}, bound, "no"},
		{"another issuer", of("oidc", "repo:acme/site:ref:x"), []string{"com.example/*"}, bound, "no"},
		{"a service account", of("oidc", "system:serviceaccount:build:ci"), []string{"com.example/*"}, policies(publisher.Draft{
			Method: "oidc", Issuer: gitLab, Subject: "system:serviceaccount:build:release",
		}), "com.example/*"},
		{"a service account elsewhere", of("oidc", "system:serviceaccount:test:ci"), []string{"com.example/*"}, policies(publisher.Draft{
			Method: "oidc", Issuer: gitLab, Subject: "system:serviceaccount:build:release",
		}), "no"},
		{"a subject without parts", of("oidc", "ci"), []string{"com.example/*"}, policies(publisher.Draft{
			Method: "oidc", Issuer: gitLab, Subject: "ci2",
		}), "no"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, ok := publisher.ReadRefused(audit.Event{Category: audit.PublisherProof, Details: test.details})
			if !ok {
				t.Fatal("the event is no refused proof")
			}
			var grants []registry.Pattern
			for _, g := range test.grants {
				p, err := registry.ParsePattern(g)
				must.Succeed(t, err)
				grants = append(grants, p)
			}
			got := "no"
			if r.Concerns(grants, test.policies) {
				got = r.Draft.Pattern
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestReadRefusedLeavesOut checks that what anybody can send, and what is of no publisher, is left out.
func TestReadRefusedLeavesOut(t *testing.T) {
	held := audit.Details{"method": audit.Text("dns"), "domain": audit.Text("example.com"), "holds": audit.Text("true")}
	if _, ok := publisher.ReadRefused(audit.Event{Details: held}); !ok {
		t.Error("a proof that holds is left out")
	}
	for name, e := range map[string]audit.Event{
		"success":  {Success: true, Details: held},
		"forged":   {Details: audit.Details{"method": audit.Text("dns"), "domain": audit.Text("example.com")}},
		"workload": {Details: audit.Details{"method": audit.Text("oidc"), "holds": audit.Text("true"), "service": audit.Text("ci")}},
		"newer":    {Details: audit.Details{"method": audit.Text("fax"), "holds": audit.Text("true")}},
	} {
		if _, ok := publisher.ReadRefused(e); ok {
			t.Errorf("%s is shown", name)
		}
	}
}
