package publisher

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/test/must"
)

func TestSubjectPatternMatches(t *testing.T) {
	t.Parallel()
	for pattern, subjects := range map[string]map[string]bool{
		"": {"": true, "anything/at:all": true},
		"repo:acme/tools:ref:refs/heads/main": {
			"repo:acme/tools:ref:refs/heads/main": true, "repo:acme/tools:ref:refs/heads/main2": false,
			"Repo:acme/tools:ref:refs/heads/main": false,
			"repo:acme/tools:ref:refs/heads/mai":  false, "repo:acme/tools:ref:refs/heads/main\n": false, "": false,
		},
		"repo:acme/*": {
			"repo:acme/tools": true, "repo:acme/tools:ref:refs/heads/main": true, "repo:acme/a/b/c": true,
			"repo:acme/": false, "repo:acme": false, "repo:acme-evil/tools": false, "xrepo:acme/tools": false,
			"repo:evil/repo:acme/tools": false,
		},
		"repo:acme/tools:*": {
			"repo:acme/tools:ref:refs/heads/main": true, "repo:acme/tools:environment:prod": true,
			"repo:acme/tools:": false, "repo:acme/tools": false, "repo:acme/tools-evil:ref:refs/heads/main": false,
		},
		"repo:acme/*:environment:prod": {
			"repo:acme/tools:environment:prod": true, "repo:acme/:environment:prod": true,
			"repo:acme/x:y:environment:prod": false, "repo:acme/x/y:environment:prod": false,
			"repo:acme/tools:environment:prod2": false,
		},
		"repo:acme/tools:ref:refs/tags/v*": {
			"repo:acme/tools:ref:refs/tags/v1": true, "repo:acme/tools:ref:refs/tags/v": true,
			"repo:acme/tools:ref:refs/tags/v1/x": false, "repo:acme/tools:ref:refs/tags/v1:x": false,
			"repo:acme/tools:ref:refs/tags/x1": false,
		},
		"repo:acme*": {"repo:acme": true, "repo:acme-evil": true, "repo:acme/tools": false},
		"a*b*c": {
			"abc": true, "axbyc": true, "abbcc": true, "ac": false, "acb": false, "abcd": false, "a/bc": false,
			"ab:c": false, "xabc": false,
		},
		"ab*b":  {"abb": true, "abxb": true, "ab": false},
		"a**b":  {"ab": true, "axb": true, "a/b": false},
		"a/**":  {"a/": true, "a/b": true, "a/b/c": false},
		"a/*/*": {"a/b/c": true, "a/b/c/d": true, "a//c": true, "a/b/": false, "a/b": false},
		"a*/*":  {"ab/c:d": true, "b/c": false},
		"a.c":   {"a.c": true, "abc": false},
		"system:serviceaccount:builds:*": {
			"system:serviceaccount:builds:publisher": true, "system:serviceaccount:builds-evil:publisher": false,
		},
	} {
		p := parse(t, ParseSubjectPattern, pattern)
		for subject, want := range subjects {
			wantEqual(t, p.Matches(subject), want, "%q matches %q", pattern, subject)
		}
	}
}

func TestParseSubjectPatternRefuses(t *testing.T) {
	t.Parallel()
	for defect, s := range map[string]string{
		"a star":             "*",
		"a star before":      "*:acme/tools",
		"too long":           strings.Repeat("a", 513),
		"a NUL":              "repo:\x00",
		"a line end":         "repo:acme/tools\n",
		"a zero-width space": "repo:acme\u200b/tools",
		"not UTF-8":          "repo:\xff",
	} {
		if p, err := ParseSubjectPattern(s); !fault.Is(err, fault.Invalid) ||
			!strings.HasPrefix(err.Error(), "subject must") {
			t.Errorf("%s: ParseSubjectPattern(%q) = %q, %v, want a fault that names the field", defect, s, p, err)
		}
	}
	if p, err := ParseSubjectPattern(strings.Repeat("a", 512)); err != nil || len(p.String()) != 512 {
		t.Errorf("ParseSubjectPattern of 512 characters = %q, %v", p, err)
	}
}

// TestSubjectPatternIsExpression compares patterns with regular expressions.
func TestSubjectPatternIsExpression(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p, err := ParseSubjectPattern(rapid.StringMatching(`([ab:/][ab:/*]{0,9})?`).Draw(t, "pattern"))
		must.Succeed(t, err)
		subject := rapid.StringMatching(`[ab:/]{0,12}`).Draw(t, "subject")
		if rapid.Bool().Draw(t, "similar") {
			subject = drawSubject(t, p)
		}
		if got, want := p.Matches(subject), subjectExpression(p.String()).MatchString(subject); got != want {
			t.Fatalf("%q matches %q: %t, want %t", p, subject, got, want)
		}
	})
}

// TestInnerStarCrossesNoSeparator puts text in place of a star that is not at the end.
func TestInnerStarCrossesNoSeparator(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		before := rapid.StringMatching(`[a-z][a-z:/]{0,8}`).Draw(t, "before")
		after := rapid.StringMatching(`[a-z:/]{1,8}`).Draw(t, "after")
		between := rapid.StringMatching(`[0-9:/]{0,8}`).Draw(t, "between")
		p, err := ParseSubjectPattern(before + "*" + after)
		must.Succeed(t, err)
		if got, want := p.Matches(before+between+after), !strings.ContainsAny(between, ":/"); got != want {
			t.Fatalf("%q matches %q: %t, want %t", p, before+between+after, got, want)
		}
	})
}

// drawSubject returns a subject that has some text in place of each star of a pattern.
func drawSubject(t *rapid.T, p SubjectPattern) string {
	pieces := strings.Split(p.String(), "*")
	subject := pieces[0]
	for _, piece := range pieces[1:] {
		subject += rapid.StringMatching(`[ab]{0,2}[:/]?`).Draw(t, "part") + piece
	}
	return subject
}

// subjectExpression returns the regular expression of a pattern.
func subjectExpression(pattern string) *regexp.Regexp {
	if pattern == "" {
		return regexp.MustCompile(``)
	}
	end := ``
	if strings.HasSuffix(pattern, "/*") || strings.HasSuffix(pattern, ":*") {
		pattern, end = strings.TrimSuffix(pattern, "*"), `.+`
	}
	return regexp.MustCompile(`(?s)\A` + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, `[^/:]*`) + end + `\z`)
}
