// Package methodfile reads lists of methods from files: the listing's own form,
// and OpenAPI documents. It stores nothing, and what a method may be the model
// decides.
package methodfile

import (
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v4"

	"github.com/tollgate-dev/tollgate/core/catalogue"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// The bounds of a file.
const (
	MaxBytes   = 16 << 20
	MaxMethods = 10_000
)

// Defaults are for what an OpenAPI document does not say. Their zero values
// give nothing.
type Defaults struct {
	// FirstID is the id of the first path without x-method-id; the others count
	// on from it, in the order of the document.
	FirstID catalogue.MethodID
	// ServiceID and ServiceName are of each path for which the document names
	// none.
	ServiceID   catalogue.ServiceID
	ServiceName string
}

// Read reads a whole file, JSON or YAML, which holds one of two things:
//
//   - a list of {method_id, path, service_id, service_name, parameters};
//   - an OpenAPI document, of which each path is a method. Its id is
//     x-method-id, of the path or of its first operation that has one; its
//     service is x-service-id and x-service-name, likewise, else the first tag
//     of its first operation with the x-service-id of that tag's object.
//
// fault.Invalid tells which entry is wrong, and in what. Two methods of the
// same id or path are wrong.
func Read(r io.Reader, d Defaults) ([]catalogue.Method, error) {
	text, err := io.ReadAll(io.LimitReader(r, MaxBytes+1))
	if err != nil {
		return nil, err // which says what was read
	}
	if len(text) > MaxBytes {
		return nil, fault.Newf(fault.Invalid, "", "the file is larger than %d bytes", MaxBytes)
	}
	var file yaml.Node
	if err := yaml.Unmarshal(text, &file); err != nil {
		return nil, fault.Wrap(fault.Invalid, "", "the file is neither JSON nor YAML: "+err.Error(), err)
	}
	entries, err := entriesOf(&file, d)
	if err != nil {
		return nil, err
	}
	return methods(entries)
}

// entry is a method as a file has it, and where it stands there.
type entry struct {
	where  string
	method catalogue.Method
}

func entriesOf(file *yaml.Node, d Defaults) ([]entry, error) {
	if file.Kind == yaml.DocumentNode && len(file.Content) == 1 {
		file = file.Content[0]
	}
	switch file.Kind {
	case yaml.SequenceNode:
		return listed(file)
	case yaml.MappingNode:
		return described(file, d)
	default:
		return nil, fault.New(fault.Invalid, "", "the file is neither a list of methods nor an OpenAPI document")
	}
}

// listed reads the listing's own form.
func listed(list *yaml.Node) ([]entry, error) {
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
			return nil, wrong(where, err)
		}
		entries = append(entries, entry{where, catalogue.Method{
			ID: catalogue.MethodID(m.ID), Path: m.Path,
			ServiceID: catalogue.ServiceID(m.ServiceID), ServiceName: m.ServiceName, Parameters: m.Parameters,
		}})
	}
	return entries, nil
}

// methods checks all entries, also against each other.
func methods(entries []entry) ([]catalogue.Method, error) {
	if len(entries) > MaxMethods {
		return nil, fault.Newf(fault.Invalid, "", "the file holds %d methods, more than %d", len(entries), MaxMethods)
	}
	list := make([]catalogue.Method, 0, len(entries))
	ids, paths := map[catalogue.MethodID]string{}, map[string]string{}
	for _, e := range entries {
		m, err := catalogue.NewMethod(e.method)
		if err != nil {
			return nil, wrong(e.where, err)
		}
		if other, taken := ids[m.ID]; taken {
			return nil, wrong(e.where, fmt.Errorf("method id %d is also that of %s", m.ID, other))
		}
		if other, taken := paths[m.Path]; taken {
			return nil, wrong(e.where, fmt.Errorf("path %s is also that of %s", m.Path, other))
		}
		ids[m.ID], paths[m.Path] = e.where, e.where
		list = append(list, m)
	}
	return list, nil
}

// wrong tells where an entry stands that is not taken, and why.
func wrong(where string, why error) error {
	message := why.Error()
	var types *yaml.LoadErrors
	if errors.As(why, &types) {
		message = "a field is of the wrong type"
	}
	return fault.Wrap(fault.Invalid, "", where+": "+message, why)
}
