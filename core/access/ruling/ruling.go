// Package ruling has the use case of the rules by which calls of servers are decided: operators list,
// store and remove them as objects of any kind (package managing). What a rule means is in package
// access.
package ruling

import (
	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/managing"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/management"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// Ports are the dependencies of an Operator. All fields are required.
type Ports struct {
	Transactions transaction.Runner
	Rules        management.Store[access.RuleName, access.Rule]
	Recorder     authority.Recorder
}

// Operator lists, stores and removes rules for operators.
type Operator = managing.Operator[access.RuleName, access.Rule]

// New returns an operator.
func New(p Ports) *Operator {
	return managing.New(managing.Description[access.RuleName, access.Rule]{
		Kind: &access.RuleKind, Parse: access.ParseRule,
		Show: func(r *access.Rule) management.Object {
			return management.Object{Object: r.Object(), Owner: r.ManagedBy}
		},
		Key:   func(r *access.Rule) access.RuleName { return r.Name },
		Owner: func(r *access.Rule) *string { return &r.ManagedBy },
	}, managing.Ports[access.RuleName, access.Rule]{
		Transactions: p.Transactions, Store: p.Rules, Recorder: p.Recorder,
	})
}
