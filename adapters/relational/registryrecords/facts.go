package registryrecords

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/registry"
)

var errFacts = errors.New("the column facts of a version has another form")

// factsOfVersion selects the facts of a version from the table versions AS v: the column facts, and
// before it for a mirrored version "@", the column origin and a space. No name of a server begins
// with that. A column that is added later needs no change of facts: it comes before it in the same
// way, with another mark.
const factsOfVersion = "CASE WHEN v.origin IS NULL THEN v.facts ELSE '@' || v.origin || ' ' || v.facts END"

// parseFacts parses what factsOfVersion selects. The migrations 0004_facts and
// 0021_mirrors describe their forms.
func parseFacts(text string) (r registry.Release, err error) {
	if strings.HasPrefix(text, "@") {
		return parseMirrored(text[1:])
	}
	const fields, firstNumber = 8, 2
	all := strings.SplitN(text, " ", fields)
	if len(all) != fields {
		return r, database.BrokenRow(errFacts)
	}
	var numbers [fields - 1 - firstNumber]int64
	for i := range numbers {
		if numbers[i], err = strconv.ParseInt(all[firstNumber+i], 10, 64); err != nil {
			return r, database.BrokenRow(errFacts)
		}
	}
	last, size := all[fields-1], numbers[4]
	if size < 0 || size > int64(len(last)) {
		return r, database.BrokenRow(errFacts)
	}
	r.Latest, r.StatusMessage = numbers[0] == 1, last[size:]
	r.StatusChangedAt, r.PublishedAt, r.UpdatedAt = parseTime(numbers[1]), parseTime(numbers[2]), parseTime(numbers[3])
	var failed [3]error
	r.Name, failed[0] = registry.ParseName(all[0])
	r.Status, failed[1] = registry.ParseStatus(all[1])
	r.Version, failed[2] = registry.ParseVersion(last[:size])
	if err := errors.Join(failed[:]...); err != nil {
		return registry.Release{}, database.BrokenRow(err)
	}
	return r, nil
}

func parseTime(micros int64) time.Time { return time.UnixMicro(micros).UTC() }

// parseMirrored parses the origin and the facts of a mirrored version.
func parseMirrored(text string) (registry.Release, error) {
	const fields = 4
	all := strings.SplitN(text, " ", fields)
	if len(all) != fields {
		return registry.Release{}, database.BrokenRow(errFacts)
	}
	micros, err := strconv.ParseInt(all[1], 10, 64)
	if err != nil || strings.HasPrefix(all[3], "@") {
		return registry.Release{}, database.BrokenRow(errFacts)
	}
	r, err := parseFacts(all[3])
	r.Origin = registry.Origin{Mirror: all[0], URL: all[2], FetchedAt: parseTime(micros)}
	return r, err
}

// formatOrigin returns the value of the column origin; nil for a version that was published here.
func formatOrigin(o registry.Origin) *string {
	if o == (registry.Origin{}) {
		return nil
	}
	text := o.Mirror + " " + strconv.FormatInt(o.FetchedAt.UnixMicro(), 10) + " " + o.URL
	return &text
}
