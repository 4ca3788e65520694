package monitoring

import (
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/tollgate-dev/tollgate/test/must"
)

const shown = `# TYPE calls_total counter
calls_total{kind="read",outcome="done"} 1
calls_total{kind="write",outcome="failed"} 1
# TYPE calls_seconds histogram
calls_seconds_bucket{kind="read",le="1"} 1
calls_seconds_bucket{kind="read",le="+Inf"} 1
calls_seconds_sum{kind="read"} 1
calls_seconds_count{kind="read"} 1
# TYPE waiting gauge
waiting 0
`

func TestAnswer(t *testing.T) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(shown))
	must.Succeed(t, err)
	series := SeriesOf(families)
	for _, test := range []struct {
		expression string
		labels     string // separated by spaces
		wrong      string // what the error says, where there is one
	}{
		{expression: `up == 0`, labels: "instance job"},
		{expression: `waiting > 1`, labels: "instance job"},
		{expression: `max_over_time(waiting[5m])`, labels: "instance job"},
		{expression: `calls_total{kind="read"}`, labels: "instance job kind outcome"},
		{expression: `calls_total{outcome!~"done|failed.*", job="any"}`, wrong: "no series has outcome"},
		{expression: `sum by (kind) (rate(calls_total[5m]))`, labels: "kind"},
		{expression: `sum without (instance, job) (rate(calls_total[5m]))`, labels: "kind outcome"},
		{expression: `topk(3, sum by (kind) (rate(calls_total[5m])))`, labels: "kind"},
		{expression: `histogram_quantile(0.9, sum by (le, kind) (rate(calls_seconds_bucket[5m])))`, labels: "kind"},
		{expression: `sum(rate(calls_total[5m])) / sum(rate(calls_total[5m])) > 0.5 and sum(waiting) > 3`},
		{expression: `sum(up) or vector(0)`},
		{
			expression: `sum by (instance) (up) * on (instance) group_left (kind) sum by (instance, kind) (calls_total)`, labels: "instance kind",
		},
		{expression: `calls_total - ignoring (kind, outcome) waiting`, labels: "instance job"},

		{expression: `sum(`, wrong: "parse"},
		{expression: `calls`, wrong: "no metric calls"},
		{expression: `calls_total{method="GET"}`, wrong: "no label method"},
		{expression: `calls_total{outcome="doen"}`, wrong: `no series has outcome="doen"`},
		{expression: `calls_total{outcome!="doen"}`, wrong: `no series has outcome="doen"`},
		{expression: `calls_total{outcome=~"done|faild"}`, wrong: `no series has outcome="faild"`},
		{expression: `calls_total{outcome=~"x.*"}`, wrong: "no series has outcome=~"},
		{expression: `sum by (method) (calls_total)`, wrong: "uses the label method"},
		{expression: `sum by (outcome) (sum by (kind) (calls_total))`, wrong: "uses the label outcome"},
		{
			expression: `histogram_quantile(0.9, sum by (kind) (rate(calls_seconds_bucket[5m])))`,
			wrong:      "uses the label le",
		},
		{expression: `sum by (kind) (calls_total) / sum(calls_total)`, wrong: "uses the label kind"},
		{expression: `calls_total and on (le) waiting`, wrong: "uses the label le"},
		{expression: `rate(waiting[5m])`, wrong: "waiting is not a counter"},
	} {
		got, err := series.ResultLabels(test.expression)
		switch {
		case test.wrong != "":
			if err == nil || !strings.Contains(err.Error(), test.wrong) {
				t.Errorf("%s: %v, want %s", test.expression, err, test.wrong)
			}
		case err != nil:
			t.Errorf("%s: %v", test.expression, err)
		case !slices.Equal(got, strings.Fields(test.labels)):
			t.Errorf("%s: the answer has %v, want %s", test.expression, got, test.labels)
		}
	}
}
