// Package service is the model of service accounts: callers that are no people, with grants of
// their own. Their tokens are in package auth; package delegating has the use cases.
package service

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/fields"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/core/scope"
)

// Name is the name of a service account. It has the form of the name of a view.
type Name string

// Holder returns the account as the holder of grants.
func (n Name) Holder() registry.Holder { return registry.ServiceHolder(string(n)) }

// ParseName returns the name that s contains. It returns fault.Invalid for a text of another form.
func ParseName(s string) (Name, error) {
	return Name(s), fields.CheckNameOf("name", s)
}

// State says whether an account may do anything.
type State string

// The states.
const (
	Active   State = "active"
	Disabled State = "disabled" // its tokens are refused
)

// Account is a service account. New makes one.
type Account struct {
	Name        Name
	Description string
	State       State
	Workloads   []Workload
	ManagedBy   string // the owner of the file that manages it; empty if it was made by hand
	CreatedAt   time.Time
}

// Object returns the account for the audit log.
func (a *Account) Object() audit.Object {
	var workloads audit.List
	for _, w := range a.Workloads {
		workload := audit.Details{"scopes": audit.Text(w.Scopes.String())}
		workload.Set("issuer", w.Identity.Issuer)
		workload.Set("subject", w.Identity.Subject.String())
		workload.Set("audience", w.Audience)
		for name, value := range w.Identity.Claims {
			workload["claims."+name] = audit.Text(value)
		}
		workloads = append(workloads, workload)
	}
	return audit.Object{Kind: "serviceAccount", Key: string(a.Name), Fields: audit.Details{
		"description": audit.Text(a.Description), "state": audit.Text(a.State), "workloads": workloads,
		"managedBy": audit.Text(a.ManagedBy),
	}}
}

// Workload admits ID tokens that an issuer gives to jobs or machines.
type Workload struct {
	Identity publisher.Policy // what a token must be like; only the fields of identities are set
	Audience string           // one of those of the token; empty for that of the service
	Scopes   scope.Set        // of the tokens that the workload gets
}

// Admits reports whether the workload admits an ID token with the audience of the workload.
func (w *Workload) Admits(t publisher.Identity) bool {
	return w.Identity.Compare(&publisher.Proof{Method: w.Identity.Method, Identity: t}) == ""
}

// Draft is an account as an operator describes it; empty fields were left out.
type Draft struct {
	Name        string
	Description string
	State       string
	Workloads   []WorkloadDraft
	ManagedBy   string
}

// Draft returns the account as an operator describes it.
func (a *Account) Draft() Draft {
	d := Draft{Name: string(a.Name), Description: a.Description, State: string(a.State), ManagedBy: a.ManagedBy}
	for _, w := range a.Workloads {
		d.Workloads = append(d.Workloads, WorkloadDraft{
			Issuer: w.Identity.Issuer, Subject: w.Identity.Subject.String(), Claims: w.Identity.Claims,
			Audience: w.Audience, Scopes: strings.Fields(w.Scopes.String()),
		})
	}
	return d
}

// WorkloadDraft is a workload as an operator describes it.
type WorkloadDraft struct {
	Issuer   string
	Subject  string
	Claims   map[string]string
	Audience string
	Scopes   []string
}

// The bounds of accounts.
const (
	maxDescription = 200 // characters
	maxWorkloads   = 20
	maxAudience    = 512 // characters
)

// New returns the account of a draft, without CreatedAt. It returns fault.Invalid, with the name of
// the field, if one is wrong.
func New(d Draft, r publisher.Rules) (Account, error) {
	name, err := ParseName(d.Name)
	if err != nil {
		return Account{}, fault.In("name", err)
	}
	a := Account{Name: name, Description: strings.TrimSpace(d.Description), State: Active, ManagedBy: d.ManagedBy}
	switch State(d.State) {
	case "", Active:
	case Disabled:
		a.State = Disabled
	default:
		return Account{}, fields.Invalid("state", " must be active or disabled, not %.60q", d.State)
	}
	if a.Description != "" && !fields.IsText(a.Description, maxDescription) {
		return Account{}, fields.Invalid("description", " must have at most %d characters, without control characters", maxDescription)
	}
	if len(d.Workloads) > maxWorkloads {
		return Account{}, fields.Invalid("workloads", " must be at most %d", maxWorkloads)
	}
	for i, draft := range d.Workloads {
		w, err := newWorkload(draft, r)
		if err != nil {
			f, _ := fault.As(err)
			field := fmt.Sprintf("workloads[%d].%s", i, f.Field)
			return Account{}, fault.In(field, fault.Newf(fault.Invalid, "workloads[%d].%s", i, f.Message))
		}
		a.Workloads = append(a.Workloads, w)
	}
	return a, nil
}

func newWorkload(d WorkloadDraft, r publisher.Rules) (w Workload, err error) {
	if d.Subject == "" {
		return w, fault.In("subject", fault.New(fault.Invalid, "subject is missing"))
	}
	if utf8.RuneCountInString(d.Audience) > maxAudience || !registry.IsText(d.Audience) {
		return w, fault.In("audience", fault.Newf(fault.Invalid, "audience must have at most %d characters", maxAudience))
	}
	w.Audience = d.Audience
	if w.Identity, err = r.Identity(d.Issuer, d.Subject, d.Claims); err != nil {
		return w, err
	}
	if w.Scopes, err = scope.Parse(d.Scopes); err != nil {
		return w, fault.In("scopes", fault.New(fault.Invalid, "scopes "+fault.PublicMessage(err)))
	}
	return w, nil
}
