// Package methodfile reads lists of methods from files: in the format of the methods listing, or as
// OpenAPI documents. It stores nothing; core/catalogue validates the methods.
package methodfile

import (
	"bytes"
	_ "embed" // the sample
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v4"

	"github.com/tollgate-dev/tollgate/core/catalogue"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// Limits of a file.
const (
	MaxBytes   = 16 << 20
	MaxMethods = 10_000
)

//go:embed sample.json
var sample []byte

// Sample returns the methods of the open-data document, which a new database of the embedded
// environment has.
func Sample() ([]catalogue.Method, error) { return Read(bytes.NewReader(sample), Defaults{}) }

// Defaults are values for data that an OpenAPI document does not contain. A zero value is no
// default.
type Defaults struct {
	// FirstID is the id of the first path without x-method-id. The next paths without it get the
	// following numbers, in the order of the document.
	FirstID catalogue.MethodID
	// ServiceID and ServiceName apply to each path without a service in the document.
	ServiceID   catalogue.ServiceID
	ServiceName string
}

// Read reads a whole file in JSON or YAML. It contains one of:
//
//   - a list of {method_id, path, service_id, service_name, parameters};
//   - an OpenAPI document, each path of which is a method. The id is the
//     x-method-id of the path, or of the first operation that has one. The service
//     is x-service-id and x-service-name, found in the same way, or else the first
//     tag of the first operation, with the x-service-id of that tag's object.
//
// An error of kind fault.Invalid names the entry and what is wrong with it. Two methods with the
// same id or path are an error.
func Read(r io.Reader, d Defaults) ([]catalogue.Method, error) {
	text, err := io.ReadAll(io.LimitReader(r, MaxBytes+1))
	if err != nil {
		return nil, err // the error names the file
	}
	if len(text) > MaxBytes {
		return nil, fault.Newf(fault.Invalid, "the file is larger than %d bytes", MaxBytes)
	}
	var file yaml.Node
	if err := yaml.Unmarshal(text, &file); err != nil {
		return nil, fault.Wrap(fault.Invalid, "the file is neither JSON nor YAML: "+err.Error(), err)
	}
	entries, err := parseEntries(&file, d)
	if err != nil {
		return nil, err
	}
	return validateEntries(entries)
}

// entry is a method in a file, and its place for messages.
type entry struct {
	where  string
	method catalogue.Method
}

func parseEntries(file *yaml.Node, d Defaults) ([]entry, error) {
	if file.Kind == yaml.DocumentNode && len(file.Content) == 1 {
		file = file.Content[0]
	}
	switch file.Kind {
	case yaml.SequenceNode:
		return parseMethodList(file)
	case yaml.MappingNode:
		return parseOpenAPI(file, d)
	default:
		return nil, fault.New(fault.Invalid, "the file is neither a list of methods nor an OpenAPI document")
	}
}

// parseMethodList parses the format of the methods listing.
func parseMethodList(list *yaml.Node) ([]entry, error) {
	var entries []entry
	for i, n := range list.Content {
		var m struct {
			ID          int      `yaml:"method_id"`
			Path        string   `yaml:"path"`
			ServiceID   int      `yaml:"service_id"`
			ServiceName string   `yaml:"service_name"`
			Parameters  []string `yaml:"parameters"`
		}
		where := fmt.Sprintf("method %d of the list", i+1)
		if err := n.Decode(&m); err != nil {
			return nil, invalidEntry(where, err)
		}
		entries = append(entries, entry{where, catalogue.Method{
			ID: catalogue.MethodID(m.ID), Path: m.Path,
			ServiceID: catalogue.ServiceID(m.ServiceID), ServiceName: m.ServiceName, Parameters: m.Parameters,
		}})
	}
	return entries, nil
}

// validateEntries validates all entries, and checks that no two have the same id or path.
func validateEntries(entries []entry) ([]catalogue.Method, error) {
	if len(entries) > MaxMethods {
		return nil, fault.Newf(fault.Invalid, "the file has %d methods; the maximum is %d", len(entries), MaxMethods)
	}
	list := make([]catalogue.Method, 0, len(entries))
	ids, paths := map[catalogue.MethodID]string{}, map[string]string{}
	for _, e := range entries {
		m, err := catalogue.NewMethod(e.method)
		if err != nil {
			return nil, invalidEntry(e.where, err)
		}
		if other, taken := ids[m.ID]; taken {
			return nil, invalidEntry(e.where, fmt.Errorf("method id %d is also the id of %s", m.ID, other))
		}
		if other, taken := paths[m.Path]; taken {
			return nil, invalidEntry(e.where, fmt.Errorf("path %s is also the path of %s", m.Path, other))
		}
		ids[m.ID], paths[m.Path] = e.where, e.where
		list = append(list, m)
	}
	return list, nil
}

// invalidEntry returns an error that names the entry and the reason.
func invalidEntry(where string, why error) error {
	message := why.Error()
	var types *yaml.LoadErrors
	if errors.As(why, &types) {
		message = "a field is of the wrong type"
	}
	return fault.Wrap(fault.Invalid, where+": "+message, why)
}
