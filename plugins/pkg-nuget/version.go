package main

import "strings"

// normalizeVersion returns version in the form that feeds use in lists and URLs: three or four
// numbers without leading zeros, the fourth left out if it is zero, then the pre-release label in
// lower case, without build metadata (NuGet documentation, "Package versioning", "Normalized
// version numbers"). ok is false if version is malformed.
func normalizeVersion(version string) (canonical string, ok bool) {
	version, metadata, hasMetadata := strings.Cut(version, "+")
	if hasMetadata && !isLabelList(metadata) {
		return "", false
	}
	numbers, label, hasLabel := strings.Cut(version, "-")
	if hasLabel && !isLabelList(label) {
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

// isLabelList reports whether s may follow "-" or "+" in a version: parts of letters, digits and
// hyphens, separated by dots.
func isLabelList(s string) bool {
	for part := range strings.SplitSeq(s, ".") {
		if part == "" {
			return false
		}
		for _, r := range part {
			if !isAlphanumeric(r) && r != '-' {
				return false
			}
		}
	}
	return true
}

func isAlphanumeric(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
}
