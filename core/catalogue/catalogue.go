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
