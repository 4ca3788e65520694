package operator

import (
	"slices"
	"testing"

	"github.com/tollgate-dev/tollgate/core/registry/transferring"
)

// TestImportGroupsReasons: records with the same reason are one row of the report.
func TestImportGroupsReasons(t *testing.T) {
	i := &importReport{}
	for _, o := range []transferring.Outcome{
		{Verdict: transferring.Refused, Name: "com.example/a", Version: "1", Reason: "repository is empty"},
		{Verdict: transferring.Refused, Origin: "list.json, record 2", Reason: "it is not an object"},
		{Verdict: transferring.Refused, Name: "com.example/b", Version: "1", Reason: "repository is empty"},
		{Verdict: transferring.Skipped, Name: "com.example/c", Version: "1", Reason: "repository is empty"},
		{Verdict: transferring.Refused, Name: "com.example/d", Version: "1", Reason: "repository is empty"},
	} {
		i.lines = append(i.lines, importLine{string(o.Verdict), o.Name, o.Version, o.Origin, o.Reason})
	}
	want := [][]string{
		{"refused", "com.example/a@1 and 2 others", "repository is empty"},
		{"refused", "list.json, record 2", "it is not an object"},
		{"skipped", "com.example/c@1", "repository is empty"},
		{"taken", "total 3", ""}, {"skipped", "total 1", ""}, {"refused", "total 4", "--lenient imports 3 of them"},
	}
	got := i.table(transferring.Counts{Taken: 3, Skipped: 1, Refused: 4, Lenient: 3})
	if !slices.EqualFunc(got.Rows, want, slices.Equal[[]string]) {
		t.Errorf("the rows are %q, want %q", got.Rows, want)
	}
}
