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
	name    string       // a template of package regexp
	tags    []statsd.Tag // their values are templates
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
		m.tags = append(m.tags, statsd.Tag{tag[0], value})
	}
	return m, nil
}

// applyFirst returns the name and tags for a statistic. If no pattern matches, it returns the name
// unchanged and no tags.
func (list mogrifiers) applyFirst(name string) (string, []statsd.Tag) {
	for _, m := range list {
		groups := m.pattern.FindStringSubmatchIndex(name)
		if groups == nil {
			continue
		}
		fill := func(template string) string { return string(m.pattern.ExpandString(nil, template, name, groups)) }
		tags := make([]statsd.Tag, 0, len(m.tags))
		for _, tag := range m.tags {
			tags = append(tags, statsd.Tag{tag[0], cleanTag(fill(tag[1]))})
		}
		return fill(m.name), tags
	}
	return name, nil
}

// groupReference matches a group of a pattern in a template whose dollar signs are escaped.
var groupReference = regexp.MustCompile(`\$\$\d+`)

// newTemplate returns a text that contains groups ($1) as a template of package regexp (${1}), in
// which other dollar signs are escaped. It returns an error if the text uses a group that the
// pattern does not have.
func newTemplate(text string, groups int) (string, error) {
	var err error
	template := groupReference.ReplaceAllStringFunc(strings.ReplaceAll(text, "$", "$$"), func(reference string) string {
		group, wrong := strconv.Atoi(reference[2:])
		if err == nil && (wrong != nil || group > groups) {
			err = fmt.Errorf("group %s does not exist; the pattern has %d groups", reference[1:], groups)
		}
		return "${" + strconv.Itoa(group) + "}"
	})
	return template, err
}
