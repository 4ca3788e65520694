package statsd

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/cactus/go-statsd-client/v5/statsd"
)

// MogrifierConfig contains the variables of a mogrifier, which turns names that match a pattern
// into a name and tags.
type MogrifierConfig struct {
	Variable string // prefix of the names of its variables
	Pattern  string // a regular expression
	Name     string // the new name; $1 and so on are the groups of the pattern
	Tags     string // comma-separated key:value pairs; the values may contain groups too
}

func readMogrifier(name string, lookup func(string) string) MogrifierConfig {
	variable := "TAGGED_METRICSD_MOGRIFIER_" + strings.TrimSpace(name)
	return MogrifierConfig{
		Variable: variable,
		Pattern:  lookup(variable + "_PATTERN"), Name: lookup(variable + "_NAME"), Tags: lookup(variable + "_TAGS"),
	}
}

// mogrifier turns names that match its pattern into a name and tags.
type mogrifier struct {
	pattern *regexp.Regexp
	name    template
	tags    []tagTemplate
}

type tagTemplate struct {
	key   string
	value template
}

// mogrifiers are tried in order; the first that matches is used.
type mogrifiers []mogrifier

func newMogrifiers(configs []MogrifierConfig) (mogrifiers, error) {
	list := make(mogrifiers, 0, len(configs))
	for _, c := range configs {
		m, err := newMogrifier(c)
		if err != nil {
			return nil, fmt.Errorf("%s_%w", c.Variable, err)
		}
		list = append(list, m)
	}
	return list, nil
}

// newMogrifier returns a mogrifier. Its error begins with the last part of the name of the
// variable.
func newMogrifier(c MogrifierConfig) (mogrifier, error) {
	if c.Pattern == "" {
		return mogrifier{}, fmt.Errorf("PATTERN: must be set, because TAGGED_METRICSD_MOGRIFIERS lists this mogrifier")
	}
	pattern, err := regexp.Compile(c.Pattern)
	if err != nil {
		return mogrifier{}, fmt.Errorf("PATTERN: %w", err)
	}
	if c.Name == "" {
		return mogrifier{}, fmt.Errorf("NAME: must be set, because TAGGED_METRICSD_MOGRIFIERS lists this mogrifier")
	}
	m := mogrifier{pattern: pattern}
	if m.name, err = newTemplate(c.Name, pattern.NumSubexp()); err != nil {
		return mogrifier{}, fmt.Errorf("NAME: %w", err)
	}
	if c.Tags == "" {
		return m, nil
	}
	tags, err := parseTags(strings.Split(c.Tags, ","))
	if err != nil {
		return mogrifier{}, fmt.Errorf("TAGS: %w", err)
	}
	for _, tag := range tags {
		value, err := newTemplate(tag[1], pattern.NumSubexp())
		if err != nil {
			return mogrifier{}, fmt.Errorf("TAGS: %w", err)
		}
		m.tags = append(m.tags, tagTemplate{tag[0], value})
	}
	return m, nil
}

// applyFirst returns the name and tags for a statistic. If no pattern matches, it returns the name
// unchanged and no tags.
func (list mogrifiers) applyFirst(name string) (string, []statsd.Tag) {
	for _, m := range list {
		groups := m.pattern.FindStringSubmatch(name)
		if groups == nil {
			continue
		}
		tags := make([]statsd.Tag, 0, len(m.tags))
		for _, tag := range m.tags {
			tags = append(tags, statsd.Tag{tag.key, cleanTag(tag.value.fillGroups(groups))})
		}
		return m.name.fillGroups(groups), tags
	}
	return name, nil
}

// template is a text that contains groups of a pattern. Texts and groups alternate, with a text at
// both ends.
type template struct {
	texts  []string
	groups []int
}

// newTemplate parses a template. It returns an error if the template uses a group that the pattern
// does not have.
func newTemplate(s string, groups int) (template, error) {
	var t template
	from := 0
	for _, at := range regexp.MustCompile(`\$\d+`).FindAllStringIndex(s, -1) {
		group, err := strconv.Atoi(s[at[0]+1 : at[1]])
		if err != nil || group > groups {
			return template{}, fmt.Errorf("group %s does not exist; the pattern has %d groups", s[at[0]:at[1]], groups)
		}
		t.texts = append(t.texts, s[from:at[0]])
		t.groups = append(t.groups, group)
		from = at[1]
	}
	t.texts = append(t.texts, s[from:])
	return t, nil
}

func (t template) fillGroups(groups []string) string {
	var b strings.Builder
	for i, group := range t.groups {
		b.WriteString(t.texts[i])
		b.WriteString(groups[group])
	}
	b.WriteString(t.texts[len(t.texts)-1])
	return b.String()
}
