package registryrecords

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/registry"
)

// TestNameIndexFindsWhatAScanFinds adds names in several steps and compares searches with a scan of
// all names.
func TestNameIndexFindsWhatAScanFinds(t *testing.T) {
	anyName := rapid.StringMatching(`[abAB.-]{1,3}/[abAB._-]{1,6}`)
	rapid.Check(t, func(t *rapid.T) {
		index, all := new(nameIndex), map[string]bool{}
		for step := range rapid.IntRange(1, 4).Draw(t, "steps") {
			var added []string
			for _, name := range rapid.SliceOfNDistinct(anyName, 0, 3*maxBlockNames, rapid.ID[string]).
				Draw(t, "names") {
				if !all[name] {
					all[name], added = true, append(added, name)
				}
			}
			index = index.with(added, int64(step))
		}
		text := rapid.StringMatching(`[abAB./_-]{1,5}`).Draw(t, "text")
		within := registry.NameRange{
			From:  rapid.OneOf(rapid.Just(""), anyName).Draw(t, "from"),
			Below: rapid.OneOf(rapid.Just("~"), anyName).Draw(t, "below"),
		}
		limit := rapid.IntRange(1, 2*maxBlockNames).Draw(t, "limit")
		var want []string
		for name := range all {
			if within.Contains(name) && strings.Contains(strings.ToLower(name), strings.ToLower(text)) {
				want = append(want, name)
			}
		}
		slices.Sort(want)
		want = want[:min(limit, len(want))]
		if got := index.find(text, within, limit); !slices.Equal(got, want) {
			t.Fatalf("find(%q, %q, %d) = %q, want %q", text, within, limit, got, want)
		}
	})
}

// TestNameIndexKeepsBlocksSmall checks that an index does not change when names are added to
// another, and that a search of a rare name looks at few blocks.
func TestNameIndexKeepsBlocksSmall(t *testing.T) {
	index := new(nameIndex)
	const servers = 20_000
	for i := 0; i < servers; i += 500 {
		names := make([]string, 0, 500)
		for n := range 500 {
			names = append(names, fmt.Sprintf("io.github.user%d/server-%d", (i+n)*7919%100_003, i+n))
		}
		before := len(index.find("server", registry.AllNames(), servers))
		next := index.with(names, int64(i))
		if found := len(index.find("server", registry.AllNames(), servers)); found != before {
			t.Fatalf("an index has %d names after others were added to the next one, and %d before", found, before)
		}
		index = next
	}
	if found := len(index.find("SERVER-", registry.AllNames(), servers)); found != servers {
		t.Errorf("the index has %d names, want %d", found, servers)
	}
	likely, blocks := 0, 0
	for _, g := range index.groups {
		blocks += len(g.blocks)
		likely += bits.OnesCount64(g.blocksWith(slices.Collect(nameParts("xylophone", maxPart, maxPart))))
		for _, b := range g.blocks {
			if n := len(b.all()); n > maxBlockNames {
				t.Errorf("a block has %d names", n)
			}
		}
	}
	if least := servers / maxBlockNames; blocks < least || likely > blocks/100 {
		t.Errorf("%d of %d blocks seem to have a text that no name contains", likely, blocks)
	}
	if found := index.find("r\ni", registry.AllNames(), 1); found != nil {
		t.Errorf("a text with the separator finds %q", found)
	}
}
