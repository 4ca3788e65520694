// Package catalogue is the model of the open-data methods listing: the methods that the API offers,
// by id.
package catalogue

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tollgate-dev/tollgate/core/fault"
)

// MethodID is the id of a method.
type MethodID int

// ServiceID is the id of the service a method belongs to.
type ServiceID int

// Method is one entry of the listing.
type Method struct {
	ID          MethodID
	Path        string // a template below the API root, for example /api/usage.{format}
	ServiceID   ServiceID
	ServiceName string
	Parameters  []string // the path parameters, in the order of the path
}

// ListingID is the id of the listing itself (contract M-3).
const ListingID MethodID = 1103

// The bounds of a method. Ids fit into 32 bits on every database.
const (
	MaxID          = 1<<31 - 1
	MaxPath        = 500 // characters
	MaxServiceName = 100 // characters
)

// NewMethod validates a method and returns it with the parameters of its path. The path must begin
// with a slash and have no empty segment; a parameter is in braces and occurs once. If m has
// parameters, they must be those of the path, in any order.
//
// It returns fault.Invalid for the first mistake.
func NewMethod(m Method) (Method, error) {
	switch {
	case m.ID < 1 || m.ID > MaxID:
		return Method{}, fault.Newf(fault.Invalid, "method id must be 1 to %d", MaxID)
	case m.ServiceID < 1 || m.ServiceID > MaxID:
		return Method{}, fault.Newf(fault.Invalid, "service id must be 1 to %d", MaxID)
	case !isLine(m.ServiceName, MaxServiceName):
		return Method{}, fault.Newf(fault.Invalid, "service name must have 1 to %d printable characters",
			MaxServiceName)
	}
	parameters, err := pathParameters(m.Path)
	if err != nil {
		return Method{}, err
	}
	if m.Parameters != nil && !sameNames(m.Parameters, parameters) {
		return Method{}, fault.Newf(fault.Invalid, "parameters of %s must be those of the path: %s", m.Path,
			strings.Join(parameters, ", "))
	}
	m.Parameters = parameters
	return m, nil
}

// isLine reports whether s is printable text of 1 to limit characters.
func isLine(s string, limit int) bool {
	return s != "" && utf8.ValidString(s) && utf8.RuneCountInString(s) <= limit &&
		!strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

var (
	// segmentForm is a segment of a path: text, with parameters in braces.
	segmentForm   = regexp.MustCompile(`^(?:[^{}/?#\s]|\{[A-Za-z_][A-Za-z0-9_.-]{0,99}\})+$`)
	parameterForm = regexp.MustCompile(`\{([^}]*)\}`)
)

// pathParameters returns the parameters of a template in its order.
func pathParameters(path string) ([]string, error) {
	segments, ok := strings.CutPrefix(path, "/")
	if !ok || !isLine(path, MaxPath) {
		return nil, fault.Newf(
			fault.Invalid, "path must begin with a slash and have at most %d printable characters", MaxPath)
	}
	for segment := range strings.SplitSeq(segments, "/") {
		if !segmentForm.MatchString(segment) {
			return nil,
				fault.Newf(fault.Invalid, "path %s has a segment that is neither text nor parameters in braces: %q",
					path, segment)
		}
	}
	parameters := []string{}
	for _, found := range parameterForm.FindAllStringSubmatch(path, -1) {
		if slices.Contains(parameters, found[1]) {
			return nil, fault.Newf(fault.Invalid, "path %s has the parameter %s twice", path, found[1])
		}
		parameters = append(parameters, found[1])
	}
	return parameters, nil
}

func sameNames(a, b []string) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}

var callbackForm = regexp.MustCompile(`^[A-Za-z_$.][A-Za-z0-9_$.]{0,63}$`)

// ParseCallback returns the name of the function that a JSONP answer calls. An empty name means no
// callback. It returns fault.Invalid unless the name has 1 to 64 letters, digits, "_", "$" and ".",
// the first not a digit (contract M-7).
func ParseCallback(s string) (string, error) {
	if s != "" && !callbackForm.MatchString(s) {
		return "", fault.New(fault.Invalid,
			"callback must have 1 to 64 letters, digits, \"_\", \"$\" and \".\", and must not begin with a digit")
	}
	return s, nil
}

// Matches reports whether a path below the API root is a call of the method: the same segments, any
// text in place of a parameter, and json or xml in place of the format.
func (m Method) Matches(path string) bool {
	if template, ok := strings.CutSuffix(m.Path, ".{format}"); ok {
		dot := strings.LastIndexByte(path, '.')
		return dot >= 0 && (path[dot+1:] == "json" || path[dot+1:] == "xml") && matchTemplate(template, path[:dot])
	}
	return matchTemplate(m.Path, path)
}

// matchTemplate reports whether a path has the segments of a template.
func matchTemplate(template, path string) bool {
	want, got := strings.Split(template, "/"), strings.Split(path, "/")
	if len(want) != len(got) {
		return false
	}
	for i, w := range want {
		parameter := strings.HasPrefix(w, "{") && strings.HasSuffix(w, "}")
		if parameter && got[i] == "" || !parameter && w != got[i] {
			return false
		}
	}
	return true
}

// Find returns the method that a path below the API root is a call of, or false when no method
// matches. If several methods match, it returns the one with the fewest parameters, so that
// /buildings/list.json is the list and not the building "list".
func Find(methods []Method, path string) (Method, bool) {
	var found Method
	ok := false
	for _, m := range methods {
		if m.Matches(path) && (!ok || len(m.Parameters) < len(found.Parameters)) {
			found, ok = m, true
		}
	}
	return found, ok
}
