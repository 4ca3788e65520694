package operator

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
)

func newPolicy(p cli.Process) *cobra.Command {
	return cli.NewGroup("publisher", "Manage who may publish without a person: domains and CI jobs",
		newPolicyAdd(p), newPolicyList(p), newRemoval(p, "policies", "Remove a policy of a publisher and end its tokens",
			"publisher remove 3f30e8b6-7d1c-4c0e-9c53-0d9f4a1f2b3c"))
}

// policyFlags are the flags that describe a policy.
type policyFlags struct {
	draft     publisher.Draft
	claims    []string
	expiresAt string
}

func (f *policyFlags) addTo(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.draft.Method, "method", "", "proof: dns, http, oidc or github-oidc")
	flags.StringVar(&f.draft.Pattern, "pattern", "", "servers: a name, a prefix that ends in *, or *")
	flags.StringSliceVar(&f.draft.Actions, "action", nil,
		"allowed action: publish or status; may be repeated (default publish)")
	flags.StringVar(&f.draft.Domain, "domain", "", "domain, for dns and http")
	flags.StringVar(&f.draft.KeyFingerprint, "key-fingerprint", "",
		"the only key of the domain that is admitted: ed25519 or ecdsap384, a colon and the key in base64, or at least its first 8 characters")
	flags.StringVar(&f.draft.Issuer, "issuer", "", "issuer, for oidc")
	flags.StringVar(&f.draft.Subject, "subject", "",
		"subject of the ID token, for oidc and github-oidc; * stands for any characters except / and :, at the end for the rest")
	flags.StringArrayVar(&f.claims, "claim", nil,
		"claim NAME=VALUE that the ID token must have, for oidc and github-oidc; may be repeated")
	flags.StringVar(&f.expiresAt, "expires-at", "",
		"time at which the policy ends, for example 2027-01-31T12:00:00Z; default: it does not end")
	cli.RequireFlags(c, "method", "pattern")
	cli.CompleteValues(c, "method", "dns", "http", "oidc", "github-oidc")
	cli.CompleteValues(c, "action", "publish", "status")
}

// readDraft returns the policy that the flags describe.
func (f *policyFlags) readDraft() (publisher.Draft, error) {
	d := f.draft
	for _, claim := range f.claims {
		name, value, found := strings.Cut(claim, "=")
		if !found || name == "" {
			return publisher.Draft{}, fmt.Errorf("--claim: %q is not of the form NAME=VALUE", claim)
		}
		if d.Claims == nil {
			d.Claims = map[string]string{}
		}
		if _, twice := d.Claims[name]; twice {
			return publisher.Draft{}, fmt.Errorf("--claim: %s is given twice", name)
		}
		d.Claims[name] = value
	}
	if f.expiresAt != "" {
		t, err := time.Parse(time.RFC3339, f.expiresAt)
		if err != nil {
			return publisher.Draft{}, fmt.Errorf(
				"--expires-at: %q is not a time such as 2027-01-31T12:00:00Z", f.expiresAt)
		}
		d.ExpiresAt = t
	}
	return d, nil
}

func newPolicyAdd(p cli.Process) *cobra.Command {
	f := &policyFlags{}
	c := &cobra.Command{
		Use:   "add --method M --pattern PATTERN [--domain D | --claim NAME=VALUE ...]",
		Short: "Allow a domain or a CI job to publish without a person",
		Long: "Add a policy: a client that proves the domain, or has an ID token with the subject\n" +
			"and claims, may publish servers that the pattern selects. The pattern of a policy\n" +
			"by domain must be within the domain: com.example/* for example.com.\n\n" +
			"The policy is in force from the next request on and depends on no person. The\n" +
			"API creates policies that end with the grants of the person who created them.",
		Example: "  tollgate publisher add --method dns --domain example.com --pattern 'com.example/*'\n" +
			"  tollgate publisher add --method github-oidc --claim repository=acme/tools --claim ref=refs/heads/main --pattern 'com.example/*'",
	}
	f.addTo(c)
	var draft publisher.Draft
	c.PreRunE = func(*cobra.Command, []string) (err error) {
		draft, err = f.readDraft()
		return err
	}
	return newTableCommand(p, c, func(r run) (cli.Table, error) {
		row := policyRow{
			Method: draft.Method, Pattern: draft.Pattern, Actions: draft.Actions, Domain: draft.Domain,
			KeyFingerprint: draft.KeyFingerprint, Issuer: draft.Issuer, Subject: draft.Subject, Claims: draft.Claims,
			ExpiresAt: formatOptionalTime(draft.ExpiresAt),
		}
		var added policyRow
		err := r.send(http.MethodPost, at("policies"), row.draft(), &added)
		return policyTable(r, []policyRow{added}), err
	})
}

func newPolicyList(p cli.Process) *cobra.Command {
	return newTableCommand(p, &cobra.Command{
		Use:     "list",
		Short:   "List the policies of publishers",
		Example: "  tollgate publisher list --output json",
	}, func(r run) (cli.Table, error) {
		list, err := listOf[policyRow](r, at("policies"), "policies", nil)
		return policyTable(r, list), err
	})
}

// policyRow is a policy in the output of commands.
type policyRow struct {
	ID             string            `json:"id"                       column:"ID"`
	Method         string            `json:"method"                   column:"METHOD"`
	Pattern        string            `json:"pattern"                  column:"PATTERN"`
	Actions        wordList          `json:"actions"                  column:"ACTIONS"`
	Proof          string            `json:"-"                        column:"PROOF"`
	State          string            `json:"state"                    column:"STATE"`
	CreatedBy      string            `json:"createdBy"                column:"CREATED BY"`
	LastUsedAt     stamp             `json:"lastUsedAt,omitempty"     column:"LAST USED"`
	Domain         string            `json:"domain,omitempty"`
	KeyFingerprint string            `json:"keyFingerprint,omitempty"`
	Issuer         string            `json:"issuer,omitempty"`
	Subject        string            `json:"subject,omitempty"`
	Claims         map[string]string `json:"claims,omitempty"`
	ExpiresAt      stamp             `json:"expiresAt,omitempty"`
	CreatedAt      stamp             `json:"createdAt"`
}

// describeProof returns what a policy admits, for a table.
func (p *policyRow) describeProof() string {
	var words []string
	for _, word := range []string{p.Domain, p.KeyFingerprint, p.Subject} {
		if word != "" {
			words = append(words, word)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Claims)) {
		words = append(words, name+"="+p.Claims[name])
	}
	return strings.Join(words, " ")
}

// draft returns the members of a new policy for the API: those that are not empty.
func (p *policyRow) draft() map[string]any {
	draft := map[string]any{}
	for name, value := range map[string]string{
		"method": p.Method, "pattern": p.Pattern, "domain": p.Domain, "keyFingerprint": p.KeyFingerprint,
		"issuer": p.Issuer, "subject": p.Subject, "expiresAt": string(p.ExpiresAt),
	} {
		if value != "" {
			draft[name] = value
		}
	}
	if p.Actions != nil {
		draft["actions"] = p.Actions
	}
	if p.Claims != nil {
		draft["claims"] = p.Claims
	}
	return draft
}

// policyTable completes policies of the API with what only the table shows.
func policyTable(r run, list []policyRow) cli.Table {
	for i := range list {
		list[i].Proof, list[i].CreatedBy = list[i].describeProof(), r.emailOf(list[i].CreatedBy)
	}
	return cli.ListTable(list)
}
