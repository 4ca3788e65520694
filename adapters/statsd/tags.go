package statsd

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cactus/go-statsd-client/v5/statsd"
)

// parseTags parses key:value pairs. Like the Envoy rate limit service, it ignores pairs without a
// value.
func parseTags(pairs []string) ([]statsd.Tag, error) {
	var tags []statsd.Tag
	for _, pair := range pairs {
		key, value, ok := strings.Cut(strings.TrimSpace(pair), ":")
		switch {
		case !ok || key == "":
			return nil, fmt.Errorf("%q must have the form key:value", pair)
		case strings.ContainsAny(key, ":|,=@#\n"):
			return nil, fmt.Errorf("the key of %q contains a character that is not allowed in tags", pair)
		case slices.ContainsFunc(tags, func(t statsd.Tag) bool { return t[0] == key }):
			return nil, fmt.Errorf("%q is given twice", key)
		case value != "":
			tags = append(tags, statsd.Tag{key, value})
		}
	}
	return tags, nil
}

// cleanTag replaces the characters that end a tag in the tagged form.
func cleanTag(value string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == ',' || r == '|' {
			return '_'
		}
		return r
	}, value)
}

// nameSuffix returns the tags as a suffix of a name of plain statsd, like the library of the Envoy
// rate limit service: .__key=value, sorted by key.
func nameSuffix(tags []statsd.Tag) string {
	sorted := slices.Clone(tags)
	slices.SortFunc(sorted, func(a, b statsd.Tag) int { return strings.Compare(a[0], b[0]) })
	var b strings.Builder
	for _, tag := range sorted {
		b.WriteString(".__" + tag[0] + "=")
		b.WriteString(strings.NewReplacer(".", "_", ":", "_").Replace(cleanTag(tag[1])))
	}
	return b.String()
}
