package monitoring

import (
	"errors"
	"fmt"
	"slices"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
)

// ResultLabels returns the sorted labels of the result of a PromQL expression. It returns an error
// if the expression can never have a result: it does not parse; it uses an unknown metric, label or
// value, or a label that an inner aggregation has removed; its two sides never match; or it takes
// the rate of a metric that is not a counter.
func (s Series) ResultLabels(expression string) ([]string, error) {
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
		return s.selectorLabels(e)
	case *parser.AggregateExpr:
		return s.aggregationLabels(e)
	case *parser.Call:
		return s.callLabels(e)
	case *parser.BinaryExpr:
		return s.binaryLabels(e)
	}
	return nil, fmt.Errorf("%s is of an unknown kind", e)
}

func (s Series) selectorLabels(e *parser.VectorSelector) ([]string, error) {
	m, there := s.metrics[e.Name]
	if !there {
		return nil, fmt.Errorf("there is no metric %s", e.Name)
	}
	for _, matcher := range e.LabelMatchers {
		if matcher.Name == model.MetricNameLabel {
			continue
		}
		if err := m.checkMatcher(matcher); err != nil {
			return nil, fmt.Errorf("%s: %w", e.Name, err)
		}
	}
	return m.labelNames(), nil
}

func (s Series) aggregationLabels(e *parser.AggregateExpr) ([]string, error) {
	inner, err := s.labelsOf(e.Expr)
	if err != nil {
		return nil, err
	}
	if err := checkLabels(inner, e.Grouping, e); err != nil {
		return nil, err
	}
	switch {
	case e.Op == parser.TOPK || e.Op == parser.BOTTOMK:
		return inner, nil
	case e.Without:
		return withoutLabels(inner, e.Grouping), nil
	}
	return e.Grouping, nil
}

func (s Series) callLabels(e *parser.Call) ([]string, error) {
	var names []string
	for _, argument := range e.Args {
		of, err := s.labelsOf(argument)
		if err != nil {
			return nil, err
		}
		names = append(names, of...)
		if err := s.checkCounter(e.Func.Name, argument); err != nil {
			return nil, err
		}
	}
	if e.Func.Name != "histogram_quantile" {
		return names, nil
	}
	return withoutLabels(names, []string{"le"}), checkLabels(names, []string{"le"}, e)
}

// checkCounter returns an error if the function requires a counter and the argument is not one.
func (s Series) checkCounter(function string, argument parser.Expr) error {
	selector, ok := argument.(*parser.MatrixSelector)
	if !ok || !slices.Contains([]string{"rate", "irate", "increase"}, function) {
		return nil
	}
	of, ok := selector.VectorSelector.(*parser.VectorSelector)
	if ok && !s.metrics[of.Name].isCounter {
		return fmt.Errorf("%s is not a counter, so %s does not apply", of.Name, function)
	}
	return nil
}

func (s Series) binaryLabels(e *parser.BinaryExpr) ([]string, error) {
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
		return matchedLabels(e, left, right),
			errors.Join(checkLabels(left, how.MatchingLabels, e), checkLabels(right, how.MatchingLabels, e))
	}
	left, right = withoutLabels(left, how.MatchingLabels), withoutLabels(right, how.MatchingLabels)
	return left, errors.Join(checkLabels(left, right, e), checkLabels(right, left, e))
}

// matchedLabels returns the labels of the result of a binary expression with "on".
func matchedLabels(e *parser.BinaryExpr, left, right []string) []string {
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

func checkLabels(names, wanted []string, e parser.Expr) error {
	for _, name := range wanted {
		if !slices.Contains(names, name) {
			return fmt.Errorf("%s uses the label %s, which is not one of %v", e, name, names)
		}
	}
	return nil
}

func withoutLabels(names, dropped []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(dropped, name) })
}
