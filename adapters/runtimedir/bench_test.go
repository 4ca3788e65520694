package runtimedir

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
	"github.com/tollgate-dev/tollgate/test/must"
)

// BenchmarkLoad reads and compiles 100,000 rules in one file and in a hundred, and
// reports how much memory the set keeps. The limits are 150 MiB and 2 s.
func BenchmarkLoad(b *testing.B) {
	const rules = 100_000
	for _, files := range []int{1, 100} {
		b.Run(fmt.Sprint(rules, " rules in ", files, " files"), func(b *testing.B) {
			root := b.TempDir()
			for i := range files {
				writeBenchFile(b, filepath.Join(root, fmt.Sprint(i, ".yaml")), ruleFile(i, rules/files))
			}
			before := heapBytes()
			var set *ruleset.Set
			for b.Loop() {
				sources, err := New(Config{Root: root}, discardLog()).Load(b.Context())
				must.Succeed(b, err)
				if set, err = ruleset.Compile(sources, ruleset.Options{}); err != nil {
					b.Fatal(err)
				}
			}
			if set.RuleCount() != rules {
				b.Fatalf("%d rules", set.RuleCount())
			}
			b.ReportMetric(float64(heapBytes()-before)/(1<<20), "MiB")
			b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s/load")
			runtime.KeepAlive(set)
		})
	}
}

// ruleFile returns a domain of tenants with nested rules.
func ruleFile(n, rules int) string {
	var s strings.Builder
	fmt.Fprintf(&s, "domain: domain%d\ndescriptors:\n", n)
	for i := range rules / 2 {
		fmt.Fprintf(&s,
			"  - key: tenant\n    value: tenant-%d\n    rate_limit:\n      unit: minute\n      requests_per_unit: %d\n",
			i, i)
		fmt.Fprintf(&s,
			"    descriptors:\n      - key: path\n        rate_limit: {unit: hour, requests_per_unit: %d}\n", i)
	}
	return s.String()
}

func writeBenchFile(b *testing.B, path, content string) {
	b.Helper()
	must.Succeed(b, os.WriteFile(path, []byte(content), 0o600))
}

func heapBytes() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // the second run frees objects with finalizers
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) //nolint:gosec // a heap is far smaller than 2^63
}
