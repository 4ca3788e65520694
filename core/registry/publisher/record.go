package publisher

import (
	"strings"

	"github.com/tollgate-dev/tollgate/core/fault"
)

const (
	recordVersion = "v=MCPv1"
	maxRecord     = 1024 // bytes of a record that is parsed
	maxRecords    = 16   // records of a domain that are parsed
)

// ParseRecords returns the keys in the texts that a domain has published: TXT records, or lines of
// a page. A text is a record if it begins with v=MCPv1 and has k, an algorithm, and p, a key in
// base64 (contract P-5); other texts are ignored. problems has an error of kind fault.Invalid for
// each record that is broken. At most 16 records are parsed.
func ParseRecords(texts []string) (keys []Key, problems []error) {
	for _, text := range texts {
		key, ok, err := parseRecord(text)
		switch {
		case !ok:
			continue
		case err != nil:
			problems = append(problems, err)
		default:
			keys = append(keys, key)
		}
		if len(keys)+len(problems) == maxRecords {
			break
		}
	}
	return keys, problems
}

// parseRecord returns the key of a record. ok is false for a text that is not a record.
func parseRecord(text string) (key Key, ok bool, err error) {
	text = strings.TrimSpace(text)
	if unquoted, quoted := strings.CutPrefix(text, `"`); quoted { // the quotes of a zone file, in a page
		text = strings.TrimSuffix(unquoted, `"`)
	}
	version, rest, _ := strings.Cut(text, ";")
	if strings.TrimSpace(version) != recordVersion {
		return Key{}, false, nil
	}
	if len(text) > maxRecord {
		return Key{}, true, fault.Newf(fault.Invalid, "a record has more than %d bytes", maxRecord)
	}
	fields := map[string]string{"v": recordVersion}
	for part := range strings.SplitSeq(rest, ";") {
		name, value, found := strings.Cut(part, "=")
		name = strings.TrimSpace(name)
		if _, twice := fields[name]; twice && found {
			return Key{}, true, fault.Newf(fault.Invalid, "a record has %s twice", quote(name))
		}
		if found {
			fields[name] = strings.TrimSpace(value)
		}
	}
	for _, name := range []string{"k", "p"} {
		if fields[name] == "" {
			return Key{}, true, fault.Newf(fault.Invalid, "a record has no %s", name)
		}
	}
	key, err = ParseKey(Algorithm(fields["k"]), fields["p"])
	return key, true, err
}
