package monitoring

import (
	"errors"
	"fmt"
	"slices"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
)

// Answer tells which labels the answer to an expression of PromQL has, sorted.
// An error tells why the expression can have no answer here, whatever the
// service does: it does not parse; there is no such metric, label or value; a
// label is asked for that an inner aggregation has left out; two sides never
// match; a rate is taken of what is no counter.
func (s Series) Answer(expression string) ([]string, error) {
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(expression)
	if err != nil {
		return nil, fmt.Errorf("parse: %w", err)
	}
	names, err := s.labelsOf(parsed)
	slices.Sort(names)
	return slices.Compact(names), err
}

func (s Series) labelsOf(e parser.Expr) ([]string, error) {
	switch e := e.(type) {
	case *parser.NumberLiteral, *parser.StringLiteral:
		return nil, nil
	case *parser.ParenExpr:
		return s.labelsOf(e.Expr)
	case *parser.UnaryExpr:
		return s.labelsOf(e.Expr)
	case *parser.SubqueryExpr:
		return s.labelsOf(e.Expr)
	case *parser.MatrixSelector:
		return s.labelsOf(e.VectorSelector)
	case *parser.VectorSelector:
		return s.selected(e)
	case *parser.AggregateExpr:
		return s.aggregated(e)
	case *parser.Call:
		return s.called(e)
	case *parser.BinaryExpr:
		return s.combined(e)
	}
	return nil, fmt.Errorf("%s is of a kind that is not known here", e)
}

func (s Series) selected(e *parser.VectorSelector) ([]string, error) {
	m, there := s.metrics[e.Name]
	if !there {
		return nil, fmt.Errorf("there is no metric %s", e.Name)
	}
	for _, asked := range e.LabelMatchers {
		if asked.Name == model.MetricNameLabel {
			continue
		}
		if err := m.check(asked); err != nil {
			return nil, fmt.Errorf("%s: %w", e.Name, err)
		}
	}
	return m.names(), nil
}

func (s Series) aggregated(e *parser.AggregateExpr) ([]string, error) {
	inner, err := s.labelsOf(e.Expr)
	if err != nil {
		return nil, err
	}
	if err := contains(inner, e.Grouping, e); err != nil {
		return nil, err
	}
	switch {
	case e.Op == parser.TOPK || e.Op == parser.BOTTOMK:
		return inner, nil
	case e.Without:
		return without(inner, e.Grouping), nil
	}
	return e.Grouping, nil
}

func (s Series) called(e *parser.Call) ([]string, error) {
	var names []string
	for _, argument := range e.Args {
		of, err := s.labelsOf(argument)
		if err != nil {
			return nil, err
		}
		names = append(names, of...)
		if err := s.grows(e.Func.Name, argument); err != nil {
			return nil, err
		}
	}
	if e.Func.Name != "histogram_quantile" {
		return names, nil
	}
	return without(names, []string{"le"}), contains(names, []string{"le"}, e)
}

// grows wants a counter where the function is for counters.
func (s Series) grows(function string, argument parser.Expr) error {
	selector, ok := argument.(*parser.MatrixSelector)
	if !ok || !slices.Contains([]string{"rate", "irate", "increase"}, function) {
		return nil
	}
	of, ok := selector.VectorSelector.(*parser.VectorSelector)
	if ok && !s.metrics[of.Name].counts {
		return fmt.Errorf("%s is no counter, so it has no %s", of.Name, function)
	}
	return nil
}

func (s Series) combined(e *parser.BinaryExpr) ([]string, error) {
	left, errLeft := s.labelsOf(e.LHS)
	right, errRight := s.labelsOf(e.RHS)
	if err := errors.Join(errLeft, errRight); err != nil {
		return nil, err
	}
	how := e.VectorMatching
	switch {
	case how == nil: // with a number on one side
		return append(left, right...), nil
	case e.Op == parser.LOR:
		return slices.DeleteFunc(left, func(name string) bool { return !slices.Contains(right, name) }), nil
	case how.On:
		return joined(e, left, right), errors.Join(contains(left, how.MatchingLabels, e), contains(right, how.MatchingLabels, e))
	}
	left, right = without(left, how.MatchingLabels), without(right, how.MatchingLabels)
	return left, errors.Join(contains(left, right, e), contains(right, left, e))
}

// joined are the labels of what is matched on some of them.
func joined(e *parser.BinaryExpr, left, right []string) []string {
	how := e.VectorMatching
	switch {
	case e.Op.IsSetOperator():
		return left
	case how.Card == parser.CardManyToOne:
		return append(left, how.Include...)
	case how.Card == parser.CardOneToMany:
		return append(right, how.Include...)
	}
	return how.MatchingLabels
}

func contains(names, wanted []string, e parser.Expr) error {
	for _, name := range wanted {
		if !slices.Contains(names, name) {
			return fmt.Errorf("%s asks for the label %s, and there is only %v", e, name, names)
		}
	}
	return nil
}

func without(names, dropped []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(dropped, name) })
}
