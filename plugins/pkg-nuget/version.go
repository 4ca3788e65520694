package main

import "strings"

// normalized returns the form of a version that a feed lists and puts into addresses: two to four numbers without leading
// zeros, filled up to three, a fourth left out when it is zero, then the pre-release label in lower case, without build
// metadata (NuGet documentation, "Package versioning", "Normalized version numbers"). ok is false for what no feed lists.
func normalized(version string) (canonical string, ok bool) {
	version, metadata, hasMetadata := strings.Cut(version, "+")
	if hasMetadata && !labels(metadata) {
		return "", false
	}
	numbers, label, hasLabel := strings.Cut(version, "-")
	if hasLabel && !labels(label) {
		return "", false
	}
	parts := strings.Split(numbers, ".")
	if len(parts) > 4 {
		return "", false
	}
	for i, part := range parts {
		if part == "" || strings.Trim(part, "0123456789") != "" {
			return "", false
		}
		parts[i] = withoutLeadingZeros(part)
	}
	for len(parts) < 3 {
		parts = append(parts, "0")
	}
	if len(parts) == 4 && parts[3] == "0" {
		parts = parts[:3]
	}
	canonical = strings.Join(parts, ".")
	if hasLabel {
		canonical += "-" + strings.ToLower(label)
	}
	return canonical, true
}

func withoutLeadingZeros(digits string) string {
	if digits = strings.TrimLeft(digits, "0"); digits == "" {
		return "0"
	}
	return digits
}

// labels reports whether s is what may follow "-" or "+": parts of letters, digits and hyphens, with dots between them.
func labels(s string) bool {
	for part := range strings.SplitSeq(s, ".") {
		if part == "" {
			return false
		}
		for _, r := range part {
			if !alphanumeric(r) && r != '-' {
				return false
			}
		}
	}
	return true
}

func alphanumeric(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
}
